"""AutoAnalyze: replays each table's history under other settings, and advises those that would have served better.

Where reads with filters were reported, orders are compared, too, and bounds that files lack; where files are kept that
no version needs, a vacuum; where the log is long, checkpoints. The change that saves most is advised.

It has a share of one core, and a tenth of that while jobs or refreshes wait, or others use the machine. Deciders take
turns by a lease. A table is due once a day, if enough was committed since its last analysis. Applied advice is judged
by the commits that follow.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from time import process_time
from typing import TypeVar

import structlog

from decider.advice.analysis import MIN_COMMITS, analyze, is_in_force, judge
from decider.advice.bounds_advice import analyze_bounds, judge_bounds
from decider.advice.checkpoint_advice import analyze_checkpoint, judge_checkpoint
from decider.advice.cpu_budget import CpuBudget, run_paced
from decider.advice.order_advice import FilteredReads, OrderReading, analyze_order, judge_order
from decider.advice.order_kinds import KINDS, is_clustered, needs_owner
from decider.advice.vacuum_advice import analyze_vacuum, judge_vacuum, may_be_vacuumed
from decider.background.runner import Schedule
from decider.formats.registry import TableFormats
from decider.formats.table_format import VacuumPreview
from decider.state.effective_policy import EffectivePolicy
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.advice_records import Advice, AdviceStatus, Analysis
from decider.store.tables.advice_store import AdviceStore
from decider.store.tables.read_counts import ReadCounts
from decider.store.tables.table_state import TableStateStore
from decider.tracking.shared_defaults import SharedDefaults
from decider.whatif.comparison import CostModel, Tick
from decider.whatif.trace_reader import TableTrace, comparable_columns, read_history
from shared.errors import Corrupt, InvalidInput, LakewrightError, Unsupported
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.policy.policy import Policy
from shared.table import TableId, TableMetadata, TableRef

EVERY_S = 1.0
"""Seconds between two tables; the pauses of the budget come on top."""

RETRY_S = 60.0
"""Pause after a failure of Redis."""

LIST_EVERY_MS = 600_000
"""Milliseconds between two searches for due tables, once all are done: one read of each table's version."""

AGAIN_MS = 20 * 3_600_000
"""Time between two analyses of a table: once a day, at any hour."""

JUDGED_WITHIN_MS = 30 * 24 * 3_600_000
"""Time in which an applied advice is judged alone; afterwards, others are offered: what judges it may be gone."""

MAX_COMMITS = 500
"""Commits that are replayed, the newest ones: they show a habit, and take a second or two of one core."""

MAX_FILES = 20_000
"""Live files of a table that is analyzed without a request: reading more of them would delay other tables."""

LOOK_EVERY_S = 1.0
"""Seconds between two looks at the queue while a table is analyzed."""

PAGE = 1_000
"""Tables whose versions one round trip reads."""

PRICES = CostModel()
"""Assumed costs, as in what-if; their tail is replaced by the time since the last commit."""

NEVER_ANALYZED = Analysis(0, -1)

