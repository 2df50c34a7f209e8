"""Boxes of an Iceberg table's files from the bounds in manifests, and the columns that can have cells."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actor.cells.columns import CellColumn
from actor.formats.iceberg.cell_bounds import MOST_TEXT_BYTES, box_of, cell_columns, named_columns, require_bounds
from actor.formats.iceberg.table_columns import TableColumns, table_columns
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import EVERYTHING, NAN, NULL
from shared.refusals import RefusalReason

KINDS = ["long", "string", "double", "date", "timestamp", "timestamptz", "decimal(10,2)", "boolean", "string", "string"]


def table() -> TableColumns:
    fields: list[dict[str, object]] = [
        {"id": at, "name": f"c{at}", "required": False, "type": kind} for at, kind in enumerate(KINDS, 1)
    ]
    inner = {"type": "struct", "fields": [{"id": 21, "name": "x", "required": False, "type": "int"}]}
    lists = {"type": "list", "element-id": 31, "element-required": False, "element": inner | {"fields": []}}
    fields += [
        {"id": 20, "name": "s", "required": False, "type": inner},
        {"id": 30, "name": "l", "required": False, "type": lists},
    ]
    return table_columns({"type": "struct", "fields": fields}, {})


def columns(named: str, *modes: str) -> tuple[CellColumn, ...]:
    def modes_of(ids: Sequence[int]) -> Sequence[str]:
        return modes or ["truncate(16)"] * len(ids)

    return cell_columns(table(), named, modes_of, "file:///t")


def column(kind: str, text_bytes: int = MOST_TEXT_BYTES) -> CellColumn:
    return CellColumn(("1", "n"), ("x",), kind, text_bytes)


def test_columns_are_named_by_their_ids_and_have_the_types_of_spark() -> None:
    assert [(one.path, one.name, one.type) for one in columns("c1, s.x, c5, c6")] == [
        (("1", "n"), ("c1",), "long"),
        (("21", "n"), ("s", "x"), "integer"),
        (("5", "n"), ("c5",), "timestamp_ntz"),
        (("6", "n"), ("c6",), "timestamp"),
    ]
    assert columns("c7, c4")[0].path == ("7", "d2")
    assert named_columns(table(), None) == {}
    assert [*named_columns(table(), "c2, gone, c1").values()] == [(2, ("c2",)), (1, ("c1",))]


@pytest.mark.parametrize(
    ("mode", "text_bytes"), [("truncate(16)", 15), ("truncate(2)", 1), ("truncate(100)", 15), ("full", 15)]
)
def test_texts_are_compared_by_what_no_writer_rounds(mode: str, text_bytes: int) -> None:
    (found,) = columns("c2", mode)
    assert (found.text_bytes, found.path) == (text_bytes, ("2", f"t{text_bytes}"))
    assert found.text == f"hex(substring(CAST(`c2` AS BINARY), 1, {text_bytes}))"


@pytest.mark.parametrize(
    ("named", "mode"), [("c1", "none"), ("c1", "counts"), ("c2", "truncate(1)"), ("c8", "full"), ("s", "full")]
)
def test_a_column_without_bounds_is_refused(named: str, mode: str) -> None:
    with pytest.raises(RefusedFiles, match=named) as refused:
        columns(named, mode)
    assert refused.value.reason is RefusalReason.BOUNDS


@pytest.mark.parametrize("named", ["gone", "l.element", "c1, gone"])
def test_a_column_that_is_not_there_is_named(named: str) -> None:
    with pytest.raises(RefusedFiles, match=named.rpartition(" ")[2]) as refused:
        columns(named)
    assert refused.value.reason is RefusalReason.UNSUPPORTED


def test_cells_that_no_name_has_room_for_are_refused() -> None:
    assert len(columns("c2, c9, c10")) == 3
    assert len(columns("c1, c3, c4, c5")) == 4
    with pytest.raises(RefusedFiles, match="do not fit into the names") as refused:
        columns("c2, c9, c10, c1")
    assert refused.value.reason is RefusalReason.UNSUPPORTED


@pytest.mark.parametrize(
    ("kind", "bounds", "span"),
    [
        ("long", ("3", "7", 0, None), (3, 8)),
        ("long", ("3", "7", 2, None), (NULL, 8)),
        ("long", ("3", "7", None, None), (NULL, 8)),
        ("long", (None, None, 10, None), (NULL, NULL + 1)),
        ("long", (None, "7", 0, None), EVERYTHING),
        ("long", ("3", None, 0, None), EVERYTHING),
        ("long", ("7", "3", 0, None), EVERYTHING),
        ("date", ("0", "0", 0, None), (719_163, 719_164)),
        ("timestamp", ("1999", "2000", 0, None), (1000, 2001)),
        ("decimal(10,2)", ("-1.50", "1.50", 0, None), (-15 * 10**37, 15 * 10**37 + 1)),
        ("double", ("1.0", "1.0", 0, 0), (4607182418800017408, 4607182418800017409)),
        ("double", ("1.0", "1.0", 0, 3), (4607182418800017408, NAN + 1)),
        ("double", ("1.0", "1.0", 0, None), (4607182418800017408, NAN + 1)),
        ("float", ("-0.0", "0.0", 0, 0), (0, 1)),
        ("double", (None, None, 0, 10), (NAN, NAN + 1)),
        ("double", (None, None, 4, 6), (NULL, NAN + 1)),
        ("double", (None, None, 4, 5), EVERYTHING),
        ("double", (None, None, None, 6), EVERYTHING),
        ("double", ("NaN", "NaN", 0, None), EVERYTHING),
        ("double", ("1.0", "NaN", 0, None), EVERYTHING),
    ],
)
def test_a_file_lies_where_its_bounds_are(kind: str, bounds: tuple, span: tuple[int, int]) -> None:
    assert box_of([column(kind)], [bounds], 10) == (span,)
    if span == EVERYTHING:
        with pytest.raises(RefusedFiles, match="no bounds of 'x'"):
            require_bounds([column(kind)], [bounds], 10, "file:///t")
    else:
        require_bounds([column(kind)], [bounds], 10, "file:///t")


def cut(text: str, characters: int) -> tuple[str, str]:
    """Bounds of a file with one text as Iceberg writes them."""
    if len(text) <= characters:
        return text, text
    last = ord(text[characters - 1]) + 1
    return text[:characters], text[: characters - 1] + chr(0xE000 if last == 0xD800 else last)


@given(
    st.text(st.characters(exclude_characters="\U0010ffff", exclude_categories=["Cs"]), max_size=24),
    st.integers(2, 20),
)
def test_a_text_whose_bounds_are_rounded_has_the_box_of_its_row_alone(text: str, characters: int) -> None:
    one = column("string", min(MOST_TEXT_BYTES, characters - 1))
    low, high = (bound.encode().hex() for bound in cut(text, characters))
    number = one.number(text.encode()[: one.text_bytes].hex())
    assert box_of([one], [(low, high, 0, None)], 1) == ((number, number + 1),)
