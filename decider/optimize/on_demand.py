"""Ad-hoc requests: a person asks for a rewrite now, and gets either jobs or the reason why there are none.

A request goes the same way as an event: the log is followed, the state decides, the queue merges. It may set aside
the tolerance and a switched-off table, but never the promotion rule, which is what bounds the bytes rewritten, and
never a refusal, which is what keeps the table whole.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from itertools import groupby

import structlog

from decider.decide import ledger
from decider.decide.decision import Decision, corrected, decide_state
from decider.optimize.partition_selector import Selector, select
from decider.state.effective_policy import LogFacts
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.table_state import TableState, TableStateStore
from decider.tracking.commit_batch import job_spec
from decider.tracking.log_cache import TrackedLog
from decider.tracking.shared_defaults import DefaultsProvider
from decider.tracking.tracker import TableTracker
from shared.errors import RetryableError
from shared.layout.eligibility import Reason, is_purgeable
from shared.layout.planner import Plan, plan
from shared.partition_filter import permits
from shared.policy import Policy, PortablePaths
from shared.queue import commands, queries
from shared.queue.model import Band, EnqueueOutcome, JobId, JobRequest, JobState
from shared.refusals import Refusal, refusal
from shared.table import PartitionColumn, PartitionKey, TableRef

MAX_JOBS = 1_000
"""Jobs that one request may cause: half a second of one Redis core; whoever wants more asks again."""

log = structlog.get_logger()


class RequestIgnored(StrEnum):
    """Why a request changed nothing."""

    NOTHING_TO_DO = "nothing_to_do"
    ALREADY_RUNNING = "already_running"
    DISABLED = "disabled"
    REFUSED = "refused"

    @property
    def sentence(self) -> str:
        """The reason as one sentence for people."""
        return _SENTENCES[self]


_SENTENCES = {
    RequestIgnored.NOTHING_TO_DO: "No requested partition is eligible for a rewrite; see `reasons`.",
    RequestIgnored.ALREADY_RUNNING: "Every eligible partition is already being rewritten.",
    RequestIgnored.REFUSED: "A rewrite could damage the table, so it is refused; `force` does not override that.",
    RequestIgnored.DISABLED: "Optimization is disabled for this table; repeat with force=true to run it anyway.",
}


@dataclass(frozen=True, slots=True)
class OptimizeCommand:
    """What is asked for: which cells (none named: all), how urgently, and whether tolerance and switch count."""

    partitions: tuple[Selector, ...] = ()
    band: Band = Band.URGENT
    force: bool = False


@dataclass(frozen=True, slots=True)
class RequestedJob:
    """A job that a request led to, and whether it is new, joined a waiting one, or follows a running one."""

    id: JobId
    cell: PartitionKey
    outcome: EnqueueOutcome
    bytes: int
    files_replaced: int


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """What became of a request; `reasons` counts the cells that got no job, `left_out` those beyond the bound.

    `refusal` is why the table must not be rewritten at all.
    """

    version: int
    columns: tuple[PartitionColumn, ...]
    jobs: tuple[RequestedJob, ...] = ()
    ignored: RequestIgnored | None = None
    reasons: Mapping[Reason, int] = field(default_factory=dict)
    running: int = 0
    left_out: int = 0
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a rewrite would do on the live snapshot: the plans with work, those that remove most first.

    A table that is refused has a `refusal` and no plan.
    """

    version: int
    columns: tuple[PartitionColumn, ...]
    plans: tuple[Plan, ...]
    policy: Policy
    ignored: RequestIgnored | None
    reasons: Mapping[Reason, int]
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class _RankedDecisions:
    """The decisions that ask for a rewrite, best first, and how many cells got none for which reason."""

    wanted: tuple[tuple[Decision, JobRequest], ...]
    reasons: Counter[Reason]


