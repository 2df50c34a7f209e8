"""Reports of reads: Iceberg's own and those of any engine; what is no report is refused with its place."""

import json
from typing import Any

import pytest

from decider.whatif.scan_reports import MAX_EXPRESSION_CHARS, MAX_REPORTS, MAX_TIMES, parse_reports
from shared.errors import InvalidInput

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
