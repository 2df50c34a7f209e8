"""Rebuilds a state from all live files and evaluates every partition, because a commit cannot be applied.

It reads the newest snapshot and replaces the table's partitions in one atomic step, as applied commits change them, so
any number of deciders may rebuild at any moment.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

import structlog

from decider.decide import ledger
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, Trigger
from decider.decide.evaluate import evaluate_each
from decider.decide.funnel import CommitCounter
from decider.decide.job_request import job_request
from decider.decide.table_action import table_timers
from decider.formats.table_format import TableReader
from decider.state.commit_pace import NO_COMMITS, UNKNOWN_PACE
from decider.state.contention import NO_CONTENTION
from decider.state.effective_policy import EffectivePolicy, LogStatus
from decider.state.file_columns import LiveFiles, count_live, live_ids_of
from decider.state.level_fit import NOT_FITTED
from decider.state.table_summary import TableSummary
from decider.state.target_fit import NO_TARGET
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.tables.ingest import StateUpdate, ingest
from decider.store.tables.table_queue_limits import (
    MOVING,
    announce_queue_limits,
    apply_queue_limits,
    hand_over_jobs,
    queue_limits_of,
)
from decider.store.tables.table_state import TableState, TableStateStore
from decider.store.tables.timer_queries import TimerStore
from decider.tracking.shared_defaults import DefaultsProvider
from shared.errors import Corrupt
from shared.jobs.payload import JobPayload
from shared.layout.cells.counts import CellFiles
from shared.layout.eligibility import Reason
from shared.layout.key_runs import NO_KEY_RUNS
from shared.layout.partition_count import PartitionCount
from shared.layout.removals import NO_REMOVALS, Removals
from shared.partition_refusals import PartitionRefusals, TableFingerprint
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.policy.properties import is_stopped_by_qbeast
from shared.queue import commands, queries
from shared.queue.limits import LEDGER_KEPT
from shared.queue.model import JobKey, Timer, TimerChange, job_id
from shared.table import PartitionKey, Snapshot, TableRef

RECORDS = 500
"""Decisions of one rebuild that go into the ledger, those with a job first: a table of very many partitions must not
push everything else out of it."""

log = structlog.get_logger()


class StateRebuilder:
    """Brings a table's state to its newest snapshot, whatever was stored before."""

    def __init__(
        self,
        queue: AsyncQueueExecutor,
        now_ms: Callable[[], int],
        defaults: DefaultsProvider,
        *,
        ledger_kept: int = LEDGER_KEPT,
        actions: ActionRegistry = ACTIONS,
    ) -> None:
        self._queue = queue
        self._actions = actions
        self._states = TableStateStore(queue)
        self._timers = TimerStore(queue)
        self._ledger_kept = ledger_kept
        self._now_ms = now_ms
        self._defaults = defaults

    async def rebuild(
        self,
        table: TableRef,
        reader: TableReader,
        old: TableState | None,
        reason: str,
        *,
        counters: Mapping[str, int] | None = None,
    ) -> TableState | None:
        """Count and evaluate every partition again; None if another process moved the cursor first.

        `reason` stays with the cursor, `counters` are counted with it. Raises InvalidInput or Corrupt where
        the log cannot be read, RetryableError where a store does not answer.
        """
        live = await reader.live_files()
        snapshot = live.head
        new, in_force = self._state_at(table, snapshot, old, reason)
        policy = in_force.policy
        new = _with_clustering(new, old, live, policy)
        if policy.vacuum:
            new = replace(new, removals=await _removals(reader, old, policy))
        # Before the cursor moves: if we end in between, the next call finds the same to do.
        old = await self._limited(table, old, new.queue_limits)
        last_rewrite_ms = 0 if old is None else old.last_rewrite_ms
        update, summary = await self._update(table, live, policy, new, last_rewrite_ms)
        is_recreated = old is not None and old.metadata.table_uuid != new.metadata.table_uuid
        known_bytes = 0 if old is None else old.summary.backlog_bytes
        if old is not None and not is_recreated and old.policy == new.policy:
            # Files of later commits are no backlog.
            undue_bytes = min(summary.undue_bytes, old.summary.undue_bytes)
            summary = replace(summary, backlog_bytes=min(summary.backlog_bytes, known_bytes), undue_bytes=undue_bytes)
        new = replace(new, summary=replace(summary, has_invalid_properties=bool(in_force.issues)))
        counter = CommitCounter.REBUILDS if old else CommitCounter.TABLES_INITIALIZED
        made = _backlog_counted(known_bytes, summary.backlog_bytes)
        update = replace(update, counters={counter: 1, **made, **(counters or {})})
        # A table that was created again starts over below the version of the jobs of its predecessor.
        newest = max(new.version, old.version if old else 0)
        idle: set[PartitionKey] = set()
        void = self._void_kinds(policy, is_recreated=is_recreated)
        if void:
            # Previous partitions, too: with other partition columns none of them is left.
            before = {partition async for partition, _ in self._states.iterate_partitions(table.id)}
            idle = before | {PartitionKey(partition) for partition in update.partitions}
            # Before the cursor moves, for the same reason; and after it, as a timer may have fired in between. Jobs of
            # a dropped table would outrank its successor's, whose versions start over.
            await self._withdraw(table, idle, newest, void)
        is_new_policy = old is not None and old.policy != new.policy
        if is_new_policy:
            await self._withdraw_switched_off(table, policy, newest)
        if not await ingest(self._queue, table.id, old=old, new=new, update=update):
            winner = await self._restore_winners_limits(table)
            if is_recreated and winner is not None:
                # The jobs that were cancelled may have been the winner's, so every partition is evaluated once more.
                return await self.rebuild(table, reader, winner, reason, counters=counters)
            return None
        await hand_over_jobs(self._queue, table.id, before="" if old is None else old.group, after=new.group)
        if void and not (is_recreated and policy.enabled):
            await self._withdraw(table, idle, newest, void)
        if is_new_policy:
            await self._withdraw_switched_off(table, policy, newest)
        log.info(
            "state_rebuilt",
            table=table.name,
            version=new.version,
            partitions=len(update.partitions),
            jobs=len(update.jobs),
            reason=reason,
        )
        return new

    def _state_at(
        self, table: TableRef, snapshot: Snapshot, old: TableState | None, reason: str
    ) -> tuple[TableState, EffectivePolicy]:
        """Return a table's state as of a snapshot, and the policy in force there."""
        last_good = old.last_good if old else {}
        same = old if old and old.metadata.table_uuid == snapshot.metadata.table_uuid else None
        log_status = replace(
            same.log_status if same else LogStatus(),
            refusal=snapshot.refusal,
            is_stopped_by_qbeast=_is_stopped(old, snapshot),
            format=snapshot.metadata.format,
        )
        in_force = self._defaults.current.resolve(table, snapshot.metadata.configuration, last_good, log_status)
        state = TableState(
            version=snapshot.version,
            metadata=snapshot.metadata,
            protocol=snapshot.protocol,
            policy=in_force.policy.state_version,
            digest=snapshot.digest,
            last_good=in_force.last_good,
            folded_ms=self._now_ms(),
            commit_ms=snapshot.timestamp_ms,
            rebuilds=old.rebuilds + 1 if old else 0,
            rebuild_reason=reason,
            contention=old.contention if old else NO_CONTENTION,
            is_stopped_by_qbeast=log_status.is_stopped_by_qbeast,
            queue_limits=queue_limits_of(in_force),
            group=self._defaults.current.group(in_force.policy),
            refusal=snapshot.refusal,
            removals=same.removals if same else NO_REMOVALS,
            commit_counts=same.commit_counts if same else NO_COMMITS,
            key_runs=(same.key_runs if same else NO_KEY_RUNS).rebuilt(
                snapshot.version, is_same_rule=same is not None and same.policy == in_force.policy.state_version
            ),
            level_fit=same.level_fit if same else NOT_FITTED,
            ingested=same.ingested if same else (),
            target_fit=same.target_fit if same else NO_TARGET,
            pace=same.pace if same else UNKNOWN_PACE,
            together_ms=same.together_ms if same else 0,
        )
        return state, in_force

    async def _update(
        self, table: TableRef, live: LiveFiles, policy: Policy, new: TableState, last_rewrite_ms: int
    ) -> tuple[StateUpdate, TableSummary]:
        """Count the live files, evaluate every partition; return one update that replaces all, and the sums of all."""
        calibration = await self._states.calibration(table.id)
        refusals = await self._states.refusals(table.id)
        ids = live_ids_of(live, refusals.stored) if refusals.stored else {}
        refused = refusals.among(ids, TableFingerprint.of(live.head.metadata, policy), new.version)
        context = DecisionContext.resolve(
            *(table, live.head.metadata, policy, calibration),
            contention=new.contention,
            at_ms=self._now_ms(),
            last_rewrite_ms=last_rewrite_ms,
            refusals=refused,
        )
        # In a thread: a million files take seconds, which other tables' events must not wait for.
        update, summary = await asyncio.to_thread(self._decided, context, live, refused)
        update = replace(update, refusals=tuple(refusals.changes(refused)))
        signals = replace(new.signals, new_commits=new.version + 1)
        made = table_timers(self._actions.table_actions, signals, context.policy, context.at_ms)
        of_table = [timer for timer in made if timer.change is not TimerChange.STOP]
        return replace(update, timers=[*await self._with_earlier(table, update.timers), *of_table]), summary

    def _decided(
        self, context: DecisionContext, live: LiveFiles, refused: Mapping[PartitionKey, PartitionRefusals]
    ) -> tuple[StateUpdate, TableSummary]:
        """Count the live files and evaluate every partition; files that are refused are not rewritten alone either."""
        counts = count_live(live, context.policy)
        for partition, known in refused.items():
            if (count := counts.get(partition)) is not None:
                counts[partition] = replace(count, purgeable=max(0, count.purgeable - known.purgeable))
        decisions = self._evaluate_all(context, live.head.version, counts)
        update = StateUpdate(
            partitions={partition: count.state.encode() for partition, count in counts.items()},
            jobs=[job_request(context, made) for made in decisions if made.prediction],
            ledger=_ledger_lines(context, decisions),
            reset=True,
            ledger_kept=self._ledger_kept,
            timers=[
                timer
                for action in self._actions
                if action.timers is not None
                for timer in action.timers.after_rebuild(counts, context.policy, context.at_ms, context.columns)
            ],
        )
        summary = TableSummary.of([count.state for count in counts.values()], context.policy, context.last_rewrite_ms)
        due_bytes = sum(made.prediction.state_bytes for made in decisions if made.prediction)
        small_bytes = sum(count.state.small_bytes for count in counts.values())
        return update, replace(summary, backlog_bytes=due_bytes, undue_bytes=max(0, small_bytes - due_bytes))

    async def _limited(self, table: TableRef, old: TableState | None, limits: str) -> TableState | None:
        """Set the queue limits of the next state; return the old one with their announcement, if they are others."""
        if old is not None and old.queue_limits != limits:
            await announce_queue_limits(self._queue, table.id, before=old.queue_limits, after=limits)
            old = replace(old, queue_limits=MOVING + limits)
        await apply_queue_limits(self._queue, table.id, limits)
        return old

    async def _restore_winners_limits(self, table: TableRef) -> TableState | None:
        """Set the queue limits of the state of the process that moved the cursor first; return that state."""
        winner = await self._states.state(table.id)
        await apply_queue_limits(self._queue, table.id, winner.queue_limits.removeprefix(MOVING) if winner else "")
        return winner

    def _evaluate_all(
        self, context: DecisionContext, version: int, counts: Mapping[PartitionKey, PartitionCount]
    ) -> list[Decision]:
        """Evaluate every partition for every action; those with work, done now or left to the writers, come first."""
        made = (
            decision
            for partition, count in counts.items()
            for decision in evaluate_each(
                context, partition, count.state, Trigger(version, purgeable=count.purgeable), self._actions
            )
        )
        return sorted(made, key=lambda one: one.prediction is None and one.reason is not Reason.DEFERRED_TO_WRITERS)

    async def _with_earlier(self, table: TableRef, made: Sequence[Timer]) -> Sequence[Timer]:
        """Return the timers of the partitions; one that is due earlier already, as a full rewrite may be, stays so."""
        if not any(timer.change is TimerChange.EARLIER for timer in made):
            return made
        before = await self._timers.all(table.id)
        return [
            replace(timer, fires_at_ms=min(timer.fires_at_ms, before.get(timer.name, timer.fires_at_ms)))
            if timer.change is TimerChange.EARLIER
            else timer
            for timer in made
        ]

    def _void_kinds(self, policy: Policy, *, is_recreated: bool) -> tuple[str, ...]:
        """Return the kinds of jobs that a table must not have: all of a disabled one, rewrites of a clustered one."""
        if is_recreated or not policy.enabled:
            return self._actions.kinds
        return tuple(kind for kind in self._actions.kinds if policy.has_own_layout and not policy.runs(kind))

    async def _withdraw(
        self, table: TableRef, partitions: Iterable[PartitionKey], version: int, kinds: Sequence[str]
    ) -> None:
        """Cancel the jobs of these kinds that this version of a table permits no more; a running one is asked to stop.

        Jobs of a later version stay: another caller has seen that the table was enabled again.
        """
        for partition in {WHOLE_TABLE, *partitions}:
            for kind in kinds:
                job = job_id(JobKey(table.id, partition, kind))
                await self._queue.run(commands.cancel(self._queue.name, job, nonce=uuid4().hex, max_version=version))

    async def _withdraw_switched_off(self, table: TableRef, policy: Policy, version: int) -> None:
        """Cancel jobs on the whole table that no actor can run, or whose action is off and that no person requested."""
        for action in self._actions.table_actions:
            job = job_id(JobKey(table.id, WHOLE_TABLE, action.kind))
            is_wanted = action.is_on(policy) and policy.runs(action.kind)
            found = None if is_wanted else await self._queue.run(queries.job(self._queue.name, job))
            if found is None:
                continue
            is_requested = JobPayload.decode(found.payload).reason == Reason.REQUESTED
            if not (is_requested and policy.runs(action.kind)):
                await self._queue.run(commands.cancel(self._queue.name, job, nonce=uuid4().hex, max_version=version))


