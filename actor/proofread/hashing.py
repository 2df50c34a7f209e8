"""One expression of SQL for each column, whose numbers differ where values do: DuckDB's own do not.

Alone it gives one number to null, `[]`, `[null]` and `[0, null]`, to a null struct and a struct of nulls, to zero and
minus zero, and to decimals of 128 bits whose halves are XORed alike. The form depends on the table's type only, so that
files of older and newer schemas have the same numbers. Both sides must be read by the same release of DuckDB.
"""

import re
from collections.abc import Mapping

from actor.proofread.matching import Found
from actor.proofread.model import CannotRead
from actor.proofread.sql import literal, quoted

MOST_NESTED_LISTS = 12
"""Lists within lists: the time to plan a query doubles with each, and takes seconds from here."""

_TYPES: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "uuid": "UUID",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ns": "TIMESTAMP_NS",
    "variant": "VARIANT",
    "row_id": "BIGINT",
    "row_version": "BIGINT",
}
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})
_BYTES = frozenset({"VARCHAR", "BLOB", "JSON"})
_MOMENTS = frozenset({"TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})
_WIDENED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), _INTEGERS),
    "DOUBLE": frozenset({"FLOAT", "TINYINT", "SMALLINT", "INTEGER"}),
    "TIMESTAMP": frozenset({"DATE"}),
    "TIMESTAMP_NS": frozenset({"DATE"}),
    "UUID": frozenset({"BLOB"}),
}
"""Types of files that are cast to the table's: what does not fit raises. Bytes and text are never cast: it escapes."""

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.IGNORECASE)
_LONG_DECIMAL_DIGITS = 18  # Decimals of more digits have 128 bits.


def column_hash(found: Found) -> str:
    """Return the expression of a top-level column; raises CannotRead for what this reader does not hold."""
    source = quoted(found.field.sql) if found.field else ""
    return _given(found) if found.field is None else _hash(source, found, 0)


def column_value(found: Found) -> str:
    """Return a top-level leaf as a value to compare by: bytes for text, so that files of older schemas agree."""
    if found.field is None:
        given = _value(found)
        return f"encode({given})" if found.column.kind == "string" else given
    source = quoted(found.field.sql)
    if found.column.kind == "string":
        return source if found.field.type == "BLOB" else f"encode(({source})::VARCHAR)"
    return _cast(source, found)


def type_of(kind: str) -> str:
    """Return DuckDB's type of a leaf; raises CannotRead for kinds that it does not hold."""
    if decimal := _DECIMAL.fullmatch(kind):
        return f"DECIMAL({decimal[1]},{decimal[2]})"
    if not _is_known(kind):
        raise CannotRead(f"DuckDB does not hold the type {kind}")
    return _TYPES.get(kind, "BLOB")


def _is_known(kind: str) -> bool:
    return kind in _TYPES or kind.startswith("fixed(") or _DECIMAL.fullmatch(kind) is not None


def leaf_hash(source: str, kind: str) -> str:
    """Return the expression for a value that has DuckDB's type of its kind."""
    type_ = type_of(kind)
    if _is_long(type_):
        return f"hash({source}, ({source})::DOUBLE)"
    match kind:
        case "float" | "double":
            return f"hash({source}, signbit({source}))"
        case "uuid":
            return f"hash(({source})::VARCHAR)"
        case "variant":
            return f"hash(({source})::JSON::VARCHAR)"
        case _:
            return f"hash({source})"


def _is_long(type_: str) -> bool:
    decimal = _DECIMAL.fullmatch(type_)
    return decimal is not None and int(decimal[1]) > _LONG_DECIMAL_DIGITS


def _is_plain(kind: str) -> bool:
    """Return whether `hash` alone distinguishes values of this kind."""
    return kind not in ("float", "double", "uuid", "variant", "struct", "list", "map") and not _is_long(type_of(kind))


def _hash(source: str, found: Found, depth: int) -> str:
    """Return the expression of a value that the file has; depth: lists around it."""
    if depth > MOST_NESTED_LISTS:
        raise CannotRead(f"column {quoted(found.column.name)}: more than {MOST_NESTED_LISTS} lists within lists")
    match found.column.kind:
        case "struct":
            parts = (_field_hash(source, child, depth) for child in found.children)
            return f"hash({', '.join((f'{source} IS NULL', *parts))})"
        case "list":
            return f"hash(len({source}), {_elements(source, found.children[0], depth)})"
        case "map":
            keys, values = found.children
            keys_sql = _elements(f"map_keys({source})", keys, depth)
            return f"hash(cardinality({source}), {keys_sql}, {_elements(f'map_values({source})', values, depth)})"
        case kind:
            return leaf_hash(_cast(source, found), kind)


def _field_hash(struct: str, found: Found, depth: int) -> str:
    if found.field is not None:
        return _hash(f"({struct}).{quoted(found.field.sql)}", found, depth)
    if found.text is None:
        return _given(found)
    return f"CASE WHEN {struct} IS NULL THEN {_null(found)} ELSE {_given(found)} END"


def _elements(source: str, found: Found, depth: int) -> str:
    kind = found.column.kind
    if _is_plain(kind):
        return _cast(source, found, "[]")
    variable = f"lw_{depth}"
    return f"list_transform({source}, lambda {variable}: {_hash(variable, found, depth + 1)})"


def _cast(source: str, found: Found, suffix: str = "") -> str:
    """Return a leaf (suffix `[]`: a list of leaves) in the table's type; raises CannotRead where that is not exact."""
    wanted, stored = type_of(found.column.kind), found.field.type if found.field else ""
    same = stored == wanted or {wanted, stored} <= _BYTES or {wanted, stored} <= _MOMENTS
    if same:
        return source
    if not _is_exact(wanted, stored):
        raise CannotRead(f"column {quoted(found.column.name)}: a file has {stored} for {found.column.kind}")
    return f"({source})::{wanted}{suffix}"


def _is_exact(wanted: str, stored: str) -> bool:
    decimal, narrower = _DECIMAL.fullmatch(wanted), _DECIMAL.fullmatch(stored)
    if decimal is None:
        return stored in _WIDENED.get(wanted, ())
    # Fewer digits behind the point would be rounded, fewer in front raise.
    return stored in _INTEGERS or (narrower is not None and int(narrower[2]) <= int(decimal[2]))


def _given(found: Found) -> str:
    """Return the expression of a column that the file lacks."""
    column, text = found.column, found.text
    if text is None:
        return _null(found)
    if column.kind == "struct":
        return f"hash({', '.join(('false', *map(_given, found.children)))})"
    return leaf_hash(_value(found), column.kind)


def _value(found: Found) -> str:
    """Return the value of a leaf that the file lacks."""
    kind, text = found.column.kind, found.text
    if text is not None and (kind == "binary" or kind.startswith("fixed(")):
        return f"from_hex({literal(text)})"
    return f"({'NULL' if text is None else literal(text)})::{type_of(kind)}"


def _null(found: Found) -> str:
    match found.column.kind:
        case "struct":
            return f"hash({', '.join(('true', *map(_null, found.children)))})"
        case "list":
            return "hash(NULL::BIGINT, NULL::BIGINT[])"
        case "map":
            return "hash(NULL::BIGINT, NULL::BIGINT[], NULL::BIGINT[])"
        case kind:
            # A type that no file holds, such as void, is null everywhere.
            return leaf_hash(f"NULL::{type_of(kind)}", kind) if _is_known(kind) else "hash(NULL)"
