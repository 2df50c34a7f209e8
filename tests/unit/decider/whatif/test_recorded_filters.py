"""Reported scans: who read how often, and what a reader wants of a column."""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from decider.whatif.recorded_filters import (
    MAX_DEPTH,
    MAX_EXPRESSION_CHARS,
    MAX_FILTERS,
    MAX_REPORTS,
    MAX_TIMES,
    Hidden,
    RecordedFilter,
    named_columns,
    parse_filters,
    parse_reports,
    wanted_values,
)
from decider.whatif.sort_advice import HIDDEN_SHARE, KeyedFiles, RowSample, SampledPartition, SortAdvice, advise
from shared.errors import InvalidInput
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, PartitionColumn

COLUMNS = {name: PartitionColumn(name, name, kind) for name, kind in (("a", "long"), ("b", "long"), ("s", "string"))}


def compare(kind: str, column: Any, value: Any) -> dict[str, Any]:
    return {"type": kind, "term": column, "values" if kind in ("in", "not-in") else "value": value}


def joined(kind: str, left: Any, right: Any) -> dict[str, Any]:
    return {"type": kind, "left": left, "right": right}


A_FROM_3, A_TO_7 = compare("gt-eq", "a", 3), compare("lt", "a", 7)
HIDDEN = compare("gt", "a", "(1-digit-int)")
HIDDEN_POINT = compare("eq", "a", "(hash-12ab34cd)")


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (compare("eq", "a", 5), {"a": ((5, 5),)}),
        (compare("in", "a", [5, 9]), {"a": ((5, 5), (9, 9))}),
        (A_FROM_3, {"a": ((3, None),)}),
        (joined("and", A_FROM_3, A_TO_7), {"a": ((3, 7),)}),
        (joined("and", compare("gt", "a", 8), A_TO_7), {"a": ()}),
        (joined("and", compare("in", "a", [1, 5]), A_TO_7), {"a": ((1, 1), (5, 5))}),
        (joined("and", A_FROM_3, compare("eq", "b", 1)), {"a": ((3, None),), "b": ((1, 1),)}),
        (joined("or", A_FROM_3, compare("eq", "a", 1)), {"a": ((3, None), (1, 1))}),
        # Rows with another value of `a` may have the wanted one of `b`.
        (joined("or", A_FROM_3, compare("eq", "b", 1)), {}),
        (compare("not-eq", "a", 5), {}),
        (compare("not-in", "a", [5]), {}),
        ({"type": "not", "child": A_FROM_3}, {}),
        ({"type": "is-null", "term": "a"}, {}),
        (compare("eq", {"type": "transform", "transform": "bucket[4]", "term": "a"}, 2), {}),
        (compare("eq", "unknown", 2), {}),
        # A value that is not of the column's type cannot be compared with its bounds.
        (compare("eq", "a", "five"), {}),
        (compare("starts-with", "a", "five"), {}),
        (compare("in", "a", []), {}),
        (True, {}),
        ({"type": "literal", "value": False}, {}),
        (HIDDEN_POINT, {"a": Hidden(1)}),
        (compare("in", "a", ["(1-digit-int)", "(2-digit-int)"]), {"a": Hidden(2)}),
        (HIDDEN, {"a": Hidden(0)}),
        (joined("and", HIDDEN, compare("lt", "a", "(2-digit-int)")), {"a": Hidden(0)}),
        (joined("and", HIDDEN, HIDDEN_POINT), {"a": Hidden(1)}),
        (joined("and", A_FROM_3, HIDDEN_POINT), {"a": Hidden(1)}),
        (joined("and", HIDDEN_POINT, A_FROM_3), {"a": Hidden(1)}),
        (joined("or", HIDDEN_POINT, HIDDEN_POINT), {"a": Hidden(2)}),
        (joined("or", HIDDEN, HIDDEN_POINT), {"a": Hidden(0)}),
        (joined("or", A_FROM_3, HIDDEN_POINT), {"a": Hidden(0)}),
    ],
)
def test_an_expression_wants_the_values_that_minima_and_maxima_can_exclude(
    expression: Any, wanted: dict[str, Any]
) -> None:
    assert wanted_values(expression, COLUMNS) == wanted


def test_texts_that_begin_alike_are_a_range() -> None:
    ((low, high),) = wanted_values(compare("starts-with", "s", "ab"), COLUMNS)["s"]
    (inside,) = wanted_values(compare("eq", "s", "abz"), COLUMNS)["s"]
    (outside,) = wanted_values(compare("eq", "s", "ac"), COLUMNS)["s"]
    assert low <= inside[0] <= high < outside[0]


