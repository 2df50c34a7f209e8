"""Values that would become others when Spark writes them as the table's type: searched while the rows are read.

A text that is stored as plain bytes becomes a declared text, which readers check for UTF-8. An unsigned integer becomes
a signed one of as many bits. Both are exact for all values but some, which no footer shows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from actor.formats.delta.columns import Column, folded, holds_unsigned
from actor.formats.delta.stored_schema import physical_name
from actor.jvm.errors import matching_line
from shared.errors import RefusedFiles
from shared.paths.sql_text import quoted
from shared.refusals import RefusalReason

NOT_EXACT = "LAKEWRIGHT_NOT_EXACT"
"""Begins the message of a row that holds such a value; the column follows in brackets."""

_NAMED = re.compile(rf"{NOT_EXACT}\[(.*?)\]")
_DOUBTFUL = frozenset({"bytes", "uint"})
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}

Path = tuple[str, ...]


def is_doubtful(stored: Column) -> bool:
    """Return whether a leaf column may hold such values."""
    return stored.kind in _DOUBTFUL


def checked_columns(fields: Sequence[Mapping[str, Any]], stored: Iterable[Column]) -> dict[str, str]:
    """Return the columns with such leaves as SQL expressions that raise an error at such a value, by their names.

    fields: of the table's schema. stored: the leaf columns of the inputs. Raises RefusedFiles for unsigned
    integers that Spark reads only as a wider type than the table's.
    """
    doubtful = {folded(column.path): column for column in stored if is_doubtful(column)}
    found = {}
    for field in fields:
        name = quoted(field["name"])
        held = list(_conditions(name, field["type"], (physical_name(field),), doubtful))
        if held:
            message = f"{NOT_EXACT}[{field['name']}]".replace("\\", "\\\\").replace("'", "\\'")
            found[field["name"]] = f"if({' AND '.join(held)}, {name}, raise_error('{message}'))"
    return found


def refusal(error: Exception, location: str) -> RefusedFiles | None:
    """Return the refusal of files whose rows raised such an error, None for any other error."""
    line = matching_line(error, _NAMED)
    match = _NAMED.search(line)
    if match is None:
        return None
    return RefusedFiles(
        f"files of {location} are not rewritten: their column {match[1]!r} holds a text that is no UTF-8, or an "
        "unsigned number too large for the table's type, which not all readers would read as before; correct these "
        "values by an UPDATE",
        reason=RefusalReason.TYPES,
        field=match[1],
    )


def _conditions(value: str, kind: Any, path: Path, doubtful: Mapping[Path, Column], depth: int = 0) -> Iterator[str]:
    """Yield what has to hold for the leaves of a value, as SQL that is never null."""
    if isinstance(kind, str):
        stored = doubtful.get(folded(path))
        if stored is not None and stored.kind == "bytes" and kind == "string":
            yield f"coalesce(is_valid_utf8({value}), true)"
        elif stored is not None and stored.kind == "uint" and kind in _BITS:
            if not holds_unsigned(stored.detail[1], _BITS[kind]):
                raise RefusedFiles(
                    f"column {'.'.join(path)!r} is stored as {stored}, which Spark does not read as {kind}: its "
                    "files are not rewritten; write them again with signed integers",
                    reason=RefusalReason.TYPES,
                    field=path[0],
                )
            yield f"coalesce({value} >= 0, true)"
        return
    match kind["type"]:
        case "struct":
            for field in kind["fields"]:
                inner = f"{value}.{quoted(field['name'])}"
                yield from _conditions(inner, field["type"], (*path, physical_name(field)), doubtful, depth)
        case "array":
            yield from _of_each(value, kind["elementType"], (*path, "[]"), doubtful, depth)
        case "map":
            yield from _of_each(f"map_keys({value})", kind["keyType"], (*path, "key"), doubtful, depth)
            yield from _of_each(f"map_values({value})", kind["valueType"], (*path, "value"), doubtful, depth)


def _of_each(values: str, kind: Any, path: Path, doubtful: Mapping[Path, Column], depth: int) -> Iterator[str]:
    element = f"e{depth}"
    held = list(_conditions(element, kind, path, doubtful, depth + 1))
    if held:
        yield f"coalesce(forall({values}, {element} -> {' AND '.join(held)}), true)"
