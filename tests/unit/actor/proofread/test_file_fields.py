"""Lists and maps of older writers are read by the rules of Parquet, whatever their groups are called."""

from typing import Any

import duckdb
import pytest
from duckdb.sqltypes import DuckDBPyType

from actor.proofread.failures import CannotRead
from actor.proofread.file_fields import _Entry, _field, _Group


def group(name: str, *children: _Group, repetition: str = "OPTIONAL", number: int | None = None) -> _Group:
    entry: _Entry = (name, None if children else "INT32", len(children) or None, repetition, None, number, None)
    return _Group(entry, children)


def type_of(text: str) -> DuckDBPyType:
    type_: Any = duckdb.sqltype(text)
    return type_


X = group("x", number=3)
PAIR = (X, group("y", number=4))


@pytest.mark.parametrize(
    ("stored", "type_", "element"),
    [
        (group("l", group("list", X, repetition="REPEATED")), "INTEGER[]", ("x", 3)),
        (group("l", group("bag", X, repetition="REPEATED")), "INTEGER[]", ("x", 3)),
        (group("l", group("array", repetition="REPEATED", number=3)), "INTEGER[]", ("array", 3)),
        (group("l", group("array", X, repetition="REPEATED")), "STRUCT(x INTEGER)[]", ["x"]),
        (group("l", group("l_tuple", X, repetition="REPEATED")), "STRUCT(x INTEGER)[]", ["x"]),
        (group("l", group("entry", *PAIR, repetition="REPEATED")), "STRUCT(x INTEGER, y INTEGER)[]", ["x", "y"]),
        (group("l", *PAIR, repetition="REPEATED"), "STRUCT(x INTEGER, y INTEGER)[]", ["x", "y"]),
        (group("l", repetition="REPEATED"), "INTEGER[]", ("element", None)),
    ],
)
def test_the_element_of_a_list_is_found(stored: _Group, type_: str, element: tuple[str, int] | list[str]) -> None:
    (inner,) = _field(stored, "l", type_of(type_)).children
    if isinstance(element, tuple):
        assert (inner.name, inner.id) == element
    else:
        assert (inner.type, [part.name for part in inner.children]) == ("struct", element)


def test_a_list_of_lists_of_an_older_writer_has_two_levels() -> None:
    inner = group("array", group("array", repetition="REPEATED"), repetition="REPEATED")
    found = _field(group("l", inner), "l", type_of("INTEGER[][]"))
    assert [found.type, found.children[0].type, found.children[0].children[0].type] == ["list", "list", "INTEGER"]


def test_what_duckdb_sees_in_another_way_is_no_column() -> None:
    with pytest.raises(ValueError, match="zip"):
        _field(group("s", X), "s", type_of("STRUCT(x INTEGER, y INTEGER)"))
    with pytest.raises(CannotRead, match="reads a group"):
        _field(group("s", X), "s", type_of("VARCHAR"))
