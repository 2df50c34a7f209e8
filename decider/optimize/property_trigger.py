"""A run can be started from SQL: setting `use.optimization.type` on a table that is not automatic starts one run.

The request is the change: a run starts when the property is set, or set to another value, and not again when other
properties change. The value says what kind of run. The outcome is stored, so that an ignored request can be seen.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import structlog

from decider.optimize.on_demand import OnDemandOptimizer, OptimizeCommand, RequestIgnored
from decider.optimize.run_terms import RunMode, RunTerms
from decider.optimize.table_requests import TableRequestResult
from decider.store.registry.manual_runs import ManualRunRecord, ManualRunStore
from decider.store.tables.table_records import TableRecord
from decider.tracking.shared_defaults import DefaultsProvider
from decider.tracking.table_tracking import FIRST_SIGHT, TrackResult
from shared.errors import LakewrightError
from shared.policy.names import MANUAL
from shared.queue.model import Band, EnqueueOutcome
from shared.refusals import Explained
from shared.table import TableRef

BYTES_PER_ITER = "use.optimization.bytes-per-iter"

RUN_TYPES = {
    **dict.fromkeys(("compaction", "leveledcompaction", "leveled", "binpack"), RunMode.LEVELS),
    **{mode.value: mode for mode in RunMode},
}
"""Modes of runs by the value of the property, in small letters alone, of a table without an index."""

STUCK_MS = 60_000
"""Time after which a request without an outcome is processed again: a run is queued within seconds."""

_NO_LETTER = re.compile("[^a-z]")

log = structlog.get_logger()


class TriggerOutcome(Explained):
    """Outcome of a request."""

    PENDING = "pending", "The run is being started."
    STARTED = "started", "The run was started."
    AUTO_IS_ON = (
        "auto_optimize_enabled",
        f"{MANUAL} was ignored: automatic optimization is on; set lakewright.enabled=false.",
    )
    ALREADY_RUNNING = "already_running", f"{MANUAL} was ignored: a run of this table is waiting or running."
    NOTHING_TO_DO = "nothing_to_do", f"{MANUAL} was ignored: no partition is eligible for a rewrite."
    FIRST_SIGHT = (
        "set_before_first_read",
        f"{MANUAL} was set before the table was first read: unset it and set it again.",
    )
    REFUSED = "refused", f"{MANUAL} was ignored: a rewrite could damage the table, so it is refused."
    UNKNOWN = "unknown_type", f"{MANUAL} was ignored: there is no such type of run (docs/properties.md)."
    PROPERTY_REMOVED = "property_removed", f"{MANUAL} was unset; a run that has started continues."


OptimizeIndex = Callable[[TableRef, str], Awaitable[TableRequestResult | None]]
"""Queues one optimization of a table's index of this type; None if there is no such type."""


class PropertyTriggers:
    """Starts the runs that properties request."""

    def __init__(
        self,
        manual_runs: ManualRunStore,
        on_demand: OnDemandOptimizer,
        defaults: DefaultsProvider,
        now_ms: Callable[[], int],
        *,
        optimize_index: OptimizeIndex | None = None,
    ) -> None:
        """`optimize_index`: starts the run of a table with an index; None: such requests are refused."""
        self._optimize_index = optimize_index
        self._manual_runs = manual_runs
        self._on_demand = on_demand
        self._defaults = defaults
        self._now_ms = now_ms

    async def process(self, known: TableRecord, followed: TrackResult) -> None:
        """Start the run that a table's properties request, if the request is new; raises what a request raises.

        Only deciders of the table's group start it; for others, every table of that group is disabled. If another
        decider has processed the request since `known` was read, the record has changed, and nothing is done.
        """
        table, before, cursor = known.table, known.manual_run, followed.state
        configuration = cursor.metadata.configuration
        requested = _requested(configuration)
        if requested == (before.requested if before else "") and not self._is_stuck(before):
            return
        defaults = self._defaults.current
        policy = defaults.resolve(table, configuration, cursor.last_good, cursor.log_status).policy
        if not defaults.serves(policy):
            return
        record = ManualRunRecord(requested, cursor.version, self._now_ms())
        if not requested:
            record = replace(record, outcome=TriggerOutcome.PROPERTY_REMOVED)
        elif followed.rescan == FIRST_SIGHT:
            record = replace(record, outcome=TriggerOutcome.FIRST_SIGHT)
        elif policy.traits.refused:
            record = replace(record, outcome=TriggerOutcome.REFUSED)
        elif policy.enabled and not (policy.traits.is_indexed and not policy.index):
            record = replace(record, outcome=TriggerOutcome.AUTO_IS_ON)
        if not await self._manual_runs.replace(table.id, before, record) or record.outcome:
            return
        try:
            run = self._run_index if policy.traits.is_indexed else self._run
            done = await run(table, _NO_LETTER.sub("", configuration[MANUAL].lower()), record)
        except LakewrightError:
            await self._manual_runs.replace(
                table.id, record, before or replace(record, requested="", outcome=TriggerOutcome.PROPERTY_REMOVED)
            )
            raise
        await self._manual_runs.replace(table.id, record, done)
        log.info("property_run_finished", table=table.name, requested=requested, outcome=done.outcome, jobs=done.jobs)

    def _is_stuck(self, record: ManualRunRecord | None) -> bool:
        """Return whether a decider began to process a request and ended before its outcome."""
        return record is not None and not record.outcome and self._now_ms() - record.at_ms > STUCK_MS

    async def _run_index(self, table: TableRef, kind: str, record: ManualRunRecord) -> ManualRunRecord:
        """Queue one optimization of an index; with the bytes per iteration that the table's properties set."""
        if self._optimize_index is None:
            return replace(record, outcome=TriggerOutcome.REFUSED)
        answer = await self._optimize_index(table, kind)
        if answer is None:
            return replace(record, outcome=TriggerOutcome.UNKNOWN)
        if answer.refusal is not None:
            return replace(record, outcome=TriggerOutcome.REFUSED)
        new = sum(job.outcome is not EnqueueOutcome.MERGED for job in answer.jobs)
        return replace(record, outcome=TriggerOutcome.STARTED if new else TriggerOutcome.ALREADY_RUNNING, jobs=new)

    async def _run(self, table: TableRef, kind: str, record: ManualRunRecord) -> ManualRunRecord:
        mode = RUN_TYPES.get(kind)
        if mode is None:
            return replace(record, outcome=TriggerOutcome.UNKNOWN)
        terms = RunTerms(mode, force=True)
        answer = await self._on_demand.optimize(table, OptimizeCommand(band=Band.NORMAL, terms=terms))
        if answer.refusal is not None:
            return replace(record, outcome=TriggerOutcome.REFUSED)
        new = sum(job.outcome is not EnqueueOutcome.MERGED for job in answer.jobs)
        if new:
            return replace(record, outcome=TriggerOutcome.STARTED, jobs=new)
        is_running = answer.jobs or answer.ignored is RequestIgnored.ALREADY_RUNNING
        return replace(record, outcome=TriggerOutcome.ALREADY_RUNNING if is_running else TriggerOutcome.NOTHING_TO_DO)


def _requested(configuration: Mapping[str, str]) -> str:
    kind = configuration.get(MANUAL, "").strip()
    return f"{kind} {configuration.get(BYTES_PER_ITER, '')}".strip() if kind else ""
