"""How values of a column are stored in a Parquet file, and which changes of that a rewrite may make.

Spark writes a column by the table's schema and the session's settings, regardless of the inputs. A rewrite
changes no data, so its outputs must hold every value that their inputs can hold: same instants, same digits, no less
precise. Names of list and map wrappers differ between writers ("element", "item", "array") and mean nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

INT_BITS = {"INT32": 32, "INT64": 64}
_VALUE_BITS = {"INT_8": 8, "INT_16": 16}  # Of integers that are annotated; Spark cuts others to their column's type.
_UNSIGNED = {"UINT_8": 8, "UINT_16": 16, "UINT_32": 32, "UINT_64": 64}
_KINDS = {"UTF8": "text", "ENUM": "text", "JSON": "text", "DATE": "date"}
_INT_DIGITS = {32: 10, 64: 20}  # Digits of the decimals that Delta widens them to ("Type Widening" in the protocol).

Detail: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A leaf of a Parquet schema: its path without wrappers, physical type, and what that type means.

    `kind` is one of int, uint, decimal, timestamp, date, text, bytes, or the physical type in lower case; `detail`
    distinguishes kinds further: bits of an int, stored and of its values; (precision, scale); (unit, adjusted to UTC).
    """

    path: tuple[str, ...]
    physical: str
    kind: str
    detail: Detail = ()
    field_id: int | None = None
    required: bool = False
    nested: bool = False  # Below a list or a map, where no statistic of a whole column exists.

    def __str__(self) -> str:
        meaning = "" if self.kind == self.physical.lower() else f" ({self.kind}{list(self.detail) or ''})"
        return f"{self.physical}{meaning}"


def leaves(schema: Mapping[str, Any], text: str = "") -> tuple[Column, ...]:
    """Return the leaves of a Parquet schema as parquet-java writes it to JSON.

    Field ids are not in there; they are taken from `text`, the schema as parquet-java prints it, a line for each leaf.
    """
    found = tuple(leaf for field in schema["fields"] for leaf in _leaves(field, (), nested=False, required=True))
    printed = [line for line in text.split("\n") if line.endswith(";")]
    if len(printed) != len(found):
        return found
    ids = [re.search(r" = (-?\d+);$", line) for line in printed]
    return tuple(
        replace(leaf, field_id=int(match[1]) if match else None) for leaf, match in zip(found, ids, strict=True)
    )


def _leaves(field: Mapping[str, Any], above: tuple[str, ...], *, nested: bool, required: bool) -> Iterator[Column]:
    path = (*above, field["name"])
    required = required and field["repetition"] == "REQUIRED"
    if field["primitive"]:
        kind, detail = _meaning(field)
        yield Column(path, field["primitiveTypeName"], kind, detail, None, required, nested)
        return
    children = field["fields"]
    original = field.get("originalType")
    if original == "LIST" and len(children) == 1:
        yield from _leaves({**_element(children[0], field["name"]), "name": "[]"}, path, nested=True, required=False)
    elif original in ("MAP", "MAP_KEY_VALUE") and len(children) == 1 and len(children[0].get("fields") or ()) > 1:
        for name, child in zip(("key", "value"), children[0]["fields"], strict=False):
            yield from _leaves({**child, "name": name}, path, nested=True, required=False)
    else:
        below = nested or field["repetition"] == "REPEATED"
        for child in children:
            yield from _leaves(child, path, nested=below, required=required)


def _element(repeated: Mapping[str, Any], list_name: str) -> Mapping[str, Any]:
    """Return a list's element: below the repeated group of three-level lists, itself in the older two-level ones."""
    inside: Sequence[Mapping[str, Any]] = repeated.get("fields") or []
    if repeated["primitive"] or len(inside) != 1 or repeated["name"] in ("array", f"{list_name}_tuple"):
        return repeated
    return inside[0]


