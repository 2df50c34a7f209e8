"""Bounds of a column in manifests, as the numbers by which ranges of files are compared.

They are bytes as the specification's single-value serialization has them. A column that was widened since has bounds of
its former type, which have fewer bytes. Source: Apache Iceberg's table specification, Appendix D.
"""

import re
import struct
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal

from shared.layout.key_depth import KeyRange
from shared.layout.key_values import number_of

_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")
_EPOCH = date(1970, 1, 1).toordinal()
_TYPES = {"int": "integer", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
"""Types as `shared.layout.key_values` calls them, where Iceberg has another name."""


def key_type(kind: str) -> str | None:
    """Return a column's type as `shared.layout.key_values` calls it; None where its bounds are not compared."""
    is_known = kind in _NUMBERS or _DECIMAL.fullmatch(kind) is not None
    return _TYPES.get(kind, kind) if is_known else None


def range_of(low: bytes | None, high: bytes | None, kind: str) -> KeyRange | None:
    """Return the range between two bounds of a type; None where one is missing or is not of this type."""
    least, greatest = (None if bound is None else _number(bytes(bound), kind) for bound in (low, high))
    return None if least is None or greatest is None or greatest < least else (least, greatest)


def _number(bound: bytes, kind: str) -> int | None:
    scale = _DECIMAL.fullmatch(kind)
    try:
        if scale is not None:
            unscaled = Decimal(int.from_bytes(bound, "big", signed=True))
            return number_of(str(unscaled.scaleb(-int(scale[1]))), kind)
        return _NUMBERS[kind](bound)
    except (ValueError, struct.error):
        return None


def _whole(bound: bytes) -> int:
    return int.from_bytes(bound, "little", signed=True)


def _floating(bound: bytes) -> int | None:
    (value,) = struct.unpack("<f" if len(bound) == struct.calcsize("<f") else "<d", bound)
    return number_of(value, "double")


_NUMBERS: Mapping[str, Callable[[bytes], int | None]] = {
    "int": _whole,
    "long": _whole,
    "float": _floating,
    "double": _floating,
    "string": lambda bound: number_of(bound.decode(errors="surrogateescape"), "string"),
    "date": lambda bound: _whole(bound) + _EPOCH,
    "timestamp": _whole,
    "timestamptz": _whole,
}
