"""Copied groups: each row group of the outputs is, byte for byte, one of the inputs', and each is used once.

DuckDB reads the footers, and not the code that copied. Nothing is decoded and nothing hashed, so nothing is missed; it
proves that rows are as before, not that they can be read.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from actor.proofread.file_fields import read_footers
from actor.proofread.locations import readable
from actor.proofread.model import Rewritten
from actor.proofread.sql import literal
from actor.proofread.task import Answer, ReadEnding

BLOCK_BYTES = 256 << 10
"""Bytes that are read at once of each of two files: larger blocks leave the cache of a core."""

_CHUNKS = (
    "file_name, row_group_id, coalesce(nullif(least(dictionary_page_offset, data_page_offset), 0), data_page_offset), "
    "total_compressed_size, row_group_num_rows, column_id, num_values, path_in_schema, type, compression, "
    "string_split(encodings, ', ').list_sort(), total_uncompressed_size"
)


_ENCODED = slice(4, 8)
"""Part of a column's entry in a row group's footer: its name, type, codec and encodings."""


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group: where the bytes of each column are, and what its footer says beside."""

    path: str
    spans: tuple[tuple[int, int], ...]
    described: tuple[Any, ...]


def compare_bytes(connection: duckdb.DuckDBPyConnection, group: Rewritten) -> Answer:
    """Compare row groups as bytes; DIFFERENT does not name columns, which a comparison of rows does."""
    stored = [readable(file.path) for file in group.inputs]
    written = [readable(file.path) for file in group.outputs]
    footers = read_footers(connection, [*stored, *written])
    if len({footer[1:] for footer in footers.values()}) > 1:
        return Answer(ReadEnding.DIFFERENT, "the footers of inputs and outputs hold other columns")
    unused: dict[tuple[Any, ...], list[_RowGroup]] = {}
    row_groups = _row_groups(connection, tuple(footers))
    given = [one for one in row_groups if one.path in set(stored)]
    copies = [one for one in row_groups if one.path not in set(stored)]
    for row_group in given:
        unused.setdefault(row_group.described, []).append(row_group)
    files = {path: os.open(path, os.O_RDONLY) for path in (*stored, *written)}
    try:
        for copy in copies:
            candidates = unused.get(copy.described, [])
            same = next((one for one in candidates if _equal(files[one.path], one, files[copy.path], copy)), None)
            if same is None:
                return Answer(
                    ReadEnding.DIFFERENT, f"{copy.path} has a row group that no input has", files=(copy.path,)
                )
            candidates.remove(same)
    finally:
        for descriptor in files.values():
            os.close(descriptor)
    if any(unused.values()):
        return Answer(ReadEnding.DIFFERENT, "a row group of the inputs is in no output")
    rows = sum(int(copy.described[0][1]) for copy in copies)
    of_inputs = {path: footers[path] for path in stored}
    return Answer(ReadEnding.SAME, rows=rows, fingerprint=_fingerprint(connection, of_inputs, given))


def fingerprint_of(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> str:
    """Return one word for the kind of these files: their columns, who wrote them, and how values are encoded."""
    return _fingerprint(connection, read_footers(connection, paths), _row_groups(connection, paths))


def _fingerprint(
    connection: duckdb.DuckDBPyConnection, footers: Mapping[str, tuple[Any, ...]], row_groups: Sequence[_RowGroup]
) -> str:
    listed = ", ".join(map(literal, footers))
    writers = connection.execute(f"SELECT DISTINCT created_by FROM parquet_file_metadata([{listed}])").fetchall()
    kinds = {repr(footer[1:]) for footer in footers.values()} | {str(writer) for (writer,) in writers}
    kinds |= {repr(chunk[_ENCODED]) for row_group in row_groups for chunk in row_group.described}
    return hashlib.sha256("\n".join(sorted(kinds)).encode()).hexdigest()


def _chunks(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> list[tuple[Any, ...]]:
    listed = ", ".join(map(literal, paths))
    return connection.execute(f"SELECT {_CHUNKS} FROM parquet_metadata([{listed}])").fetchall()


def _row_groups(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> list[_RowGroup]:
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for chunk in _chunks(connection, paths):
        found.setdefault((chunk[0], chunk[1]), []).append(chunk)
    return [
        _RowGroup(
            path,
            tuple((chunk[2], chunk[3]) for chunk in chunks),
            tuple((*chunk[3:10], tuple(chunk[10]), chunk[11]) for chunk in chunks),
        )
        for (path, _), chunks in found.items()
    ]


def _equal(file: int, one: _RowGroup, other_file: int, other: _RowGroup) -> bool:
    """Return whether two row groups have the same bytes; their spans have the same sizes."""
    at_once = min(max((size for _, size in one.spans), default=0), BLOCK_BYTES)
    block, other_block = bytearray(at_once), bytearray(at_once)
    for (start, size), (other_start, _) in zip(one.spans, other.spans, strict=True):
        for done in range(0, size, BLOCK_BYTES):
            length = min(BLOCK_BYTES, size - done)
            read = os.preadv(file, [memoryview(block)[:length]], start + done)
            other_read = os.preadv(other_file, [memoryview(other_block)[:length]], other_start + done)
            # Beyond `length`, both hold what was equal before.
            if not read == other_read == length or block != other_block:
                return False
    return True
