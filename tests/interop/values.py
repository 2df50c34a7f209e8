"""What an engine read becomes plain values that compare exactly: no engine's own rounding, zone or order is left.

Integers, booleans, strings, bytes and decimals are themselves. A date is its number of days and a timestamp its number
of microseconds since 1970, because Python's own types end at the years 1 and 9999 and hide nanoseconds that wrapped
round. A float is its shortest text, so that -0.0 differs from 0.0 and NaN equals NaN. Nested values are tuples.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

_MICROS = {"s": Fraction(1_000_000), "ms": Fraction(1_000), "us": Fraction(1), "ns": Fraction(1, 1_000)}
_SIMPLE = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as a multiset: `columns` in the order of their names, `types` as Delta names them, and each row's count."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    counts: Counter[tuple[Any, ...]]


def rows_of(table: pa.Table) -> Rows:
    """Return the rows of an Arrow table."""
    columns = tuple(sorted(table.column_names))
    types = tuple(delta_type(table.schema.field(name).type) for name in columns)
    values = [[plain_scalar(scalar) for scalar in table.column(name)] for name in columns]
    return Rows(columns, types, Counter(zip(*values, strict=True) if values else ()))


def delta_type(kind: pa.DataType) -> str:  # noqa: PLR0911 - one return for each kind of type
    """Name an Arrow type as Delta's schema does; Arrow's own name where Delta has no such type."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kinds.is_dictionary(kind):
        return delta_type(kind.value_type)
    if kinds.is_timestamp(kind):
        name = "timestamp_ntz" if kind.tz is None else "timestamp"
        return name if kind.unit == "us" else f"{name}[{kind.unit}]"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_map(kind):
        return f"map<{delta_type(kind.key_type)},{delta_type(kind.item_type)}>"
    if kinds.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{delta_type(field.type)}' for field in kind)}>"
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_list_view(kind) or kinds.is_large_list_view(kind):
        return f"array<{delta_type(kind.value_type)}>"
    return str(kind)


def plain_scalar(scalar: pa.Scalar) -> Any:  # noqa: PLR0911 - one return for each kind of type
    """Return one Arrow value as a plain one."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if kinds.is_dictionary(kind):
        return plain_scalar(scalar.value)
    if kinds.is_timestamp(kind):
        micros = scalar.value * _MICROS[kind.unit]
        return int(micros) if micros.denominator == 1 else str(micros)
    if kinds.is_date32(kind):
        return scalar.value
    if kinds.is_date64(kind):
        return scalar.value // 86_400_000
    if kinds.is_floating(kind):
        return plain_float(scalar.as_py())
    if kinds.is_map(kind):
        return tuple(sorted((plain_scalar(key), plain_scalar(value)) for key, value in _entries(scalar.values)))
    if kinds.is_struct(kind):
        return tuple((field.name, plain_scalar(scalar[field.name])) for field in kind)
    if kinds.is_nested(kind):
        return tuple(plain_scalar(item) for item in scalar.values)
    return scalar.as_py()


def _entries(pairs: pa.StructArray) -> Iterator[tuple[pa.Scalar, pa.Scalar]]:
    """Give a map's keys and values by their place: engines call the two fields differently."""
    for pair in pairs:
        key, value = pair.values()
        yield key, value


def plain_float(value: float) -> str:
    """Return the text that tells a float from every other."""
    return repr(float(value))


def plain(kind: pa.DataType, value: Any) -> Any:
    """Return a Python value as it would come back from a column of this Arrow type."""
    return plain_scalar(pa.array([value], kind)[0])
