"""Bounds of columns over all row groups of a file, as its footer has them (`ParquetColumns.java`)."""

import struct
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
    raw = bytes.fromhex(text)
    return int.from_bytes(raw, "big", signed=True) if column.kind == "decimal" else raw
