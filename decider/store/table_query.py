"""Filters, sorts and counts the rows of all tables; pure, so that a thread can do it while the event loop serves.

A row holds what a list shows of a table, from its registration, its state and its jobs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import compress
from operator import and_, attrgetter

from decider.state.table_summary import TableSummary
from decider.store.table_registry import StoredRefusal
from shared.table import TableId


class TableCondition(StrEnum):
    """What a table does at present; the first that applies, in this order."""

    REFUSED = "refused"
    UNREAD = "unread"
    DISABLED = "disabled"
    FAILING = "failing"
    RUNNING = "running"
    WAITING = "waiting"
    BACKING_OFF = "backing_off"
    IDLE = "idle"


class TableSort(StrEnum):
    """Column that rows are sorted by; rows of one value are sorted by name."""

    NAME = "name"
    TENANT = "tenant"
    FILES = "files"
    SMALL_FILES = "small_files"
    BYTES = "bytes"
    ENTROPY = "entropy"
    LAST_COMMIT = "last_commit"
    LAST_REWRITE = "last_rewrite"
    BACKLOG = "backlog"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class JobsByState:
    """Jobs of one table by state."""

    queued: int = 0
    running: int = 0
    delayed: int = 0
    quarantined: int = 0

    @property
    def waiting(self) -> int:
        """Jobs that have still to be run."""
        return self.queued + self.delayed + self.quarantined


NO_JOBS = JobsByState()


@dataclass(frozen=True, slots=True)
class TableRow:
    """One table; times in milliseconds since 1970, 0 if unknown; version is None before the first read."""

    id: TableId
    name: str
    tenant: str
    version: int | None = None
    commit_ms: int = 0
    summary: TableSummary | None = None
    refusal: StoredRefusal | None = None

    def condition(self, jobs: JobsByState) -> TableCondition:
        """Return what the table does, given its jobs."""
        if self.refusal is not None:
            return TableCondition.REFUSED
        if self.version is None:
            return TableCondition.UNREAD
        if self.summary is not None and not self.summary.is_enabled:
            return TableCondition.DISABLED
        if jobs is NO_JOBS:
            return TableCondition.IDLE
        counts = (
            (TableCondition.FAILING, jobs.quarantined),
            (TableCondition.RUNNING, jobs.running),
            (TableCondition.WAITING, jobs.queued),
            (TableCondition.BACKING_OFF, jobs.delayed),
        )
        return next((condition for condition, count in counts if count), TableCondition.IDLE)


@dataclass(frozen=True, slots=True)
class TableQuery:
    """Which rows are listed, in which order; empty text or None: no filter."""

    search: str = ""
    tenant: str = ""
    condition: TableCondition | None = None
    sort: TableSort = TableSort.NAME
    descending: bool = False


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Ids of the rows that a query selects, in order, and counts over all rows that the search selects."""

    ids: tuple[TableId, ...] = ()
    conditions: Mapping[TableCondition, int] = field(default_factory=dict)
    tenants: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilteredRows:
    """The rows that a query selects, by name, and the counts of its answer; the same for every order."""

    rows: list[TableRow]
    conditions: Mapping[TableCondition, int]
    tenants: Mapping[str, int]


def filter_rows(rows: Iterable[TableRow], jobs: Mapping[str, JobsByState], query: TableQuery) -> FilteredRows:
    """Select rows; a filter does not change the counts of its own field, so that a client can offer the others.

    No object is made per row: the garbage collector would visit all of them while requests wait.
    """
    needle = query.search.casefold()
    listed = [row for row in rows if not needle or needle in row.name.casefold() or needle in row.tenant.casefold()]
    listed.sort(key=attrgetter("name"))
    conditions = [row.condition(jobs.get(row.id, NO_JOBS)) for row in listed]
    tenants = [row.tenant for row in listed]
    fits_tenant = [not query.tenant or tenant == query.tenant for tenant in tenants]
    fits_condition = [query.condition is None or condition is query.condition for condition in conditions]
    return FilteredRows(
        list(compress(listed, map(and_, fits_tenant, fits_condition))),
        Counter(compress(conditions, fits_tenant)),
        Counter(compress(tenants, fits_condition)),
    )


def order(filtered: FilteredRows, jobs: Mapping[str, JobsByState], query: TableQuery) -> TableSelection:
    """Sort the rows that a query selects."""
    key = _sort_key(query.sort, jobs)
    found = filtered.rows
    if key is not None:
        found = sorted(found, key=key, reverse=query.descending)
    elif query.descending:
        found = found[::-1]
    return TableSelection(tuple([row.id for row in found]), filtered.conditions, filtered.tenants)


def _sort_key(sort: TableSort, jobs: Mapping[str, JobsByState]) -> Callable[[TableRow], float | str] | None:
    """Return what rows are sorted by; None for their names."""
    if sort is TableSort.CONDITION:
        places = {condition: place for place, condition in enumerate(TableCondition)}
        return lambda row: places[row.condition(jobs.get(row.id, NO_JOBS))]
    if sort is TableSort.BACKLOG:
        return lambda row: jobs.get(row.id, NO_JOBS).waiting
    return _VALUES.get(sort)


def _of_summary(value: Callable[[TableSummary], float]) -> Callable[[TableRow], float]:
    """Return a sort key; rows without a summary sort as the smallest."""
    return lambda row: -1.0 if row.summary is None else value(row.summary)


_VALUES: Mapping[TableSort, Callable[[TableRow], float | str]] = {
    TableSort.TENANT: lambda row: row.tenant,
    TableSort.FILES: _of_summary(lambda one: one.files),
    TableSort.SMALL_FILES: _of_summary(lambda one: one.small_files),
    TableSort.BYTES: _of_summary(lambda one: one.bytes),
    TableSort.ENTROPY: _of_summary(lambda one: one.rms_shortfall),
    TableSort.LAST_COMMIT: lambda row: row.commit_ms,
    TableSort.LAST_REWRITE: _of_summary(lambda one: one.last_rewrite_ms),
}
