"""Jobs on whole tables on demand, from a vacuum to the rewrite of manifests, or a dry run.

A request runs although the table's properties do not switch the action on, and never although the table is refused. A
retention below the table's own has to be forced, and a purge to be confirmed with the table's name. What no actor can
run on tables of a format raises Unsupported, and nothing is queued.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from decider.decide import ledger
from decider.decide.decision import Trigger, TriggerSource
from decider.decide.job_request import job_request
from decider.decide.table_action import evaluate_table
from decider.formats.table_format import TableReader
from decider.requests.requested_table import RequestedTable
from decider.requests.table_request import RequestedJob, RequestPreview, TableRequest, counted
from decider.store.queue.traced_jobs import enqueue
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.tables.table_state import TableStateStore
from decider.tracking.table_context import TableContext
from decider.tracking.tracker import TableTracker
from shared.errors import InvalidInput, Unsupported
from shared.jobs.options import PropertyOptions
from shared.jobs.payload import SET_PROPERTIES
from shared.queue.model import Band, EnqueueOutcome, JobId, Scope
from shared.refusals import Refusal
from shared.table import TableRef

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RequestedTableJob:
    """A job that a request led to; `outcome`: it is new, merged into a waiting one, or follows a running one."""

    id: JobId
    action: str
    outcome: EnqueueOutcome


@dataclass(frozen=True, slots=True)
class TableRequestResult:
    """Result of a request: its jobs, none where the table is refused; and what is paused so that they wait."""

    version: int
    jobs: tuple[RequestedTableJob, ...] = ()
    refusal: Refusal | None = None
    paused: Scope | None = None

    @property
    def message(self) -> str:
        """Outcome as one sentence for users."""
        if self.refusal is not None:
            return self.refusal.message
        more = f" The {self.paused} is paused, so nothing runs until it is resumed." if self.paused else ""
        return f"{counted(len(self.jobs), 'job')}.{more}"


class TableRequests:
    """Turns requests about whole tables into jobs, or into dry runs."""

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

    async def run(self, table: TableRef, asked: TableRequest) -> TableRequestResult:
        """Queue the jobs of a request; raises what the request raises."""
        loaded = await self._tracker.load(table)
        wanted = await asked.jobs(self._requested(loaded))
        if not wanted:
            return TableRequestResult(loaded.state.version, refusal=loaded.refusal)
        return await self._request(loaded, wanted)

    async def preview(self, table: TableRef, asked: TableRequest) -> RequestPreview:
        """Return the dry run of a request, and change nothing; raises what the request raises."""
        if not asked.is_live:
            return await asked.preview(self._requested(await self._tracker.load(table)))
        reader = self._open_table(table.location)
        snapshot = await reader.snapshot()
        in_force = self._tracker.effective_at(table, snapshot, await self._states.state(table.id))
        at = (table, snapshot.version, snapshot.metadata, in_force, reader)
        return await asked.preview(RequestedTable(*at, self._tracker, self._now_ms(), tuple(snapshot.files)))

    def _requested(self, loaded: TableContext) -> RequestedTable:
        at = (loaded.table, loaded.state.version, loaded.state.metadata, loaded.in_force)
        return RequestedTable(*at, self._open_table(loaded.table.location), self._tracker, self._now_ms())

    async def set_properties(self, table: TableRef, values: Mapping[str, str]) -> JobId:
        """Queue one `ALTER TABLE` that sets the table's own properties; raises what `require_properties` raises."""
        made = await self._request(await self.require_properties(table), [(SET_PROPERTIES, PropertyOptions(values))])
        return made.jobs[0].id

    async def require_properties(self, table: TableRef) -> TableContext:
        """Return a table; raises Unsupported where its properties must not be set by us."""
        found = await self._tracker.load(table)
        if found.refusal is not None:
            raise Unsupported(f"{table.name} is refused: {found.refusal.message}", field=found.refusal.subject)
        self._requested(found).require_runnable(SET_PROPERTIES)
        return found

    async def _request(self, found: TableContext, wanted: Sequence[RequestedJob]) -> TableRequestResult:
        """Decide about each kind as requested, and queue its job with the record of the decision."""
        table, cursor = found.table, found.state
        context = found.deciding(await self._states.calibration(table.id), self._now_ms())
        signals = await self._tracker.signals(table, cursor, {kind for kind, _ in wanted})
        jobs: list[RequestedTableJob] = []
        for kind, options in wanted:
            action = self._tracker.actions.table_action(kind)
            if action is None:
                raise InvalidInput(f"this decider has no action of the kind {kind!r}", field="action")
            trigger = Trigger(cursor.version, TriggerSource.REQUEST, band=Band.NORMAL, is_forced=True)
            made = evaluate_table(context, signals, trigger, action)
            if made.prediction is None:
                return TableRequestResult(cursor.version, refusal=found.refusal)
            made = replace(made, options=made.options if options is None else options.encode())
            job = job_request(context, made)
            record = ledger.encode(made, context)
            outcome = await enqueue(self._queue, job, record, ledger_kept=self._tracker.ledger_kept)
            jobs.append(RequestedTableJob(job.id, kind, outcome))
        log.info("table_job_requested", table=table.name, jobs=[job.id for job in jobs])
        return TableRequestResult(cursor.version, tuple(jobs))
