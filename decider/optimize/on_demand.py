"""Rewrites on demand: a person requests one now, and gets either jobs or the reason why there are none.

A request is processed like an event: the log is read, the state evaluated, and the queue merges the jobs. It may
override the tolerance and a table's switch, and ask for an idle compaction or a full rewrite; but in the other modes
never the promotion rule, which bounds the bytes rewritten, and never a refusal, which protects the table's rows.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from decider.decide import ledger
from decider.decide.action import Action
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, Trigger, TriggerSource
from decider.decide.evaluate import evaluate_each
from decider.decide.job_request import job_request
from decider.formats.table_format import TableReader
from decider.optimize.partition_selector import Selector, select
from decider.optimize.plan_table import PlanSelection, plan_table
from decider.optimize.run_terms import PLAIN, RunTerms
from decider.state.file_columns import count_live
from decider.store.queue.traced_jobs import enqueue
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.tables.table_state import TableStateStore
from decider.store.urgent_jobs import UrgentJobs
from decider.tracking.tracker import TableTracker
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.partition_stats import PartitionStats
from shared.layout.planner import Plan
from shared.partition_refusals import NOTHING, PartitionRefusals, TableFingerprint
from shared.policy.partition_filter import describe_moving
from shared.policy.policy import Policy
from shared.queue import commands, queries
from shared.queue.limits import MAX_PARTITIONS
from shared.queue.model import Band, EnqueueOutcome, JobId, JobRequest, JobState
from shared.refusals import Explained, Refusal
from shared.table import PartitionColumn, PartitionKey, TableMetadata, TableRef

MAX_JOBS = 1_000
"""Jobs that one request may enqueue: half a second of one Redis core; for more, repeat the request."""

log = structlog.get_logger()


class RequestIgnored(Explained):
    """Why a request led to no job."""

    NOTHING_TO_DO = "nothing_to_do", "No requested partition is eligible for a rewrite."
    NO_PARTITION = "no_partition", "The table has no such partition."
    ALREADY_RUNNING = "already_running", "Every eligible partition is already being rewritten."
    DISABLED = "disabled", "Optimization is disabled for this table; repeat with force=true to run it anyway."
    REFUSED = "refused", "A rewrite could damage the table, so it is refused; `force` does not override that."


@dataclass(frozen=True, slots=True)
class OptimizeCommand:
    """A request: partitions and kinds of actions (none: all), band, and the terms of the run."""

    partitions: tuple[Selector, ...] = ()
    actions: tuple[str, ...] = ()
    band: Band = Band.URGENT
    terms: RunTerms = PLAIN


@dataclass(frozen=True, slots=True)
class RequestedJob:
    """A job that a request led to; `outcome`: it is new, merged into a waiting one, or a rerun of a running one."""

    id: JobId
    action: str
    partition: PartitionKey
    outcome: EnqueueOutcome
    bytes: int
    files_replaced: int


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """Result of a request; `left_out` counts the jobs beyond the bound.

    reasons: number of partitions by why an action, or all, has no job for them. running: jobs that rewrite selected
    partitions already. refusal: why the table must not be rewritten at all.
    """

    version: int
    columns: tuple[PartitionColumn, ...]
    jobs: tuple[RequestedJob, ...] = ()
    ignored: RequestIgnored | None = None
    reasons: Mapping[DecisionReason, int] = field(default_factory=dict)
    running: tuple[JobId, ...] = ()
    left_out: int = 0
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """Effect of a rewrite on the live snapshot: the plans with work, those that remove most files first.

    A table that is refused has a `refusal` and no plan. notes: what a filter that moves is now.
    """

    version: int
    columns: tuple[PartitionColumn, ...]
    plans: tuple[Plan, ...]
    policy: Policy
    ignored: RequestIgnored | None
    reasons: Mapping[DecisionReason, int]
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _RankedDecisions:
    """The decisions that lead to jobs, best first, and the number of partitions by why an action has no job."""

    wanted: tuple[tuple[Decision, JobRequest], ...]
    reasons: Counter[DecisionReason]


class OnDemandOptimizer:
    """Turns requests into jobs, or into plans for a dry run."""

    def __init__(
        self,
        queue: AsyncQueueExecutor,
        tracker: TableTracker,
        open_table: Callable[[str], TableReader],
        now_ms: Callable[[], int],
    ) -> None:
        self._queue = queue
        self._states = TableStateStore(queue)
        self._tracker = tracker
        self._open_table = open_table
        self._now_ms = now_ms
        self._urgent = UrgentJobs(queue.redis)

    async def optimize(self, table: TableRef, request: OptimizeCommand) -> OptimizeResult:
        """Bring the table's state up to its log, and queue a job for each action with work in a selected partition.

        Raises InvalidInput for partitions that the table does not have and for terms without effect, and whatever
        following the log raises.
        """
        actions = self._actions(request)
        found = await self._tracker.load(table)
        cursor, own = found.state, found.policy
        calibration = await self._states.calibration(table.id)
        effective = request.terms.apply(own)
        refused = await self._refused(table, cursor.metadata, own, cursor.version)
        known = {} if request.terms.force else refused
        context = found.deciding(calibration, self._now_ms(), policy=effective, refusals=known)
        states = await self._partitions(table, context.policy, calibration.applied_to(own))
        chosen = select(states, context.columns, request.partitions)
        if request.terms.force:
            await self._forget(table, [partition for partition in chosen if partition in refused])
            refused = {}
        purgeable = await self._tracker.files_to_purge(table, {one: states[one] for one in chosen}, effective, refused)
        decisions = [
            decision
            for partition in chosen
            for decision in evaluate_each(
                context,
                partition,
                states[partition],
                _trigger(cursor.version, request, purgeable[partition]),
                actions,
            )
        ]
        ranked = _ranked(context, decisions)
        if not any(action.is_on(context.policy) for action in actions):
            ranked.reasons[Reason.SWITCHED_OFF] = len(chosen)
        matches = not request.partitions or bool(chosen)
        jobs, running = await self._enqueue(context, ranked.wanted[:MAX_JOBS])
        return OptimizeResult(
            version=cursor.version,
            columns=context.columns,
            jobs=tuple(jobs),
            ignored=_ignored(effective, has_work=bool(jobs), is_running=bool(running), matches=matches),
            reasons=ranked.reasons,
            running=tuple(running),
            left_out=max(0, len(ranked.wanted) - MAX_JOBS),
            refusal=found.refusal,
        )

    async def _refused(
        self, table: TableRef, metadata: TableMetadata, policy: Policy, version: int
    ) -> dict[PartitionKey, PartitionRefusals]:
        """Return the refusals that hold for the table, by partition."""
        found = await self._states.refusals(table.id)
        return found.in_force(TableFingerprint.of(metadata, policy), version)

    async def _forget(self, table: TableRef, partitions: Sequence[PartitionKey]) -> None:
        """Forget what is remembered of partitions: a person wants another attempt."""
        for start in range(0, len(partitions), MAX_PARTITIONS):
            some = partitions[start : start + MAX_PARTITIONS]
            await self._queue.run(commands.forget_refusals(self._queue.name, table.id, some))

    async def _partitions(self, table: TableRef, policy: Policy, own: Policy) -> Mapping[PartitionKey, PartitionStats]:
        """Return the partitions counted by the levels of a policy: from the state, or from the log for other levels."""
        if policy.size_levels == own.size_levels:
            return await self._states.all_partitions(table.id)
        live = await self._open_table(table.location).live_files()
        counts = await asyncio.to_thread(count_live, live, policy)
        return {partition: count.state for partition, count in counts.items()}

    async def dry_run(self, table: TableRef, request: OptimizeCommand) -> DryRun:
        """Plan on the live snapshot and change nothing."""
        snapshot = await self._open_table(table.location).snapshot()
        cursor = await self._states.state(table.id)
        in_force = self._tracker.effective_at(table, snapshot, cursor)
        calibration = await self._states.calibration(table.id)
        policy = calibration.applied_to(request.terms.apply(in_force.policy))
        if not request.terms.force:
            refused = await self._refused(table, snapshot.metadata, in_force.policy, snapshot.version)
            files = [one for one in snapshot.files if refused.get(one.partition, NOTHING).without((one,))]
            snapshot = replace(snapshot, files=tuple(files))
        selection = PlanSelection(request.partitions, request.terms.mode.rewrite_kind)
        now_ms = self._now_ms()
        found = plan_table(snapshot, selection, policy, self._actions(request), now_ms)
        plans = tuple(sorted(found.plans, key=lambda made: (-made.files_removed, made.partition)))
        matches = not request.partitions or found.partitions > 0
        ignored = _ignored(policy, has_work=bool(plans), is_running=False, matches=matches)
        notes = describe_moving(policy.filter, now_ms)
        return DryRun(found.version, found.columns, plans, policy, ignored, found.reasons, in_force.refusal, notes)

    def _actions(self, request: OptimizeCommand) -> tuple[Action, ...]:
        """Return the actions of a request; raises InvalidInput for one that is not known or cannot have its terms."""
        every = self._tracker.actions
        kinds = tuple(map(every.of, request.actions)) if request.actions else tuple(every)
        wanted = request.terms.kinds(request.actions)
        return tuple(action for action in kinds if action.kind in wanted) if wanted else kinds

    async def _within_allowance(
        self, context: DecisionContext, wanted: Sequence[tuple[Decision, JobRequest]]
    ) -> Sequence[tuple[Decision, JobRequest]]:
        """Return the jobs, of which as many are urgent as the tenant may have; the others are like its own."""
        urgent = sum(spec.band is Band.URGENT for _, spec in wanted)
        if not urgent:
            return wanted
        allowed = await self._urgent.take(context.table.tenant, urgent, self._now_ms())
        own = Band[context.policy.priority.name]
        return [
            (made, spec if number < allowed else replace(spec, band=own)) for number, (made, spec) in enumerate(wanted)
        ]

    async def _enqueue(
        self, context: DecisionContext, wanted: Sequence[tuple[Decision, JobRequest]]
    ) -> tuple[list[RequestedJob], list[JobId]]:
        """Queue the jobs whose partitions are not being rewritten; return them, and those that run."""
        jobs: list[RequestedJob] = []
        running: list[JobId] = []
        for decision, spec in await self._within_allowance(context, wanted):
            live = await self._queue.run(queries.job(self._queue.name, spec.id))
            if live is not None and live.state is JobState.LEASED:
                running.append(spec.id)
                continue
            record = ledger.encode(decision, context)
            outcome = await enqueue(self._queue, spec, record, ledger_kept=self._tracker.ledger_kept)
            files_replaced = decision.prediction.files_replaced if decision.prediction else 0
            jobs.append(
                RequestedJob(spec.id, decision.action, decision.partition, outcome, spec.cost_bytes, files_replaced)
            )
        log.info("optimize_requested", table=context.table.name, jobs=len(jobs), running=len(running))
        return jobs, running


def _trigger(version: int, request: OptimizeCommand, purgeable: int) -> Trigger:
    terms = request.terms
    return Trigger(
        version,
        TriggerSource.REQUEST,
        terms.mode.rewrite_kind,
        purgeable=purgeable,
        band=request.band,
        is_forced=terms.force,
        is_custom=terms.is_custom,
    )


def _ranked(context: DecisionContext, decisions: Sequence[Decision]) -> _RankedDecisions:
    without_job = {(made.partition, made.reason) for made in decisions if made.prediction is None}
    reasons = Counter(reason for _, reason in without_job)
    wanted = [(made, job_request(context, made)) for made in decisions if made.prediction is not None]
    wanted.sort(key=lambda pair: (pair[1].priority, -pair[1].cost_bytes, pair[0].partition))
    return _RankedDecisions(tuple(wanted), reasons)


def _ignored(policy: Policy, *, has_work: bool, is_running: bool, matches: bool) -> RequestIgnored | None:
    if has_work:
        return None
    if is_running:
        return RequestIgnored.ALREADY_RUNNING
    if policy.traits.refused:
        return RequestIgnored.REFUSED
    if not matches:
        return RequestIgnored.NO_PARTITION
    return RequestIgnored.NOTHING_TO_DO if policy.enabled else RequestIgnored.DISABLED
