"""A run can be started from SQL: whoever sets `use.optimization.type` on a table that is not automatic gets one run.

The wish is the change, not the value: it is honoured when the property is set, or set to something else, and not again
whenever the table's properties move. What came of it is kept, so that an ignored wish is seen to be one.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

import structlog

from decider.optimize.on_demand import OnDemandOptimizer, OptimizeCommand, RequestIgnored
from decider.store.manual_runs import ManualRunRecord, ManualRunStore
from decider.store.table_state import TableStateStore
from decider.tracking.shared_defaults import DefaultsProvider
from decider.tracking.tracker import FIRST_SIGHT, TrackResult
from shared.errors import LakewrightError
from shared.properties import MANUAL
from shared.queue.model import Band, EnqueueOutcome
from shared.table import TableRef

BYTES_PER_ITER = "use.optimization.bytes-per-iter"

STUCK_MS = 60_000
"""After this long a wish that nothing came of is taken up again: a run is queued within seconds."""

log = structlog.get_logger()


class TriggerOutcome(StrEnum):
    """What became of a wish."""

    TAKEN_UP = "pending"
    STARTED = "started"
    AUTO_IS_ON = "auto_optimize_enabled"
    ALREADY_RUNNING = "already_running"
    NOTHING_TO_DO = "nothing_to_do"
    FIRST_SIGHT = "set_before_first_read"
    REFUSED = "refused"
    TAKEN_BACK = "property_removed"

    @property
    def message(self) -> str:
        """The outcome as one sentence for people."""
        return _MESSAGES[self]


_MESSAGES = {
    TriggerOutcome.TAKEN_UP: "The run is being started.",
    TriggerOutcome.STARTED: "The run was started.",
    TriggerOutcome.AUTO_IS_ON: f"{MANUAL} was ignored: automatic optimization is on; set lakewright.enabled=false.",
    TriggerOutcome.ALREADY_RUNNING: f"{MANUAL} was ignored: a run of this table is waiting or running.",
    TriggerOutcome.NOTHING_TO_DO: f"{MANUAL} was ignored: no partition is eligible for a rewrite.",
    TriggerOutcome.FIRST_SIGHT: f"{MANUAL} was set before the table was first read: unset it and set it again.",
    TriggerOutcome.REFUSED: f"{MANUAL} was ignored: a rewrite could damage the table, so it is refused.",
    TriggerOutcome.TAKEN_BACK: f"{MANUAL} was unset; a run that has started continues.",
}


class PropertyTriggers:
    """Starts the runs that properties ask for."""

    def __init__(
        self,
        wishes: ManualRunStore,
        states: TableStateStore,
        adhoc: OnDemandOptimizer,
        standing: DefaultsProvider,
        now_ms: Callable[[], int],
    ) -> None:
        self._wishes = wishes
        self._states = states
        self._adhoc = adhoc
        self._standing = standing
        self._now_ms = now_ms

    async def look(self, table: TableRef, followed: TrackResult) -> None:
        """Honour the wish of a table that has just moved, if it has a new one; raises what a request raises.

        A wish belongs to the deciders of the table's group; to others every table of it seems switched off.
        """
        cursor = await self._states.state(table.id)
        before = await self._wishes.read(table.id)
        if cursor is None:
            return
        configuration = cursor.metadata.configuration
        said = _said(configuration)
        if said == (before.requested if before else "") and not self._is_stuck(before):
            return
        defaults = self._standing.current
        policy = defaults.resolve(table, configuration, cursor.last_good, cursor.log_facts).policy
        if not defaults.serves(policy):
            return
        wish = ManualRunRecord(said, cursor.version, self._now_ms())
        if not said:
            wish = replace(wish, outcome=TriggerOutcome.TAKEN_BACK)
        elif followed.rescan == FIRST_SIGHT:
            wish = replace(wish, outcome=TriggerOutcome.FIRST_SIGHT)
        elif policy.refused:
            wish = replace(wish, outcome=TriggerOutcome.REFUSED)
        elif policy.enabled:
            wish = replace(wish, outcome=TriggerOutcome.AUTO_IS_ON)
        if not await self._wishes.replace(table.id, before, wish) or wish.outcome:
            return
        try:
            done = await self._run(table, wish)
        except LakewrightError:
            await self._wishes.replace(
                table.id, wish, before or replace(wish, requested="", outcome=TriggerOutcome.TAKEN_BACK)
            )
            raise
        await self._wishes.replace(table.id, wish, done)
        log.info("property_run_finished", table=table.name, requested=said, outcome=done.outcome, jobs=done.jobs)

    def _is_stuck(self, wish: ManualRunRecord | None) -> bool:
        """Whether a decider took up a wish and ended before anything came of it."""
        return wish is not None and not wish.outcome and self._now_ms() - wish.at_ms > STUCK_MS

    async def _run(self, table: TableRef, wish: ManualRunRecord) -> ManualRunRecord:
        answer = await self._adhoc.optimize(table, OptimizeCommand(band=Band.NORMAL, force=True))
        if answer.refusal is not None:
            return replace(wish, outcome=TriggerOutcome.REFUSED)
        new = sum(job.outcome is not EnqueueOutcome.MERGED for job in answer.jobs)
        if new:
            return replace(wish, outcome=TriggerOutcome.STARTED, jobs=new)
        is_running = answer.jobs or answer.ignored is RequestIgnored.ALREADY_RUNNING
        return replace(wish, outcome=TriggerOutcome.ALREADY_RUNNING if is_running else TriggerOutcome.NOTHING_TO_DO)


def _said(configuration: Mapping[str, str]) -> str:
    kind = configuration.get(MANUAL, "").strip()
    return f"{kind} {configuration.get(BYTES_PER_ITER, '')}".strip() if kind else ""
