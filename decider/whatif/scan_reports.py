"""Reports of reads, as engines and catalogs send them: which tables were read, how often, and with which filters.

A body is one report, a list of them, or one a line: scan reports of Iceberg's REST catalog (commit reports are left
out), or `{"table": NAME, "times": 30, "filter": EXPRESSION}` of any engine, which may leave out times and filter. Pure.

Source: `ReportMetricsRequest` and `ScanReport` of Iceberg's REST catalog specification.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decider.whatif.recorded_filters import compares_values
from shared.errors import InvalidInput

MAX_REPORTS = 10_000
"""Reports of one body, as many as events."""

MAX_TIMES = 1_000_000
"""Reads of one report: more is a mistake, such as a sum over years."""

MAX_EXPRESSION_CHARS = 4_096
"""Characters of a filter that is kept; the read of a longer one is counted without it."""


@dataclass(slots=True)
class TableReads:
    """Reported reads of one table; filters: how often each expression, as JSON text, was used."""

    times: int = 0
    filters: Counter[str] = field(default_factory=Counter)


def parse_reports(body: bytes) -> Mapping[str, TableReads]:
    """Return the reported reads by the table's name. Raises InvalidInput naming the report that is none."""
    found: dict[str, TableReads] = {}
    for number, report in enumerate(_reports(body), 1):
        if not isinstance(report, dict):
            raise InvalidInput(f"report {number} is no object", field="body")
        if report.get("report-type") == "commit-report":
            continue
        name, times = _name(report, number), _times(report, number)
        reads = found.setdefault(name, TableReads())
        reads.times += times
        expression = report.get("filter")
        if expression is None or not compares_values(expression, f"report {number}"):
            continue
        written = json.dumps(expression, sort_keys=True, separators=(",", ":"))
        if len(written) <= MAX_EXPRESSION_CHARS:
            reads.filters[written] += times
    return found


def _reports(body: bytes) -> list[Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError as problem:
        raise InvalidInput("the body is not UTF-8", field="body") from problem
    try:
        whole = json.loads(text)
        found = whole if isinstance(whole, list) else [whole]
    except RecursionError as problem:
        raise InvalidInput("the body is nested too deeply", field="body") from problem
    except ValueError:
        found = [_line(line, number) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(found) > MAX_REPORTS:
        raise InvalidInput(f"{len(found):,} reports in one body; at most {MAX_REPORTS:,}", field="body")
    return found


def _line(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"line {number} is not JSON", field="body") from problem


def _name(report: Mapping[str, Any], number: int) -> str:
    for key in ("table-name", "table"):
        name = report.get(key)
        if isinstance(name, str) and name:
            return name
    raise InvalidInput(
        f"report {number} names no table: expected a scan report with table-name, or {{'table': NAME}}", field="table"
    )


def _times(report: Mapping[str, Any], number: int) -> int:
    times = report.get("times", 1)
    if type(times) is not int or not 1 <= times <= MAX_TIMES:
        raise InvalidInput(
            f"report {number}: times is {times!r}, and not a whole number from 1 to {MAX_TIMES:,}", field="times"
        )
    return times
