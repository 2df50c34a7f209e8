"""Counts what the columns of a checkpoint take in memory, before Arrow decodes them: writers of a table choose them.

A page becomes as many bytes as its header says, and one value of a dictionary may stand for millions of rows, so that
kilobytes fill any memory. The headers of all pages that are read are added up; beyond the limit, the part is damaged.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decider.formats.delta.parquet_footer import Chunk, ThriftReader, chunks

_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes(limits: tuple[Path, ...] = _CONTAINER_LIMITS) -> int:
    """Return the memory of the machine, or of its container where that has less."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in limits:
        text = file.read_text("ascii").strip() if file.is_file() else ""
        if text.isdigit():
            found = min(found, int(text))
    return found


MEMORY_SHARE = 2
"""A checkpoint may take half of the memory of the machine or container; the rest is for what becomes of it."""

MAX_PAGES = 200_000
"""Most pages and chunks of columns that are read of one checkpoint: to read the headers of as many takes seconds."""

_BATCH_BYTES = 64 * 1024 * 1024
"""Bytes of values of unknown length that are decoded at a time to count them."""

_VALUE_BYTES = 64
"""Bytes of one value beside its own: its levels, and what it takes as a Python object."""

_JSON_SHARE = 12
"""Bytes of Python objects that a byte of JSON becomes: of a file with a short path, and nothing else."""

_DICTIONARY_PAGE = 2
_DATA_PAGES = {0: (5, 2), 3: (8, 4)}
"""Kinds of pages with values, each with the field of the header that describes them, and its field of the encoding."""

_BY_DICTIONARY = (2, 8)
_BY_PREFIXES = 7
"""Encodings in which a value takes fewer bytes than it has."""


@dataclass(frozen=True, slots=True)
class _ChunkBytes:
    """One column of a row group: bytes of its pages, and of its values beyond these, at most.

    longest: of its values; has_prefixes: some values are stored by the one before.
    """

    pages: int
    more: int
    longest: int
    has_prefixes: bool


@dataclass(slots=True)
class DecodedBytes:
    """Counts the columns of all parts of one checkpoint, each once."""

    limit: int = field(default_factory=lambda: memory_bytes() // MEMORY_SHARE)
    _total: int = 0
    _pages: int = 0
    _known: set[tuple[str, str]] = field(default_factory=set)

    def open(self, name: str, data: memoryview, columns: Collection[str]) -> pq.ParquetFile:
        """Open a part to decode these columns; raises ValueError if they take too much, or what Arrow raises."""
        file = pq.ParquetFile(pa.BufferReader(data))
        paths = [file.schema.column(index).path for index in range(file.metadata.num_columns)]
        is_read = [any(path == one or path.startswith(f"{one}.") for one in columns) for path in paths]
        new = [index for index, path in enumerate(paths) if is_read[index] and (name, path) not in self._known]
        groups = chunks(data, len(paths)) if new else ()
        for index in new:
            column = file.schema.column(index)
            for group, found in enumerate(groups):
                self._add(data, found[index], group, column)
            self._known.add((name, column.path))
        return file

    def charge_json(self, name: str, size: int) -> None:
        """Count a part in JSON; raises ValueError if it takes too much."""
        if (name, "") not in self._known:
            self._known.add((name, ""))
            self._charge(_JSON_SHARE * size, f"{size} bytes of JSON")

    def _add(self, data: memoryview, chunk: Chunk, group: int, column: pq.ColumnSchema) -> None:
        found = self._count(data, chunk)
        size = found.pages + found.more
        if found.more and self._total + size > self.limit and self._total + found.pages <= self.limit:
            is_repeated = column.max_repetition_level > 0
            size = found.pages + _exact_bytes(data, group, column.path, found, is_repeated=is_repeated)
        self._charge(size, f"{column.path} of row group {group}")

    def _charge(self, size: int, what: str) -> None:
        self._total += size
        if self._total > self.limit:
            raise ValueError(f"it takes more memory than the {self.limit} bytes of a checkpoint: {what} takes {size}")

    def _count(self, data: memoryview, chunk: Chunk) -> _ChunkBytes:
        pages = by_dictionary = prefixed = longest = 0
        self._count_page()
        for header, body in _pages(data, chunk):
            self._count_page()
            size = _not_negative(header[2])
            pages += size
            if header[1] == _DICTIONARY_PAGE and chunk.is_bytes:
                longest = _longest(body, chunk.codec, size)
            elif header[1] in _DATA_PAGES:
                described, encoding = _DATA_PAGES[header[1]]
                values, encoding = header[described][1], header[described][encoding]
                pages += _VALUE_BYTES * values
                by_dictionary += values * (encoding in _BY_DICTIONARY)
                if encoding == _BY_PREFIXES:
                    prefixed, longest = prefixed + values * size, max(longest, size)
        return _ChunkBytes(pages, by_dictionary * longest + prefixed, longest, prefixed > 0)

    def _count_page(self) -> None:
        self._pages += 1
        if self._pages > MAX_PAGES:
            raise ValueError(f"it has more than {MAX_PAGES} pages")


def _pages(data: memoryview, chunk: Chunk) -> Iterator[tuple[Mapping[int, Any], memoryview]]:
    """Yield header and bytes of the pages of a chunk that Arrow reads: those up to its last value."""
    reader = ThriftReader(data, chunk.start)
    end, seen = chunk.start + chunk.size, 0
    while seen < chunk.values and reader.at < end:
        header = reader.struct()
        yield header, reader.take(_not_negative(header[3]))
        if header[1] in _DATA_PAGES:
            seen += _not_negative(header[_DATA_PAGES[header[1]][0]][1])


def _longest(page: memoryview, codec: str, size: int) -> int:
    """Return the length of the longest value of a dictionary; where it cannot be read, of all of it."""
    try:
        raw = memoryview(page if codec == "UNCOMPRESSED" else pa.Codec(codec.lower()).decompress(page, size))
    except (pa.ArrowException, OSError, ValueError):
        return size
    at = longest = 0
    while at < len(raw):
        length = int.from_bytes(raw[at : at + 4], "little")
        at, longest = at + 4 + length, max(longest, length)
    return longest


def _exact_bytes(data: memoryview, group: int, path: str, found: _ChunkBytes, *, is_repeated: bool) -> int:
    """Count the bytes of a column's values, most of which may be null; `found.more` where counting takes as much."""
    if not found.has_prefixes:
        file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=[path])
        return sum(map(_value_bytes, file.read_row_group(group, columns=[path]).column(0).chunks))
    if is_repeated:
        return found.more
    file, counted = pq.ParquetFile(pa.BufferReader(data)), 0
    for batch in file.iter_batches(max(1, _BATCH_BYTES // found.longest), row_groups=[group], columns=[path]):
        counted += batch.nbytes
        if counted > found.more:
            break
    return counted


def _value_bytes(array: Any) -> int:
    """Return the bytes of all values of one leaf, which is in a dictionary."""
    while not pa.types.is_dictionary(array.type):
        array = array.values if pa.types.is_list(array.type) else array.field(0)
    lengths = pc.binary_length(array.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(array.indices)).as_py() or 0


def _not_negative(size: int) -> int:
    if size < 0:
        raise ValueError(f"a page has {size} bytes or values")
    return size
