"""What footers of outputs say of a column must be able to hold for the rows of the inputs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from actor.formats.parquet.file_columns import LeafCounts, ParquetField
from actor.formats.parquet.leaf_check import Footing, LeafColumn, require_agreement
from actor.proofread.model import Field
from shared.errors import Difference

INT = ParquetField("c", 1, physical="INT32", leaf=LeafCounts(10, 2, is_bounded=True, least="-5", greatest="7"))


FIXED = ("FIXED_LEN_BYTE_ARRAY", "DECIMAL(9,2)", "ff85", "007b")
MILLIS = ("INT64", "TIMESTAMP(MILLIS,false)", "1", "2")
TEN_ROWS = Footing((), (), 10, lambda _kind, stored: "INTEGER" not in stored.logical)
SIX_LEFT = replace(TEN_ROWS, rows=6, has_deletes=True)


def told(
    inputs: Sequence[ParquetField | None],
    output: ParquetField | None,
    *,
    kind: str = "int32",
    default: str | None = None,
    footing: Footing = TEN_ROWS,
) -> str:
    """Return what contradicts in the column `c`."""
    column = (1, Field("c", kind, 1, default=default), ())
    sides = [tuple(_found(one) for one in side) for side in (inputs, (output,))]
    footing = replace(footing, inputs=sides[0], outputs=sides[1])
    return contradictions([column], footing)


def contradictions(columns: Sequence[LeafColumn], footing: Footing) -> str:
    """Return what the difference says after the place, nothing if there is none."""
    try:
        require_agreement(columns, footing, "t", ["in"])
    except Difference as found:
        return str(found).partition("committed: ")[2]
    return ""


def test_a_difference_names_the_inputs_and_the_columns_as_people_call_them() -> None:
    column = (1, Field("col-1", "int32", 1, shown="c"), ())
    with pytest.raises(Difference, match="t: the footers") as raised:
        require_agreement([column], replace(TEN_ROWS, inputs=[{1: INT}], outputs=[{1: leaf(nulls=1)}]), "t", ["in"])
    assert (raised.value.files, raised.value.columns) == (("in",), ("c",))


def _found(one: ParquetField | None) -> dict[int, ParquetField]:
    return {} if one is None else {1: one}


def leaf(one: ParquetField = INT, **changes: object) -> ParquetField:
    assert one.leaf is not None
    return replace(one, leaf=replace(one.leaf, **changes))  # type: ignore[arg-type]


def test_footers_of_the_same_rows_do_not_contradict_each_other() -> None:
    assert told([INT], INT) == ""
    half = leaf(values=5, nulls=1)
    assert told([half, leaf(half, least="1", greatest="2")], INT) == ""
    assert told([INT], leaf(least="-4", greatest="7")) == "", "bounds of an input need not be the least"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (leaf(values=9), "9 values of 10 rows"),
        (leaf(nulls=1), "2 nulls in, 1 out"),
        (leaf(nulls=3), "2 nulls in, 3 out"),
        (leaf(least="-6"), "outside of the bounds"),
        (leaf(greatest="8"), "outside of the bounds"),
        (replace(INT, logical="INTEGER(32,false)"), "stored as INT32 INTEGER"),
        (None, "the output lacks it"),
    ],
)
def test_each_contradiction_names_the_column_and_what_it_is(output: ParquetField | None, reason: str) -> None:
    assert reason in told([INT], output)


def test_what_footers_do_not_say_is_not_judged() -> None:
    for unknown in (leaf(nulls=None), leaf(is_bounded=False, least=None, greatest=None)):
        assert told([unknown], replace(INT, leaf=LeafCounts(10, 2))) == ""
    assert told([leaf(nulls=10, least=None, greatest=None)], leaf(nulls=10, least=None, greatest=None)) == ""
    assert told([leaf(nulls=10, least=None, greatest=None)], None) == "", "a column of nulls may be left out"


def test_rows_that_are_deleted_take_values_and_nulls_away_and_bring_none() -> None:
    fewer = leaf(values=6, nulls=1)
    assert told([INT], fewer, footing=SIX_LEFT) == ""
    assert told([INT], leaf(values=6, nulls=3), footing=SIX_LEFT) == "c: 2 nulls in, 3 out"


def test_a_column_that_some_files_lack_is_filled_by_its_default_or_partition_value_only() -> None:
    outside = leaf(greatest="9", nulls=7)
    assert "outside" in told([INT, None], outside)
    assert told([INT, None], outside, default="9") == ""
    assert told([INT, None], outside, footing=replace(TEN_ROWS, filled=frozenset({1}))) == ""


@pytest.mark.parametrize(
    ("kind", "read", "written", "is_inside"),
    [
        ("int64", ("INT32", "", "-5", "5"), ("INT64", "", "-5", "5"), True),
        ("int64", ("INT32", "", "-5", "5"), ("INT64", "", "-6", "5"), False),
        ("decimal(18,2)", FIXED, ("INT64", "DECIMAL(18,2)", "-123", "123"), True),
        ("decimal(18,2)", FIXED, ("INT64", "DECIMAL(18,2)", "-124", "1"), False),
        ("timestamp", MILLIS, ("INT64", "TIMESTAMP(MICROS,false)", "1000", "2000"), True),
        ("timestamp", MILLIS, ("INT64", "TIMESTAMP(MICROS,false)", "1", "2"), False),
        ("timestamp", ("INT96", "", "00", "00"), ("INT64", "TIMESTAMP(MICROS,false)", "1", "2"), True),
        ("string", ("BINARY", "STRING", "61", "62"), ("BINARY", "STRING", "6161", "62"), True),
        ("string", ("BINARY", "STRING", "61", "62"), ("BINARY", "STRING", "61", "6220"), False),
        ("double", ("FLOAT", "", "-0.0", "1.5"), ("DOUBLE", "", "0.0", "1.5"), True),
        ("double", ("FLOAT", "", "0.1", "0.1"), ("DOUBLE", "", "0.10000000149011612", "0.10000000149011612"), True),
        ("double", ("FLOAT", "", "0.1", "0.1"), ("DOUBLE", "", "0.1", "0.1"), False),
        ("double", ("INT32", "", "-1", "5"), ("DOUBLE", "", "-1.0", "5.0"), True),
        ("decimal(12,2)", ("INT32", "", "-1", "5"), ("INT64", "DECIMAL(12,2)", "-100", "500"), True),
        ("decimal(12,2)", ("INT32", "DECIMAL(5,1)", "-1", "5"), ("INT64", "DECIMAL(12,2)", "-10", "51"), False),
        ("boolean", ("BOOLEAN", "", "true", "true"), ("BOOLEAN", "", "false", "true"), False),
    ],
)  # fmt: skip
def test_bounds_are_compared_as_values_however_files_store_them(
    kind: str, read: tuple[str, ...], written: tuple[str, ...], *, is_inside: bool
) -> None:
    sides = [
        ParquetField("c", 1, physical=one[0], logical=one[1], leaf=LeafCounts(10, 0, True, one[2], one[3]))
        for one in (read, written)
    ]
    assert (told([sides[0]], sides[1], kind=kind) == "") is is_inside


def test_entries_of_lists_are_counted_and_nulls_below_structs_are_not() -> None:
    element = Field("element", "int32", 1)
    inside = [(1, element, (Field("l", "list", 2, children=(element,)),))]
    before = replace(TEN_ROWS, inputs=[_found(leaf(values=30, nulls=5))], outputs=[_found(leaf(values=30, nulls=4))])
    assert contradictions(inside, before) == ""
    lost = replace(before, outputs=[_found(leaf(values=29, nulls=5))])
    assert contradictions(inside, lost) == "l.element: 30 values in, 29 out"
    assert contradictions(inside, replace(lost, has_deletes=True)) == ""
    more = replace(before, outputs=[_found(leaf(values=31))], has_deletes=True)
    assert contradictions(inside, more) == "l.element: 30 values in, 31 out"
    assert contradictions(inside, replace(lost, inputs=(*before.inputs, {}))) == ""
    struct = [(1, element, (Field("s", "struct", 2, children=(element,)),))]
    assert contradictions(struct, replace(before, inputs=[_found(INT)], outputs=[_found(leaf(nulls=4))])) == ""


@pytest.mark.parametrize(
    "column", [Field("s", "struct", 1, children=(Field("c", "int32", 1),)), Field("v", "variant", 1)]
)
def test_a_column_without_values_of_its_own_is_not_compared(column: Field) -> None:
    found = replace(TEN_ROWS, inputs=[_found(INT)], outputs=[_found(replace(INT, leaf=LeafCounts(9, 9)))])
    assert contradictions([(1, column, ())], found) == ""
