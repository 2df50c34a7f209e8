"""Recorded filters: what a reader wants of a column, from Iceberg's expressions, with and without their values."""

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