_T = TypeVar("_T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AdviceSources:
    """Where AutoAnalyze reads tables from; twins: other names of a table, with metadata of their own."""

    registry: TableRegistry
    states: TableStateStore
    formats: TableFormats
    defaults: SharedDefaults
    reads: ReadCounts
    twins: Callable[[TableRef, TableMetadata], Awaitable[tuple[str, ...]]]


class AnalysisOutcome(StrEnum):
    """Result of one pass."""

    IDLE = "idle"
    ADVISED = "advised"
    NOTHING = "nothing"
    JUDGED = "judged"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """One pass: the table, if one was due, and how much CPU time it took, the reading of its log included."""

    outcome: AnalysisOutcome
    table: str = ""
    cpu_s: float = 0.0


IDLE = AnalysisResult(AnalysisOutcome.IDLE)


class AutoAnalyze:
    """Analyzes one due table per pass."""

    def __init__(
        self,
        store: AdviceStore,
        sources: AdviceSources,
        *,
        share: float,
        has_jobs: Callable[[], Awaitable[bool]],
        is_needed: Callable[[], bool],
        now_ms: Callable[[], int],
    ) -> None:
        """Set the share of one core, and how to see that others have work.

        has_jobs: whether jobs wait or run. is_needed: whether refreshes or other programs want the cores.
        """
        self.schedule = Schedule(EVERY_S, "auto_analyze_failed", retry_s=RETRY_S)
        self._store = store
        self._sources = sources
        self._has_jobs = has_jobs
        self._now_ms = now_ms
        self._are_jobs_there = False
        self._budget = CpuBudget(share, lambda: self._are_jobs_there or is_needed())
        self._due: deque[TableId] = deque()
        self._listed_ms: int | None = None

    async def run_once(self) -> AnalysisResult:
        """Analyze the table that has waited longest; IDLE where none is due or another decider has the lease."""
        is_listing_due = self._listed_ms is None or self._now_ms() - self._listed_ms >= LIST_EVERY_MS
        if not self._due and not is_listing_due:
            return IDLE
        if not await self._store.acquire():
            self._due.clear()
            return IDLE
        if not self._due:
            self._listed_ms = self._now_ms()
            self._due.extend(await self._find_due())
        table = await self._next()
        if table is None:
            return IDLE
        self._are_jobs_there = await self._has_jobs()
        started_s = process_time()
        try:
            outcome = await self._analyze(table)
        except LakewrightError as problem:
            log.warning("analysis_failed", table=table.name, error=str(problem))
            outcome = await self._failed(table, str(problem))
        except Exception as problem:
            # Logs are written by anyone: one that a replay cannot handle must not end a decider that follows others.
            log.exception("analysis_crashed", table=table.name)
            outcome = await self._failed(table, f"unexpected {type(problem).__name__}; see the log of the service")
        return AnalysisResult(outcome, table.name, process_time() - started_s)

    async def _failed(self, table: TableRef, problem: str) -> AnalysisOutcome:
        version = (await self._sources.states.versions([table.id])).get(table.id, -1)
        await self._store.set_analysis(table.id, Analysis(self._now_ms(), version, problem))
        return AnalysisOutcome.FAILED

    async def _next(self) -> TableRef | None:
        """Return the next due table that is still registered."""
        while self._due:
            table = await self._sources.registry.get(self._due.popleft())
            if table is not None:
                return table
        return None

    async def _find_due(self) -> list[TableId]:
        """Return the due tables, those that have waited longest first."""
        analyses = await self._store.analyses()
        tables = [table.id async for table in self._sources.registry.all()]
        due: list[tuple[int, TableId]] = []
        for start in range(0, len(tables), PAGE):
            versions = await self._sources.states.versions(tables[start : start + PAGE])
            for table, version in versions.items():
                last = analyses.get(table, NEVER_ANALYZED)
                is_rested = self._now_ms() - last.at_ms >= AGAIN_MS
                # A table that was created again starts at version 0.
                if is_rested and (version - last.version >= MIN_COMMITS or version < last.version):
                    due.append((last.at_ms, table))
        return [table for _, table in sorted(due)]

    async def _analyze(self, table: TableRef) -> AnalysisOutcome:
        state = await self._sources.states.state(table.id)
        if state is None:
            return AnalysisOutcome.NOTHING
        files = state.summary.files
        if files > MAX_FILES:
            raise InvalidInput(
                f"the table has {files:,} files, and at most {MAX_FILES:,} are analyzed without a request; run "
                f"`lakewright what-if {table.name}`"
            )
        advice = await self._store.read(table.id)
        trace = await self._read(table, advice, state.version)
        in_force = self._sources.defaults.current.resolve(
            table,
            trace.metadata.configuration,
            state.last_good,
            replace(state.log_status, refusal=None, format=trace.metadata.format, typical_file_bytes=0),
        )
        now_ms = self._now_ms()
        if advice is not None and _is_done(advice, trace, in_force.policy):
            # The owner changed the properties, a process died in between, or no decider saw the end of the run.
            now: Advice | None = replace(
                advice,
                status=AdviceStatus.APPLIED,
                changed_ms=now_ms,
                applied_version=state.version,
                by_owner=advice.status is AdviceStatus.OPEN,
            )
            outcome = AnalysisOutcome.WAITING
        elif advice is not None and advice.status is AdviceStatus.APPLIED:
            now, outcome = await self._judged(table, advice, trace, now_ms)
            if outcome is AnalysisOutcome.WAITING and now_ms - advice.changed_ms > JUDGED_WITHIN_MS:
                now, outcome = await self._advised(table, advice, trace, in_force, now_ms)
        else:
            now, outcome = await self._advised(table, advice, trace, in_force, now_ms)
        if now != advice:
            await self._store.replace(table.id, advice, now)
        await self._store.set_analysis(table.id, Analysis(now_ms, state.version))
        return outcome

    async def _read(self, table: TableRef, advice: Advice | None, version: int) -> TableTrace:
        """Read the commits to replay: the newest ones, and for a judgement only those since the change."""
        commits = MAX_COMMITS
        if advice is not None and advice.status is AdviceStatus.APPLIED and version > advice.applied_version >= 0:
            commits = min(commits, version - advice.applied_version)
        trace = await self._charged(read_history(self._sources.formats.open(table.location), max_commits=commits))
        if trace.contradiction:
            raise Corrupt(trace.contradiction)
        return trace

    async def _charged(self, reading: Awaitable[_T]) -> _T:
        """Wait for a log to be read, and then pause as the budget asks for.

        What else the process does meanwhile counts, too: the budget is kept, and what is unknown is not free.
        """
        started_s = process_time()
        found = await reading
        await asyncio.sleep(self._budget.pause_s(process_time() - started_s))
        return found

    async def _read_order(self, table: TableRef, trace: TableTrace) -> OrderReading:
        """Read what reads and bounds of the table's files say of orders."""
        reads = FilteredReads.of(await self._sources.reads.read(table.id))
        if not reads.per_hour:
            return OrderReading(reads, ())
        reader = self._sources.formats.open(table.location)
        keyed, _ = await self._charged(comparable_columns(reader, trace, reads.columns))
        return OrderReading.of(reads, keyed)

    async def _preview_vacuum(
        self, table: TableRef, trace: TableTrace, policy: Policy, now_ms: int
    ) -> VacuumPreview | None:
        """Plan a vacuum of what commits have removed; None where none would run, or its plan cannot be made."""
        if await self._sources.twins(table, trace.metadata):
            return None
        reader = self._sources.formats.open(table.location)
        try:
            found = await self._charged(reader.plan_vacuum(policy, VacuumOptions(), now_ms))
        except (Unsupported, InvalidInput, Corrupt):
            return None
        is_refused = found.refusal is not None and VACUUM not in found.refusal.allows
        return None if is_refused else found

    async def _judged(
        self, table: TableRef, advice: Advice, trace: TableTrace, now_ms: int
    ) -> tuple[Advice, AnalysisOutcome]:
        order, held, bounds = advice.proof.order, advice.proof.held, advice.proof.bounds
        if advice.proof.log is not None:
            checkpoint = await self._sources.formats.open(table.location).checkpoint()
            found = judge_checkpoint(advice, advice.proof.log, trace, checkpoint, PRICES, now_ms)
        elif held is not None:
            preview = await self._preview_vacuum(table, trace, Policy.decode(advice.former), now_ms)
            found = None if preview is None else judge_vacuum(advice, held, trace, preview, PRICES, now_ms)
        elif bounds is not None:
            read = await self._read_order(table, trace)
            found = await self._paced(lambda _: judge_bounds(advice, bounds, trace, read, PRICES, now_ms))
        elif order is None:
            found = await self._paced(lambda tick: judge(advice, trace, PRICES, now_ms, tick))
        else:
            read = await self._read_order(table, trace)
            found = await self._paced(lambda tick: judge_order(advice, order, trace, read, PRICES, now_ms, tick))
        if found is None:
            return advice, AnalysisOutcome.WAITING
        log.info("advice_judged", table=advice.table, predicted=found.predicted_share, saved=found.saved_share)
        return replace(advice, status=AdviceStatus.JUDGED, judgement=found), AnalysisOutcome.JUDGED

    async def _advised(
        self, table: TableRef, advice: Advice | None, trace: TableTrace, in_force: EffectivePolicy, now_ms: int
    ) -> tuple[Advice | None, AnalysisOutcome]:
        found = [await self._paced(lambda tick: analyze(table.id, trace, in_force, PRICES, now_ms, tick))]
        kinds = [kind for kind in KINDS.values() if kind.may_be_set(trace, in_force.policy)]
        read = await self._read_order(table, trace)
        for kind in kinds:
            analyzed = partial(analyze_order, table.id, trace, in_force, read, PRICES, now_ms, kind=kind)
            found.append(await self._paced(analyzed))
        bounds = partial(analyze_bounds, table.id, trace, in_force.policy, read, PRICES, now_ms)
        found.append(await self._paced(lambda _: bounds()))
        if may_be_vacuumed(trace, in_force.policy, PRICES, now_ms):
            preview = await self._preview_vacuum(table, trace, in_force.policy, now_ms)
            if preview is not None:
                found.append(analyze_vacuum(table.id, trace, in_force.policy, preview, PRICES, now_ms))
        checkpoint = await self._sources.formats.open(table.location).checkpoint()
        found.append(analyze_checkpoint(table.id, trace, in_force.policy, checkpoint, PRICES, now_ms))
        dismissed = await self._store.dismissed(table.id)
        offered = [one for one in found if one is not None and one.id not in dismissed]
        if offered:
            return max(offered, key=lambda one: one.proof.saved_s_per_day), AnalysisOutcome.ADVISED
        # What was decided or judged stays to be seen until there is something new to say. A job that has not altered
        # the table a day later is lost, or waits where no actor is: the change is offered again.
        is_over = advice is not None and advice.status not in (AdviceStatus.OPEN, AdviceStatus.APPLYING)
        kept = advice if is_over else None
        return kept, AnalysisOutcome.NOTHING

    async def _paced(self, work: Callable[[Tick], _T]) -> _T:
        return await run_paced(self._budget, work, self._look, every_s=LOOK_EVERY_S)

    async def _look(self) -> None:
        """See whether jobs have come or gone, and keep the lease."""
        self._are_jobs_there = await self._has_jobs()
        await self._store.acquire()


def _is_done(advice: Advice, trace: TableTrace, policy: Policy) -> bool:
    """Return whether the change of an advice that was not applied yet is in effect."""
    is_pending = advice.status in (AdviceStatus.OPEN, AdviceStatus.APPLYING)
    if advice.proof.bounds is not None:
        return is_pending and advice.change.items() <= trace.metadata.configuration.items()
    has_columns = is_clustered(trace) or not needs_owner(advice)
    return is_pending and has_columns and is_in_force(advice.change, policy)