class OnDemandOptimizer:
    """Turns requests into jobs, or into plans that nobody runs."""

    def __init__(
        self,
        queue: AsyncQueueExecutor,
        follower: TableTracker,
        open_log: Callable[[str], TrackedLog],
        now_ms: Callable[[], int],
        *,
        standing: DefaultsProvider,
    ) -> None:
        self._queue = queue
        self._states = TableStateStore(queue)
        self._follower = follower
        self._open_log = open_log
        self._now_ms = now_ms
        self._standing = standing

    async def optimize(self, table: TableRef, request: OptimizeCommand) -> OptimizeResult:
        """Bring the table's state up to its log and queue what is worth it.

        Raises InvalidInput for partitions that the table does not have, and whatever following the log raises.
        """
        await self._follower.follow(table)
        cursor = await self._states.cursor(table.id)
        if cursor is None:
            raise RetryableError(f"table {table.name} was removed meanwhile; register it again")
        calibration = await self._states.calibration(table.id)
        policy = calibration.learned(self._in_force(table, cursor, request))
        states = await self._states.all_cells(table.id)
        columns = cursor.metadata.partition_columns
        chosen = select(states, columns, request.partitions)
        all_paths = policy.portable_paths is PortablePaths.ALWAYS
        heavy = await self._purgeable(table, [c for c in chosen if all_paths or states[c].dv_files], policy)
        decisions = [
            corrected(decide_state(cell, states[cell], policy, cursor.version, heavy[cell], columns), calibration)
            for cell in chosen
        ]
        # Whoever asks does not want to wait for other commands; but each group is committed by itself beside them.
        at_ms = self._now_ms()
        decisions = [replace(made, heat=cursor.heat.share(made.cell, at_ms)) for made in decisions]
        found = _sort(table, decisions, request, cursor, policy)
        jobs, running = await self._enqueue(table, found.wanted[:MAX_JOBS], policy)
        return OptimizeResult(
            version=cursor.version,
            columns=columns,
            jobs=tuple(jobs),
            ignored=_ignored(policy, has_work=bool(jobs), is_running=bool(running)),
            reasons=found.reasons,
            running=running,
            left_out=max(0, len(found.wanted) - MAX_JOBS),
            refusal=cursor.refusal,
        )

    async def _purgeable(self, table: TableRef, cells: Sequence[PartitionKey], policy: Policy) -> Counter[PartitionKey]:
        """Count the files of these cells that are rewritten even alone, which the rolling state cannot tell.

        The log is read for that only where a cell has files with deletion vectors, or where paths count.
        """
        if not cells or (policy.delete_ratio is None and policy.portable_paths is not PortablePaths.ALWAYS):
            return Counter()
        snapshot = await self._open_log(table.location).snapshot()
        wanted = set(cells)
        return Counter(file.cell for file in snapshot.files if file.cell in wanted and is_purgeable(file, policy))

    async def dry_run(self, table: TableRef, request: OptimizeCommand) -> DryRun:
        """Plan on the live snapshot and change nothing."""
        snapshot = await self._open_log(table.location).snapshot()
        cursor = await self._states.cursor(table.id)
        last_good = cursor.last_good if cursor else {}
        refused = refusal(snapshot.metadata, snapshot.protocol)
        facts = LogFacts(refused, cursor is not None and cursor.is_stopped)
        policy = self._standing.current.effective(table, snapshot.metadata.configuration, last_good, facts).policy
        policy = (await self._states.calibration(table.id)).learned(_forced(policy) if request.force else policy)
        files = sorted(snapshot.files, key=lambda file: file.cell)
        by_cell = {cell: tuple(group) for cell, group in groupby(files, key=lambda file: file.cell)}
        columns = snapshot.metadata.partition_columns
        chosen = select(by_cell, columns, request.partitions)
        is_open = policy.enabled and refused is None
        inside = [cell for cell in chosen if permits(policy.filter, cell, columns)] if is_open else []
        plans = [plan(cell, by_cell[cell], policy) for cell in inside]
        work = sorted((made for made in plans if made.groups), key=lambda made: (-made.files_removed, made.cell))
        reasons = Counter(made.worth.reason for made in plans if not made.groups)
        if len(inside) < len(chosen):
            why = Reason.FILTERED if is_open else Reason.DISABLED if refused is None else Reason.REFUSED
            reasons[why] += len(chosen) - len(inside)
        ignored = _ignored(policy, has_work=bool(work), is_running=False)
        return DryRun(snapshot.version, columns, tuple(work), policy, ignored, reasons, refused)

    def _in_force(self, table: TableRef, cursor: TableState, request: OptimizeCommand) -> Policy:
        policy = self._follower.effective(table, cursor).policy
        return _forced(policy) if request.force else policy

    async def _enqueue(
        self, table: TableRef, wanted: Sequence[tuple[Decision, JobRequest]], policy: Policy
    ) -> tuple[list[RequestedJob], int]:
        """Queue the jobs whose cells are not being rewritten already; return them and the number of the others."""
        jobs: list[RequestedJob] = []
        running = 0
        for decision, spec in wanted:
            live = await self._queue.run(queries.job(self._queue.name, spec.id))
            if live is not None and live.state is JobState.LEASED:
                running += 1
                continue
            done = await self._queue.run(
                commands.decide(
                    self._queue.name,
                    nonce=secrets.token_hex(16),
                    table=table.id,
                    job=spec,
                    record=ledger.encode(decision, policy, self._now_ms()),
                    ledger_kept=self._follower.ledger_kept,
                )
            )
            files_replaced = decision.prediction.files_replaced if decision.prediction else 0
            outcome = EnqueueOutcome(done.value)
            jobs.append(RequestedJob(spec.id, decision.cell, outcome, spec.cost_bytes, files_replaced))
        log.info("optimize_requested", table=table.name, jobs=len(jobs), running=running)
        return jobs, running


def _sort(
    table: TableRef, decisions: Sequence[Decision], request: OptimizeCommand, cursor: TableState, policy: Policy
) -> _RankedDecisions:
    reasons = Counter(made.reason for made in decisions if made.prediction is None)
    asked = (replace(made, reason=Reason.REQUESTED) for made in decisions if made.prediction is not None)
    specs = ((made, job_spec(table, made, policy, cursor.metadata, is_forced=request.force)) for made in asked)
    wanted = [(made, replace(spec, band=request.band, insistence=int(request.force))) for made, spec in specs]
    wanted.sort(key=lambda pair: (pair[1].priority, -pair[1].cost_bytes, pair[0].cell))
    return _RankedDecisions(tuple(wanted), reasons)


def _forced(policy: Policy) -> Policy:
    """Set aside switch and tolerance, and rewrite harmful paths; the promotion rule and a refusal stay."""
    return replace(policy.on_request, enabled=True, tolerance=Fraction(0))


def _ignored(policy: Policy, *, has_work: bool, is_running: bool) -> RequestIgnored | None:
    if has_work:
        return None
    if is_running:
        return RequestIgnored.ALREADY_RUNNING
    if policy.refused:
        return RequestIgnored.REFUSED
    return RequestIgnored.NOTHING_TO_DO if policy.enabled else RequestIgnored.DISABLED