def test_scan_reports_and_written_filters_are_counted_and_scans_without_a_filter_left_out() -> None:
    report = {"report-type": "scan-report", "table-name": "c.db.t", "snapshot-id": 1, "metrics": {}}
    lines = [
        report | {"filter": HIDDEN_POINT},
        report | {"filter": True},
        report | {"filter": HIDDEN_POINT},
        {"filter": A_FROM_3, "times": 5},
        {"filter": joined("and", A_FROM_3, compare("eq", "b", 1))},
    ]
    found = parse_filters("\n\n".join(map(json.dumps, lines)))
    assert [(one.expression, one.times) for one in found[:2]] == [(A_FROM_3, 5), (HIDDEN_POINT, 2)]
    assert len(found) == 3
    assert named_columns(found) == ("a", "b")
    many = "\n".join(json.dumps({"filter": compare("eq", "a", n)}) for n in range(MAX_FILTERS + 1))
    assert len(parse_filters(many)) == MAX_FILTERS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        ("[]", "line 2 has no filter"),
        ('{"report-type": "commit-report"}', "line 2 has no filter"),
        ('{"filter": true, "times": 0}', "line 2: times is 0"),
        ('{"filter": true, "times": "many"}', "line 2: times is 'many'"),
        ('{"filter": {"type": "and", "left": true}}', "line 2: the filter is not an expression of Iceberg"),
    ],
)
def test_a_line_that_is_no_filter_is_named(line: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_filters(f'{{"filter": true}}\n{line}')


def test_an_expression_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = True
    for _ in range(MAX_DEPTH + 1):
        deep = joined("and", deep, True)
    with pytest.raises(InvalidInput, match="not an expression"):
        parse_filters(json.dumps({"filter": deep}))


def test_columns_are_named_by_how_often_they_are_compared() -> None:
    filters = (RecordedFilter(compare("eq", "b", 1), 1), RecordedFilter(joined("or", A_FROM_3, A_TO_7), 3))
    assert named_columns(filters) == ("a", "b")


EQUAL = {"type": "eq", "term": "customer", "value": "(hash-1a2b3c4d)"}
SCAN = {
    "report-type": "scan-report",
    "table-name": "lake.sales.orders",
    "snapshot-id": 2613571341042342,
    "filter": EQUAL,
    "schema-id": 0,
    "projected-field-ids": [1, 2],
    "projected-field-names": ["id", "customer"],
    "metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2644235116}},
}
COMMIT = {"report-type": "commit-report", "table-name": "lake.sales.orders", "operation": "append"}


def written(expression: Any) -> str:
    return json.dumps(expression, sort_keys=True, separators=(",", ":"))


def test_one_report_a_list_and_lines_are_read_alike() -> None:
    own = {"table": "b", "times": 30, "filter": EQUAL}
    for body in (json.dumps([SCAN, COMMIT, own, SCAN]), "\n\n".join(map(json.dumps, [SCAN, COMMIT, own, SCAN]))):
        found = parse_reports(body.encode())
        assert {name: (one.times, dict(one.filters)) for name, one in found.items()} == {
            "lake.sales.orders": (2, {written(EQUAL): 2}),
            "b": (30, {written(EQUAL): 30}),
        }
    assert parse_reports(json.dumps(SCAN).encode())["lake.sales.orders"].times == 1


@pytest.mark.parametrize(
    "expression",
    [
        None,
        True,
        {"type": "is-null", "term": "customer"},
        {"type": "in", "term": "customer", "values": ["x" * MAX_EXPRESSION_CHARS]},
    ],
)
def test_a_read_without_a_filter_that_compares_values_counts_and_so_does_one_that_is_too_long(expression: Any) -> None:
    found = parse_reports(json.dumps({"table": "t", "filter": expression}).encode())["t"]
    assert (found.times, found.filters) == (1, {})


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"no report", "line 1 is not JSON"),
        (b'{"table": "t"}\n{', "line 2 is not JSON"),
        (b"[3]", "report 1 is no object"),
        (b'[{"table": "t"}, {}]', "report 2 names no table"),
        (b'{"table": ""}', "report 1 names no table"),
        (b'{"table-name": 7}', "report 1 names no table"),
        (b'{"table": "t", "times": 0}', "report 1: times is 0"),
        (b'{"table": "t", "times": true}', "report 1: times is True"),
        (json.dumps({"table": "t", "times": MAX_TIMES + 1}).encode(), "a whole number from 1 to 1,000,000"),
        (b'{"table": "t", "filter": {"type": "and", "left": true}}', "report 1: the filter is not an expression"),
        (json.dumps([{"table": "t"}] * (MAX_REPORTS + 1)).encode(), "10,001 reports in one body"),
    ],
)
def test_what_is_no_report_is_refused_with_its_place(body: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        parse_reports(body)


A, B, C = (PartitionColumn(name, name, "long") for name in "abc")
FILES, ROWS = 16, 4_000
"""Of 100 bytes each, as many as the target has."""


def drawn(seed: int = 1) -> list[tuple[int, int, int]]:
    """Return rows whose `b` follows `a`, and whose `c` depends on nothing."""
    dice = random.Random(seed)
    values = [dice.randrange(10_000) for _ in range(ROWS)]
    return [(value, value + dice.randrange(100), dice.randrange(10_000)) for value in values]


def found(
    filters: Sequence[RecordedFilter],
    rows: Sequence[tuple[int | None, ...]],
    *,
    columns: Sequence[PartitionColumn] = (A, B, C),
    ranges: Sequence[tuple[int, int] | None] = ((0, 10_100),) * FILES,
) -> SortAdvice:
    keyed = tuple(
        KeyedFiles(column, tuple(DataFile(f"f{at}", 100, WHOLE_TABLE, key_range=one) for at, one in enumerate(ranges)))
        for column in columns
    )
    sample = RowSample(tuple(columns), (SampledPartition(FILES * 100, tuple(rows)),))
    return advise(sample, keyed, filters, 100)


def point(column: str, value: Any, times: int = 1) -> RecordedFilter:
    return RecordedFilter({"type": "eq", "term": column, "value": value}, times)


def test_the_column_that_most_filters_name_is_advised_with_what_it_reads() -> None:
    filters = [point("a", 5_000, 9), point("c", 5_000)]
    advice = found(filters, drawn())
    assert (advice.column, advice.share_read_now) == ("a", 1.0)
    assert advice.candidates[0].column == "a"
    # One file of sixteen for nine of ten filters, and all of them for the tenth.
    assert advice.candidates[0].share_read == pytest.approx(0.9 / FILES + 0.1, abs=0.06)
    assert found([point("a", 5_000), point("c", 5_000, 9)], drawn()).column == "c"


def test_a_column_that_separates_the_values_of_others_wins_over_each_of_them() -> None:
    dice = random.Random(2)
    rows = [(value + dice.randrange(1_500), value, value + dice.randrange(1_500)) for value, _, _ in drawn()]
    filters = [point("a", n, 2) for n in range(1_000, 10_000, 1_000)] + [
        point("c", n) for n in range(1_500, 9_000, 500)
    ]
    by = {one.column: one.share_read for one in found(filters, rows).candidates}
    assert max(by.values()) < 0.6
    assert found(filters, rows).column == min(by, key=by.__getitem__)


def test_an_order_that_saves_too_little_is_not_advised() -> None:
    everything = RecordedFilter({"type": "gt", "term": "a", "value": 700}, 1)
    advice = found([everything], drawn())
    assert advice.column is None
    assert advice.candidates[0].share_read == pytest.approx(15 / 16)
    assert found([point("a", 1)], [], columns=()) == SortAdvice(None, 0.0, ())


def test_a_table_that_is_sorted_already_gains_nothing() -> None:
    ascending = [(n * 10_100 // FILES, (n + 1) * 10_100 // FILES) for n in range(FILES)]
    advice = found([point("a", 5_000)], drawn(), columns=(A,), ranges=ascending)
    assert advice.column is None
    assert advice.share_read_now == pytest.approx(1 / FILES)


def test_files_without_bounds_are_read_by_every_filter_and_files_of_nulls_by_none() -> None:
    assert found([point("a", 20_000)], drawn(), ranges=[None] * FILES).share_read_now == 1.0
    nulls = [(None, 0, 0)] * (ROWS // 2) + drawn()[: ROWS // 2]
    half = RecordedFilter({"type": "gt-eq", "term": "a", "value": 0}, 1)
    (best, *_) = found([half], nulls).candidates
    assert (best.column, best.share_read) == ("a", 0.5)


def test_hidden_values_are_taken_to_be_anywhere() -> None:
    one = found([point("a", "(4-digit-int)")], drawn())
    assert one.column == "a"
    assert one.candidates[0].share_read == pytest.approx(1 / FILES, abs=0.01)
    some = RecordedFilter({"type": "in", "term": "a", "values": ["(4-digit-int)"] * 4}, 1)
    assert found([some], drawn()).candidates[0].share_read == pytest.approx(4 / FILES, abs=0.03)
    ranged = RecordedFilter({"type": "gt", "term": "a", "value": "(4-digit-int)"}, 1)
    assert found([ranged], drawn()).candidates[0].share_read == pytest.approx(HIDDEN_SHARE + 1 / FILES, abs=0.05)
    assert found([ranged], [(None, 0, 0)] * 50).share_read_now == 0.0


def test_few_rows_make_few_files() -> None:
    assert found([point("a", 3)], [(n, n, n) for n in range(7)]).candidates[0].share_read == 1.0
