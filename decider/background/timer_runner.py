"""Timers ring: a cell that has been quiet for long enough is settled, and one whose interval is over is rewritten.

A tick takes each timer that is due with what follows from it in one step, if it is still the one that was read; so any
number of deciders may tick, a crash repeats nothing, and a commit in between postpones.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from decider.background.periodic import run_periodically
from decider.decide import ledger
from decider.decide.decision import corrected, decide_rung, heed
from decider.decide.timers import parse_timer
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.table_registry import TableRegistry
from decider.store.table_state import TableStateStore
from decider.store.timer_queries import TimerStore
from decider.tracking.commit_batch import counted, job_spec
from decider.tracking.tracker import TableTracker
from shared.errors import LakewrightError
from shared.job_payload import RewriteKind
from shared.layout.eligibility import Reason
from shared.queue.model import DecideOutcome
from shared.table import TableRef

EVERY_S = 5.0
"""Seconds between two ticks; one that finds nothing costs one read."""

AGAIN_MS = 600_000
"""How long a timer is put off by a job for its cell or by the table's own commands, and a table by a look that failed:
ten minutes, after which most jobs are over."""

TABLES_PER_TICK = 200
"""Tables with due timers that one tick looks at."""

TIMERS_PER_TABLE = 100
"""Timers of one table that one tick takes, so that a table with many quiet cells does not keep the others waiting."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TimerRunResult:
    """What one tick did: timers taken, and jobs that were queued."""

    timers: int = 0
    jobs: int = 0


class TimerRunner:
    """Takes due timers of the tables that a follower looks after."""

    def __init__(
        self,
        queue: AsyncQueueExecutor,
        registry: TableRegistry,
        follower: TableTracker,
        now_ms: Callable[[], int],
    ) -> None:
        self._timers = TimerStore(queue, ledger_kept=follower.ledger_kept)
        self._states = TableStateStore(queue)
        self._registry = registry
        self._follower = follower
        self._now_ms = now_ms

    async def run_once(self) -> TimerRunResult:
        """Take what is due now; a table that cannot be followed keeps its timers and goes behind the others."""
        taken = jobs = 0
        for table_id in await self._timers.ringing_tables(self._now_ms(), limit=TABLES_PER_TICK):
            table = await self._registry.get(table_id)
            if table is None:
                await self._timers.forget(table_id)
                continue
            outcomes = await self._try(table)
            taken += len(outcomes)
            jobs += outcomes.count(DecideOutcome.QUEUED)
        return TimerRunResult(taken, jobs)

    async def run(self) -> None:
        """Tick until cancelled; a Redis that is away is waited for."""
        await run_periodically(self.run_once, every_s=EVERY_S, failed="timer_run_failed")

    async def _try(self, table: TableRef) -> list[DecideOutcome]:
        """Take the timers of one table; a failure puts the table off, so that it does not hold a place of each tick."""
        try:
            return await self._ring(table)
        except LakewrightError as problem:
            log.warning("table_timers_failed", table=table.name, error=str(problem))
        except Exception:
            # A log that nobody foresaw must not end the settling of all other tables.
            log.exception("timers_crashed", table=table.name)
        await self._timers.put_off(table.id, self._now_ms() + AGAIN_MS)
        return []

    async def _ring(self, table: TableRef) -> list[DecideOutcome]:
        """Take the timers of one table, after a look at its log: a commit that nobody told us of postpones them."""
        await self._follower.follow(table)
        cursor = await self._states.cursor(table.id)
        if cursor is None:
            await self._timers.forget(table.id)
            return []
        in_force = self._follower.effective(table, cursor).policy
        rung = await self._timers.ringing(table.id, self._now_ms(), limit=TIMERS_PER_TABLE)
        asked = [(timer, *said) for timer in rung if (said := parse_timer(timer.name))]
        known = await self._states.known(table.id, [cell for _, _, cell in asked])
        policy = known.calibration.learned(in_force)
        outcomes: list[DecideOutcome] = []
        for timer, ask, cell in asked:
            made = corrected(decide_rung(ask, cell, known.cells[cell], policy, cursor.version), known.calibration)
            made = heed(made, cursor.heat.share(cell, self._now_ms()), policy)
            is_windowed = ask is RewriteKind.SETTLE and policy.time_window_s is not None
            closed_ms = self._now_ms() - (policy.settle_after_s or 0) * 1000 if is_windowed else None
            spec = job_spec(table, made, policy, cursor.metadata, closed_ms=closed_ms) if made.prediction else None
            record = ledger.encode(made, policy, self._now_ms())
            is_put_off = spec is not None or made.reason is Reason.WRITERS_FIRST
            again_ms = self._now_ms() + AGAIN_MS if is_put_off else 0
            outcome = await self._timers.take(
                table.id, timer, again_ms=again_ms, job=spec, decision=(record, counted([made]))
            )
            log.info("timer_fired", table=table.name, partition=cell, kind=ask, outcome=outcome)
            outcomes.append(outcome)
        return outcomes