def _backlog_counted(before_bytes: int, after_bytes: int) -> dict[str, int]:
    """Count a backlog that was found, or what is left of one that has become smaller."""
    counts: dict[str, int] = {
        CommitCounter.BACKLOG_BYTES_FOUND: max(0, after_bytes - before_bytes),
        CommitCounter.BACKLOG_BYTES_DONE: max(0, before_bytes - after_bytes),
    }
    return {name: count for name, count in counts.items() if count}


def _with_clustering(new: TableState, old: TableState | None, live: LiveFiles, policy: Policy) -> TableState:
    """Return the state with the files of a clustered table counted."""
    if policy.has_cells:
        known = CellFiles() if old is None or old.cells is None else old.cells
        return replace(new, cells=known.counted_again(live.clustered(in_cells=True)))
    return replace(new, clustered=live.clustered(in_cells=False)) if policy.clusters else new


async def _removals(reader: TableReader, old: TableState | None, policy: Policy) -> Removals:
    """Restore what a table has removed and not vacuumed, from its log; what is known if that cannot be read.

    Only for tables that are vacuumed: for others the tombstones of a checkpoint are never read.
    """
    known = old.removals if old is not None else NO_REMOVALS
    # What the last vacuum deleted has tombstones for a while.
    gone_ms = known.vacuumed_ms - policy.retention_s * 1000
    try:
        removed = await reader.removals()
    except Corrupt as problem:
        # The files can be counted all the same, and orphans are found by listing.
        log.warning("removals_unreadable", location=reader.location, reason=str(problem))
        return known
    found = Removals.of((at_ms, size) for at_ms, size in removed if at_ms >= gone_ms)
    return replace(found, vacuumed_ms=known.vacuumed_ms, listed_ms=known.listed_ms)


def _is_stopped(old: TableState | None, snapshot: Snapshot) -> bool:
    """Return whether Qbeast's switch was unset since the last read; another table at its place starts over."""
    if old is None or old.metadata.table_uuid != snapshot.metadata.table_uuid:
        return False
    return is_stopped_by_qbeast(
        old.metadata.configuration, snapshot.metadata.configuration, was_stopped=old.is_stopped_by_qbeast
    )


def _ledger_lines(context: DecisionContext, decisions: Sequence[Decision]) -> list[tuple[str, int]]:
    """Return the first decisions as ledger lines, each with the index of its job (-1: none); those with jobs lead."""
    return [
        (ledger.encode(made, context), index if made.prediction else -1)
        for index, made in enumerate(decisions[:RECORDS])
    ]
