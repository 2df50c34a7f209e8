"""Bounds of columns over all row groups of a file, as its footer has them: of our Java class, or read chunk by chunk.

The class (`ParquetColumns.java`) describes all columns in one call into the JVM; the other way, a dozen calls for each
chunk, serves where the class cannot be used.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.columns import Column
from actor.formats.parquet.file_columns import LeafCounts


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one column over all row groups, as Parquet stores them; None if all values are null."""

    least: Any
    greatest: Any
    nulls: int


def decode_bounds(leaf: LeafCounts, column: Column) -> Bounds | None:
    """Return the bounds of a column of one file; None if a row group leaves them out, or there is none."""
    if not leaf.values or leaf.nulls is None or not leaf.is_bounded:
        return None
    if leaf.least is None or leaf.greatest is None:
        return Bounds(None, None, leaf.nulls)
    return Bounds(_decoded(leaf.least, column), _decoded(leaf.greatest, column), leaf.nulls)


def bounds_of_chunks(footer: Any, places: Mapping[Column, int]) -> dict[Column, Bounds]:
    """Return the bounds of columns at these places among the leaves; one that any chunk leaves out is left out."""
    found: dict[Column, Bounds | None] = {}
    for number, block in enumerate(footer.getBlocks()):
        chunks = block.getColumns()
        for column, place in places.items():
            bounds = _of_chunk(chunks.get(place), column)
            found[column] = bounds if number == 0 else _joined(found[column], bounds)
    return {column: bounds for column, bounds in found.items() if bounds is not None}


def _of_chunk(chunk: Any, column: Column) -> Bounds | None:
    statistics = chunk.getStatistics()
    if statistics is None or statistics.isEmpty() or not statistics.isNumNullsSet():
        return None
    nulls = int(statistics.getNumNulls())
    if statistics.hasNonNullValue():
        return Bounds(_plain(statistics.genericGetMin(), column), _plain(statistics.genericGetMax(), column), nulls)
    return Bounds(None, None, nulls) if nulls == int(chunk.getValueCount()) else None


def _joined(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        return None
    held = [bounds for bounds in (one, other) if bounds.least is not None]
    return Bounds(
        min((bounds.least for bounds in held), default=None),
        max((bounds.greatest for bounds in held), default=None),
        one.nulls + other.nulls,
    )


def _decoded(text: str, column: Column) -> Any:
    """Return a value as Parquet stores it: text and other bytes as bytes, decimals as unscaled numbers."""
    match column.physical:
        case "BOOLEAN":
            return text == "true"
        case "INT32" | "INT64":
            return int(text)
        case "FLOAT":  # Its text has the digits that distinguish floats.
            return struct.unpack("f", struct.pack("f", float(text)))[0]
        case "DOUBLE":
            return float(text)
    return _of_bytes(bytes.fromhex(text), column)


def _plain(value: Any, column: Column) -> Any:
    return _of_bytes(bytes(value.getBytes()), column) if hasattr(value, "getBytes") else value


def _of_bytes(raw: bytes, column: Column) -> Any:
    return int.from_bytes(raw, "big", signed=True) if column.kind == "decimal" else raw
