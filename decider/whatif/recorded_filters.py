"""Filters that readers used, and the values of each column that a row must have for a reader to want it.

They are Iceberg's expressions in JSON, one filter a line: scan reports as a REST catalog receives them, or lines such
as `{"filter": {"type": "eq", "term": "id", "value": 7}, "times": 30}`, or what a decider recorded. Iceberg hides the
values in its reports, such as `(2-digit-int)`: of these filters only the column is known, and whether it was compared
with values or with a range. Whatever no minimum and maximum can decide (`not-eq`, `is-null`, transforms, all below a
`not`) excludes nothing. Pure.

Sources: `ExpressionParser` and `ExpressionUtil.sanitize` of Apache Iceberg; `ReportMetricsRequest` of its REST catalog.

Reports of reads, as engines and catalogs send them: which tables were read, how often, and with which filters.

A body is one report, a list of them, or one a line: scan reports of Iceberg's REST catalog (commit reports are left
out), or `{"table": NAME, "times": 30, "filter": EXPRESSION}` of any engine, which may leave out times and filter. Pure.

Source: `ReportMetricsRequest` and `ScanReport` of Iceberg's REST catalog specification.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import InvalidInput
from shared.layout.key_values import key_range
from shared.table import PartitionColumn

MAX_FILTERS = 200
"""Different filters that are counted, the most frequent ones."""

MAX_DEPTH = 64
"""Levels of one expression: far more than any query, and far fewer than what ends an interpreter."""

Span = tuple[int | None, int | None]
"""From the least to the greatest wanted value, as whole numbers in their order; None: open."""

_HIDDEN = re.compile(r"\(.*\)", re.DOTALL)
_ABOVE, _BELOW = ("gt", "gt-eq"), ("lt", "lt-eq")
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Values that a report hides: this many single ones, or a range (0)."""

    points: int


Wanted = tuple[Span, ...] | Hidden
"""Requested values of a column: any of these spans, or hidden ones."""


@dataclass(frozen=True, slots=True)
class RecordedFilter:
    """An expression, and how often it was used."""

    expression: Any
    times: int


def parse_filters(text: str) -> tuple[RecordedFilter, ...]:
    """Return the different filters of a text, most frequent first; scans without a filter are left out.

    Raises InvalidInput naming the line that is neither a scan report nor a filter.
    """
    counts: Counter[str] = Counter()
    for number, line in enumerate(_lines(text), 1):
        if line.strip():
            expression, times = _read(line, number)
            counts[json.dumps(expression, sort_keys=True)] += times
    read = (RecordedFilter(json.loads(written), times) for written, times in counts.most_common())
    return tuple(one for one in read if next(_terms(one.expression, 0), None) is not None)[:MAX_FILTERS]


def compares_values(expression: Any, where: str) -> bool:
    """Return whether an expression compares a column with values; raises InvalidInput, naming where it stands."""
    try:
        return bool(list(_terms(expression, 0)))
    except (KeyError, RecursionError) as problem:
        raise InvalidInput(f"{where}: the filter is not an expression of Iceberg", field="filters") from problem


def named_columns(filters: tuple[RecordedFilter, ...]) -> tuple[str, ...]:
    """Return the columns that filters compare with values, those that are compared most often first."""
    counts: Counter[str] = Counter()
    for one in filters:
        for name in set(_terms(one.expression, 0)):
            counts[name] += one.times
    return tuple(name for name, _ in counts.most_common())


def wanted_values(expression: Any, columns: Mapping[str, PartitionColumn]) -> dict[str, Wanted]:
    """Return what an expression wants of each of these columns, by their names; of all others it excludes nothing."""
    kind = expression.get("type") if isinstance(expression, dict) else None
    if kind in ("and", "or"):
        left, right = (wanted_values(expression[side], columns) for side in ("left", "right"))
        if kind == "or":
            return {name: _either(left[name], right[name]) for name in left.keys() & right.keys()}
        return {
            name: _both(left[name], right[name]) if name in left and name in right else (left | right)[name]
            for name in left.keys() | right.keys()
        }
    column = columns.get(expression["term"]) if _is_comparison(expression) else None
    found = None if column is None else _compared(expression, column)
    return {} if column is None or found is None else {expression["term"]: found}


def _lines(text: str) -> list[str]:
    """Return the lines of a text; a record of a decider has its filters as lines."""
    try:
        recorded = json.loads(text)
        return [json.dumps(one) for one in recorded["filters"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return text.splitlines()


def _read(line: str, number: int) -> tuple[Any, int]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"line {number} is not JSON", field="filters") from problem
    if not isinstance(read, dict) or "filter" not in read:
        raise InvalidInput(
            f'line {number} has no filter: expected a scan report, or {{"filter": EXPRESSION, "times": 1}}',
            field="filters",
        )
    times = read.get("times", 1)
    if type(times) is not int or times < 1:
        raise InvalidInput(f"line {number}: times is {times!r} and not a whole number above 0", field="filters")
    compares_values(read["filter"], f"line {number}")
    return read["filter"], times


def _terms(expression: Any, depth: int) -> Iterator[str]:
    """Yield the columns that an expression compares with values; raises KeyError where a part is missing."""
    if depth > MAX_DEPTH:
        raise RecursionError
    kind = expression.get("type") if isinstance(expression, dict) else None
    if kind in ("and", "or"):
        yield from _terms(expression["left"], depth + 1)
        yield from _terms(expression["right"], depth + 1)
    elif _is_comparison(expression):
        yield expression["term"]


def _is_comparison(expression: Any) -> bool:
    if not isinstance(expression, dict) or not isinstance(expression.get("term"), str):
        return False
    kind = expression.get("type")
    if kind == "in":
        return isinstance(expression.get("values"), list) and bool(expression["values"])
    return kind in ("eq", "starts-with", *_ABOVE, *_BELOW) and "value" in expression


def _compared(expression: Mapping[str, Any], column: PartitionColumn) -> Wanted | None:
    """Return the values that a comparison wants; None if they are not of the column's type."""
    kind = expression["type"]
    values = expression["values"] if kind == "in" else [expression["value"]]
    if any(isinstance(value, str) and _HIDDEN.fullmatch(value) for value in values):
        return Hidden(len(values) if kind in ("in", "eq") else 0)
    if kind == "starts-with":
        span = key_range(values[0], f"{values[0]}{_LAST_CHARACTER * 8}", column.type)
        return None if span is None else (span,)
    points = [key_range(value, value, column.type) for value in values]
    known = [point for point in points if point is not None]
    if len(known) < len(points):
        return None
    if kind in _ABOVE:
        return ((known[0][0], None),)
    return ((None, known[0][1]),) if kind in _BELOW else tuple(known)


def _both(left: Wanted, right: Wanted) -> Wanted:
    if isinstance(left, Hidden) and isinstance(right, Hidden):
        return max(left, right, key=lambda one: one.points)
    if isinstance(left, Hidden) or isinstance(right, Hidden):
        return left if isinstance(left, Hidden) else right
    crossed = ((_most(a[0], b[0]), _least(a[1], b[1])) for a in left for b in right)
    return tuple((low, high) for low, high in crossed if low is None or high is None or low <= high)


def _either(left: Wanted, right: Wanted) -> Wanted:
    if isinstance(left, Hidden) and isinstance(right, Hidden):
        return Hidden(left.points + right.points if left.points and right.points else 0)
    if isinstance(left, Hidden) or isinstance(right, Hidden):
        return Hidden(0)
    return (*left, *right)


def _most(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


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