def _meaning(field: Mapping[str, Any]) -> tuple[str, Detail]:
    physical, original = field["primitiveTypeName"], field.get("originalType") or ""
    logical: Mapping[str, Any] | None = field.get("logicalTypeAnnotation")
    annotation = logical or {}
    found: tuple[str, Detail] = ((original or physical).lower(), ())
    if physical == "INT96":
        found = "timestamp", ("INT96", True)
    elif "precision" in annotation:
        found = "decimal", (annotation["precision"], annotation["scale"])
    elif "unit" in annotation and not original.startswith("TIME_"):
        found = "timestamp", (annotation["unit"], annotation["adjustedToUTC"])
    elif original in _KINDS:
        found = _KINDS[original], ()
    elif physical in INT_BITS and (not original or original.startswith("INT_")):
        found = "int", (INT_BITS[physical], _VALUE_BITS.get(original, INT_BITS[physical]))
    elif original in _UNSIGNED:
        found = "uint", (INT_BITS[physical], _UNSIGNED[original])
    elif physical in ("BINARY", "FIXED_LEN_BYTE_ARRAY") and logical is None:
        found = "bytes", ()
    return found


def folded(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path as Spark compares it: names of columns do not differ by case alone."""
    return tuple(name.casefold() for name in path)


def fits(given: Column, written: Column) -> bool:
    """Return whether every value that a column can hold as given is the same value as written."""
    kinds = (given.kind, written.kind)
    if kinds in _HOLDS:
        return _HOLDS[kinds](given.detail, written.detail)
    return kinds[0] == kinds[1] and given.physical == written.physical


def _holds_digits(decimal: Detail, whole: int, fraction: int) -> bool:
    precision, scale = decimal
    return bool(scale >= fraction and precision - scale >= whole)


def _holds_instants(given: Detail, written: Detail) -> bool:
    return written == ("MICROS", given[1]) and given[0] in ("INT96", "MILLIS", "MICROS")


def holds_unsigned(given: int, written: int) -> bool:
    """Return whether Spark reads an unsigned integer of these bits as a signed one, but for some values.

    It reads integers of 32 and 64 bits only as a wider type; of others some may be too large (see `exact_values`).
    """
    return written > given or written == given < INT_BITS["INT32"]


def _always(_given: Detail, _written: Detail) -> bool:
    return True


_HOLDS: Mapping[tuple[str, str], Callable[[Detail, Detail], bool]] = {
    ("timestamp", "timestamp"): _holds_instants,
    ("decimal", "decimal"): lambda given, written: _holds_digits(written, given[0] - given[1], given[1]),
    ("int", "int"): lambda given, written: bool(written >= given),
    ("uint", "int"): lambda given, written: holds_unsigned(given[1], written[1]),
    ("int", "decimal"): lambda given, written: _holds_digits(written, _INT_DIGITS[given[0]], 0),
    ("int", "double"): lambda given, _: given[0] == INT_BITS["INT32"],
    ("float", "double"): _always,
    ("date", "timestamp"): lambda _, written: written == ("MICROS", False),
    # The same bytes; the table's schema decides which of the two it is.
    ("text", "bytes"): _always,
    ("bytes", "text"): _always,
    ("bytes", "bytes"): _always,
}
"""Pairs of kinds of which one may be written as the other, besides those that are stored alike: what Delta's types
require ("Type Widening" in the protocol), and never less precise."""


def difference(given: Column, written: Column, *, mapped: bool) -> str:
    """Return how a column would lose something, the empty string if it would not; `mapped`: ids count."""
    name = ".".join(given.path)
    if not fits(given, written):
        return f"column {name!r} is stored as {given} and would become {written}"
    if written.required and not given.required:
        return f"column {name!r} may be null and would become required"
    if mapped and given.field_id is not None and given.field_id != written.field_id:
        return f"column {name!r} has the field id {given.field_id} and would have {written.field_id}"
    return ""
