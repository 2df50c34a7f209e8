"""Due timers: each evaluates one partition for the action that set it, as idle compaction and full rewrites need.

A tick takes each due timer together with its job and its ledger record in one step, if the timer is still the one that
was read; so any number of deciders may tick, a crash repeats nothing, and a commit in between postpones.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import structlog

from decider.background.runner import Schedule
from decider.decide import ledger
from decider.decide.action import TimerTarget
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from decider.decide.funnel import funnel_counts
from decider.decide.job_request import job_request
from decider.decide.table_action import evaluate_table, table_timer
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.table_state import TableState, TableStateStore
from decider.store.tables.timer_queries import TimerStore
from decider.tracking.table_context import TableContext
from decider.tracking.tracker import TableTracker
from shared.errors import LakewrightError
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import Reason
from shared.partition_refusals import TableFingerprint
from shared.partitions import WHOLE_TABLE
from shared.policy.partition_filter import next_entry_ms
from shared.queue.model import Band, DecideOutcome, Timer, TimerChange
from shared.table import TableId, TableRef

EVERY_S = 5.0
"""Seconds between two ticks; one that finds nothing costs one read."""

AGAIN_MS = 600_000
"""How long a timer is postponed by a job of its partition or by the table's writers, and a table by a failure: ten
minutes, after which most jobs are over."""

TABLES_PER_TICK = 1_000
"""Tables with due timers that one tick processes: seconds of work, and then a pause leaves room for events."""

TABLES_AT_ONCE = 8
"""Tables that a tick processes side by side, which hides the latency of their stores."""

TIMERS_PER_TABLE = 100
"""Timers of one table that one tick takes, so that a table with many idle partitions does not delay the others."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TimerRunResult:
    """Result of one tick: timers taken, and jobs that were queued."""

    timers: int = 0
    jobs: int = 0


