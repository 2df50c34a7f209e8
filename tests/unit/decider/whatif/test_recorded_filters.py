"""Reported scans: who read how often, and what a reader wants of a column."""

import json
from typing import Any

import pytest

from decider.whatif.recorded_filters import (
    MAX_DEPTH,
    MAX_FILTERS,
    Hidden,
    RecordedFilter,
    named_columns,
    parse_filters,
    wanted_values,
)
from decider.whatif.scan_reports import MAX_EXPRESSION_CHARS, MAX_REPORTS, MAX_TIMES, parse_reports
from shared.errors import InvalidInput
from shared.table import PartitionColumn

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
