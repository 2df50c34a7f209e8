"""Filters, sorts and counts the rows of all tables; pure, so that a thread can do it while the event loop serves.

A row holds what a list shows of a table, from its registration, its state and its jobs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import compress
from operator import and_, attrgetter

from decider.state.table_summary import NOTHING_COUNTED, TableSummary
from decider.store.registry.table_registry import StoredRefusal
from shared.table import TableId


class TableCondition(StrEnum):
    """Present condition of a table; the first that applies, in this order."""

    REFUSED = "refused"
    UNREAD = "unread"
    FAILING = "failing"
    INVALID_PROPERTIES = "invalid_properties"
    DISABLED = "disabled"
    PAUSED = "paused"
    RUNNING = "running"
    OUTSIDE_WINDOW = "outside_window"
    OVER_BUDGET = "over_budget"
    WAITING = "waiting"
    BACKING_OFF = "backing_off"
    NOT_DUE = "not_due"
    COMPACT = "compact"


TOLERATED_EXCESS = 0.15
"""Excess, as a share of the target, below which a table counts as compact: the default tolerance of a partition."""


class TableSort(StrEnum):
    """Column that rows are sorted by; rows of one value are sorted by name."""

    NAME = "name"
    TENANT = "tenant"
    FILES = "files"
    SMALL_FILES = "small_files"
    BYTES = "bytes"
    EXCESS = "excess"
    LAST_COMMIT = "last_commit"
    LAST_REWRITE = "last_rewrite"
    BACKLOG = "backlog"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class JobsByState:
    """Jobs of one table by state, and whether they are paused, or wait for the table's work window or for a budget.

    failed: delayed jobs after a failure; the other delayed ones wait for their time.
    """

    queued: int = 0
    running: int = 0
    delayed: int = 0
    quarantined: int = 0
    failed: int = 0
    is_paused: bool = False
    is_outside_window: bool = False
    is_over_budget: bool = False

    @property
    def waiting(self) -> int:
        """Jobs that have still to be run."""
        return self.queued + self.delayed + self.quarantined


NO_JOBS = JobsByState()


@dataclass(frozen=True, slots=True)
class TableRow:
    """One table; times in milliseconds since 1970, 0 if unknown; version is None before the first read.

    `group`: the name of the group that it belongs to, or of the queue itself; empty before the first read.
    """

    id: TableId
    name: str
    tenant: str
    version: int | None = None
    commit_ms: int = 0
    summary: TableSummary | None = None
    refusal: StoredRefusal | None = None
    group: str = ""

    def condition(self, jobs: JobsByState) -> TableCondition:
        """Return what the table does, given its jobs."""
        summary = self.summary or NOTHING_COUNTED
        found = (
            (TableCondition.REFUSED, self.refusal),
            (TableCondition.UNREAD, self.version is None),
            (TableCondition.FAILING, jobs.quarantined),
            (TableCondition.INVALID_PROPERTIES, summary.has_invalid_properties),
            (TableCondition.DISABLED, not summary.is_enabled),
            (TableCondition.PAUSED, jobs.is_paused),
            (TableCondition.RUNNING, jobs.running),
            (TableCondition.OUTSIDE_WINDOW, jobs.is_outside_window and (jobs.queued or jobs.delayed)),
            (TableCondition.OVER_BUDGET, jobs.is_over_budget and jobs.delayed),
            (TableCondition.WAITING, jobs.queued),
            (TableCondition.BACKING_OFF, jobs.failed),
            (TableCondition.NOT_DUE, jobs.delayed or summary.excess_ratio >= TOLERATED_EXCESS),
        )
        return next((condition for condition, holds in found if holds), TableCondition.COMPACT)


@dataclass(frozen=True, slots=True)
class TableQuery:
    """Selection and order of listed rows; empty text or None: no filter."""

    search: str = ""
    tenant: str = ""
    group: str = ""
    condition: TableCondition | None = None
    sort: TableSort = TableSort.NAME
    descending: bool = False


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Ids of the rows that a query selects, in order, and counts over all rows that the search selects."""

    ids: tuple[TableId, ...] = ()
    conditions: Mapping[TableCondition, int] = field(default_factory=dict)
    tenants: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)


def select(rows: Iterable[TableRow], jobs: Mapping[str, JobsByState], query: TableQuery) -> TableSelection:
    """Filter, count and sort rows; a filter does not change the counts of its own field, so that others can be offered.

    No object is made per row: the garbage collector would visit all of them while requests wait.
    """
    needle = query.search.casefold()
    listed = [row for row in rows if not needle or needle in row.name.casefold() or needle in row.tenant.casefold()]
    listed.sort(key=attrgetter("name"))
    conditions = [row.condition(jobs.get(row.id, NO_JOBS)) for row in listed]
    tenants = [row.tenant for row in listed]
    groups = [row.group for row in listed]
    fits_tenant = [not query.tenant or tenant == query.tenant for tenant in tenants]
    fits_group = [not query.group or group == query.group for group in groups]
    fits_condition = [query.condition is None or condition is query.condition for condition in conditions]
    fits_both = list(map(and_, fits_tenant, fits_condition))
    found = list(compress(listed, map(and_, fits_both, fits_group)))
    key = _sort_key(query.sort, jobs)
    if key is not None:
        found.sort(key=key, reverse=query.descending)
    elif query.descending:
        found.reverse()
    return TableSelection(
        tuple([row.id for row in found]),
        Counter(compress(conditions, map(and_, fits_tenant, fits_group))),
        Counter(compress(tenants, map(and_, fits_condition, fits_group))),
        Counter(filter(None, compress(groups, fits_both))),
    )


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
    TableSort.EXCESS: _of_summary(lambda one: one.excess_ratio),
    TableSort.LAST_COMMIT: lambda row: row.commit_ms,
    TableSort.LAST_REWRITE: _of_summary(lambda one: one.last_rewrite_ms),
}