class TimerRunner:
    """Processes the due timers of all tracked tables."""

    def __init__(
        self,
        queue: AsyncQueueExecutor,
        registry: TableRegistry,
        tracker: TableTracker,
        now_ms: Callable[[], int],
    ) -> None:
        self.schedule = Schedule(EVERY_S, "timer_run_failed")
        self._timers = TimerStore(queue, ledger_kept=tracker.ledger_kept)
        self._states = TableStateStore(queue)
        self._registry = registry
        self._tracker = tracker
        self._now_ms = now_ms

    async def run_once(self) -> TimerRunResult:
        """Take the timers that are due; a table that cannot be read keeps its timers and goes behind the others."""
        due = iter(await self._timers.due_tables(self._now_ms(), limit=TABLES_PER_TICK))
        found = await asyncio.gather(*(self._process(due) for _ in range(TABLES_AT_ONCE)))
        outcomes = [outcome for some in found for outcome in some]
        return TimerRunResult(len(outcomes), outcomes.count(DecideOutcome.QUEUED))

    async def _process(self, due: Iterator[TableId]) -> list[DecideOutcome]:
        """Take the due timers of one table after the other, until the iterator, which several calls share, is empty."""
        outcomes: list[DecideOutcome] = []
        for table_id in due:
            table = await self._registry.get(table_id)
            if table is None:
                await self._timers.delete(table_id)
            else:
                outcomes += await self._try(table)
        return outcomes

    async def _try(self, table: TableRef) -> list[DecideOutcome]:
        """Take the due timers of one table; a failure postpones the table, which leaves room for others."""
        try:
            return await self._take_due(table)
        except LakewrightError as problem:
            log.warning("table_timers_failed", table=table.name, error=str(problem))
        except Exception:
            # An unexpected log must not stop the timers of all other tables.
            log.exception("timers_crashed", table=table.name)
        await self._timers.postpone(table.id, self._now_ms() + AGAIN_MS)
        return []

    async def _take_due(self, table: TableRef) -> list[DecideOutcome]:
        """Take the due timers of one table, after reading its log: a commit that no event announced postpones them."""
        cursor = (await self._tracker.follow(table)).state
        found = TableContext(table, cursor, self._tracker.effective(table, cursor))
        due = await self._timers.due(table.id, self._now_ms(), limit=TIMERS_PER_TABLE)
        targets = [(timer, *parsed) for timer in due if (parsed := self._tracker.actions.parse_timer(timer.name))]
        partitions = {WHOLE_TABLE, *(target.partition for _, _, target in targets)}
        known = await self._states.calibrated_partitions(table.id, sorted(partitions))
        refusals = known.refusals.in_force(TableFingerprint.of(cursor.metadata, found.policy), cursor.version)
        context = found.deciding(known.calibration, self._now_ms(), refusals=refusals)
        # The state does not know which files are rewritten even alone, and what their commit asked for was excluded.
        entering = {one.partition for _, _, one in targets if one.rewrite_kind is RewriteKind.LEVELS}
        states = {one: known.partitions[one] for one in entering}
        purgeable = await self._tracker.files_to_purge(table, states, context.policy, refusals)
        outcomes: list[DecideOutcome] = []
        for timer, action, target in targets:
            trigger = replace(_trigger(cursor.version, target, context), purgeable=purgeable[target.partition])
            made = evaluate(context, target.partition, known.partitions[target.partition], trigger, action)
            outcomes.append(await self._fire(context, timer, made, _again_ms(context, made)))
        outcomes += await self._fire_of_table(context, cursor, due)
        return outcomes

    async def _fire_of_table(
        self, context: DecisionContext, cursor: TableState, due: Sequence[Timer]
    ) -> list[DecideOutcome]:
        """Take the due timers of actions on the table as a whole."""
        actions = self._tracker.actions
        targets = [(timer, found) for timer in due if (found := actions.parse_table_timer(timer.name)) is not None]
        if not targets:
            return []
        signals = await self._tracker.signals(context.table, cursor, {action.kind for _, action in targets})
        outcomes: list[DecideOutcome] = []
        for timer, action in targets:
            band = None if action.is_rewrite else Band.BACKGROUND
            trigger = Trigger(cursor.version, TriggerSource.TIMER, band=band)
            made = evaluate_table(context, signals, trigger, action)
            following = table_timer(action, signals, context.policy, context.at_ms)
            is_set = following is not None and following.change is TimerChange.SET
            again_ms = following.fires_at_ms if following is not None and is_set else 0
            if made.prediction is not None or 0 < again_ms <= context.at_ms:
                again_ms = context.at_ms + AGAIN_MS
            outcomes.append(await self._fire(context, timer, made, again_ms))
        return outcomes

    async def _fire(self, context: DecisionContext, timer: Timer, made: Decision, again_ms: int) -> DecideOutcome:
        """Take a timer with the decision that it led to; it fires again at a moment, 0: only if it is set again."""
        outcome = await self._timers.fire(
            context.table.id,
            timer,
            rearm_at_ms=again_ms,
            job=job_request(context, made) if made.prediction else None,
            decision=(ledger.encode(made, context), funnel_counts([made])),
        )
        log.info(
            "timer_fired",
            table=context.table.name,
            partition=made.partition,
            action=made.action,
            kind=made.rewrite_kind,
            outcome=outcome,
        )
        return outcome


def _again_ms(context: DecisionContext, made: Decision) -> int:
    """Return when a timer fires again that led to a decision, 0: only if it is set again."""
    if made.reason is Reason.FILTERED:
        # It fired late, and the partition has left the filter; it may enter again.
        return next_entry_ms(context.policy.filter, made.partition, context.columns, context.at_ms) or 0
    is_postponed = made.prediction is not None or made.reason is Reason.DEFERRED_TO_WRITERS
    return context.at_ms + AGAIN_MS if is_postponed else 0


def _trigger(version: int, target: TimerTarget, context: DecisionContext) -> Trigger:
    """Return the trigger that a due timer is; of time windows only those that ended long enough ago are compacted."""
    policy, closed_ms = context.policy, None
    if target.rewrite_kind is RewriteKind.IDLE and policy.time_window_s is not None:
        closed_ms = context.at_ms - (policy.idle_compaction_after_s or 0) * 1000
    return Trigger(version, TriggerSource.TIMER, target.rewrite_kind, closed_ms=closed_ms)
