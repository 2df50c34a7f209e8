"""Footers of Parquet files: how columns are stored, with which codec, and the exact bounds of outputs.

Only footers are read, several at once, by the library that Spark itself reads them with: no Spark job.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.columns import Column, leaves
from actor.formats.delta.log import TableLog
from actor.jvm.scala import Scala

_AT_ONCE = "parquet.metadata.read.parallelism"
_THREADS = "8"  # Requests to the store at a time: its latency is the cost, and a footer is small.
_BATCH = 64  # Footers that the JVM holds at once: those of wide files take some hundred kilobytes each.
_FILES_ASKED_FOR_CODEC = 16  # Largest files, which hold most bytes: a footer's codec costs eight calls into the JVM.
_WITH_ROW_GROUPS = False  # parquet-java's flag asks to skip them.


@dataclass(frozen=True, slots=True)
class Storage:
    """How a set of files is stored: each distinct schema once, and the bytes of files under each codec."""

    schemas: tuple[tuple[Column, ...], ...]
    codec_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one column over all row groups: least and greatest value as stored, None if all are null."""

    least: Any
    greatest: Any
    nulls: int


class Footers:
    """Reads footers of one table's files. Safe to use from several threads."""

    def __init__(self, scala: Scala, log: TableLog) -> None:
        self._scala = scala
        self._log = log
        self._schemas: dict[str, tuple[Column, ...]] = {}

    def storage(self, files: Sequence[LoggedFile]) -> Storage:
        """Return how these files are stored."""
        schemas: dict[str, tuple[Column, ...]] = {}
        codec_bytes: Counter[str] = Counter()
        largest = sorted(files, key=lambda logged: -logged.file.size_bytes)[:_FILES_ASKED_FOR_CODEC]
        asked = {logged.key for logged in largest}
        for logged, footer in zip(files, self._read(files), strict=True):
            text = str(footer.getFileMetaData().getSchema().toString())
            schemas[text] = self._columns(text, footer)
            codec = _codec(footer) if logged.key in asked else None
            if codec is not None:
                codec_bytes[codec] += logged.file.size_bytes
        return Storage(tuple(schemas.values()), codec_bytes)

    def bounds(self, file: LoggedFile, wanted: Iterable[Column]) -> dict[Column, Bounds]:
        """Return the exact bounds of columns of one file; a column whose footer leaves any out is left out."""
        (footer,) = self._read([file])
        order = self._columns(str(footer.getFileMetaData().getSchema().toString()), footer)
        found: dict[Column, list[Bounds | None]] = {column: [] for column in wanted}
        for block in footer.getBlocks():
            chunks = block.getColumns()  # In the order of the schema's leaves.
            for column, parts in found.items():
                parts.append(_chunk_bounds(chunks.get(order.index(column)), column))
        united = {column: _united(parts) for column, parts in found.items()}
        return {column: bounds for column, bounds in united.items() if bounds is not None}

    def _columns(self, text: str, footer: Any) -> tuple[Column, ...]:
        known = self._schemas.get(text)
        if known is None:
            bare = self._metadata_class(footer.getFileMetaData(), self._scala.java_list(()))
            known = leaves(json.loads(self._metadata_class.toJSON(bare))["fileMetaData"]["schema"], text)
            self._schemas[text] = known
        return known

    def _read(self, files: Sequence[LoggedFile]) -> Iterator[Any]:
        """Yield the footers in the order of the files."""
        conf = self._log.hadoop_conf()
        conf.set(_AT_ONCE, _THREADS)
        for some in _batches(files):
            statuses = self._scala.java_list(self._status(logged) for logged in some)
            for footer in self._reader.readAllFootersInParallel(conf, statuses, _WITH_ROW_GROUPS).toArray():
                yield footer.getParquetMetadata()

    def _status(self, logged: LoggedFile) -> Any:
        """Return what the log records about a file, which saves a request to the store."""
        size, modified = logged.file.size_bytes, logged.file.modified_ms
        is_directory, replication, block_size = False, 1, 1 << 27
        path = self._log.data_path(logged.key)
        return self._file_status(size, is_directory, replication, block_size, modified, path)

    @cached_property
    def _file_status(self) -> Any:
        return self._scala.resolve("org.apache.hadoop.fs.FileStatus")

    @cached_property
    def _reader(self) -> Any:
        return self._scala.resolve("org.apache.parquet.hadoop.ParquetFileReader")

    @cached_property
    def _metadata_class(self) -> Any:
        return self._scala.resolve("org.apache.parquet.hadoop.metadata.ParquetMetadata")


def _batches(files: Sequence[LoggedFile]) -> Iterator[Sequence[LoggedFile]]:
    for start in range(0, len(files), _BATCH):
        yield files[start : start + _BATCH]


def _codec(footer: Any) -> str | None:
    """Return the codec of a file's first column, as a rule that of all; None for a file without rows."""
    blocks = footer.getBlocks()
    if not blocks.size() or not blocks.get(0).getColumns().size():
        return None
    return str(blocks.get(0).getColumns().get(0).getCodec().name()).lower()


def _chunk_bounds(chunk: Any, column: Column) -> Bounds | None:
    statistics = chunk.getStatistics()
    if statistics is None or statistics.isEmpty() or not statistics.isNumNullsSet():
        return None
    nulls = int(statistics.getNumNulls())
    if statistics.hasNonNullValue():
        return Bounds(_plain(statistics.genericGetMin(), column), _plain(statistics.genericGetMax(), column), nulls)
    return Bounds(None, None, nulls) if nulls == int(chunk.getValueCount()) else None


def _plain(value: Any, column: Column) -> Any:
    """Return a value that orders as the column's values do: text and bytes by their bytes, decimals as numbers."""
    if not hasattr(value, "getBytes"):
        return value
    raw = bytes(value.getBytes())
    return int.from_bytes(raw, "big", signed=True) if column.kind == "decimal" else raw


def _united(parts: Sequence[Bounds | None]) -> Bounds | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    held = [part for part in known if part.least is not None]
    return Bounds(
        min((part.least for part in held), default=None),
        max((part.greatest for part in held), default=None),
        sum(part.nulls for part in known),
    )
