"""Notes what became of advice whose `ALTER TABLE` a job ran, as soon as the run has ended.

Every decider reads the history of runs from its own position on; only one moves each advice. What is lost while no
decider reads is found by the next analysis of the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import structlog

from decider.background.runner import Schedule
from decider.events.refresh_queue import RefreshQueue
from decider.store.queue.run_queries import RunQueries
from decider.store.queue.stream_reader import NOTES, RUNS, StreamEntry, StreamPosition, StreamReader
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.advice_records import Advice, AdviceStatus
from decider.store.tables.advice_store import AdviceStore
from shared.jobs.options import PROPERTIES_SET
from shared.jobs.payload import SET_PROPERTIES
from shared.queue.model import FinishOutcome, JobId, JobState
from shared.table import TableId
from shared.typed_json import json_object

POLL_EVERY_S = 1.0
"""Soon enough for a person who waits for it; a poll costs Redis one read of a stream."""

ENDED_WITHOUT = "the run was stopped"
"""Why an advice is open again whose run reported neither an error nor a reason."""

CANCELLED_WAITING = "the job was cancelled before an actor took it"
"""Why an advice is open again whose job never ran: no run reports that, only a note of the cancellation."""

log = structlog.get_logger()


class AppliedAdvice:
    """Moves advice from `applying` to `applied`, or back to `open` with the reason."""

    def __init__(
        self,
        streams: StreamReader,
        jobs: RunQueries,
        store: AdviceStore,
        registry: TableRegistry,
        refresh_queue: RefreshQueue,
        now_ms: Callable[[], int],
    ) -> None:
        self.schedule = Schedule(POLL_EVERY_S, "applied_advice_not_read")
        self._streams = streams
        self._jobs = jobs
        self._store = store
        self._registry = registry
        self._refresh_queue = refresh_queue
        self._now_ms = now_ms
        self._position: StreamPosition | None = None

    async def run_once(self) -> None:
        """Note the runs that ended and the jobs that were cancelled since; the first call only notes where it is."""
        if self._position is None:
            self._position = await self._streams.now()
            return
        entries = await self._streams.read(self._position, [RUNS, NOTES])
        for run in entries:
            if run.stream == RUNS and run.fields["kind"] == SET_PROPERTIES:
                await self._note(TableId(run.fields["table"]), run)
        # Runs first: a job that was cancelled, requested again and run since has altered the table.
        for note in entries:
            if note.stream == NOTES and _is_cancelled_while_waiting(note.fields):
                await self._note_cancelled(JobId(note.fields["job"]))

    async def _note_cancelled(self, job: JobId) -> None:
        table_id, _, kind = job.rsplit(".", 2)
        if kind != SET_PROPERTIES:
            return
        advice = await self._store.read(TableId(table_id))
        now = None if advice is None else after_cancel(advice, job)
        # A job that is there was requested again since: its own end counts.
        if advice is None or now is None or await self._jobs.job(job) is not None:
            return
        if await self._store.replace(advice.table, advice, now):
            log.info("advice_job_cancelled", table=advice.table, advice=advice.id)

    async def _note(self, table_id: TableId, run: StreamEntry) -> None:
        advice = await self._store.read(table_id)
        if advice is None or advice.status is not AdviceStatus.APPLYING:
            return
        now = after_run(advice, run.fields, self._now_ms())
        if now is None or not await self._store.replace(table_id, advice, now):
            return
        log.info("advice_run_ended", table=table_id, advice=advice.id, status=now.status, problem=now.problem)
        table = await self._registry.get(table_id)
        if table is not None and now.status is AdviceStatus.APPLIED:
            # Not every format makes a commit of it that the report could name.
            await self._refresh_queue.put(table, None)


def after_run(advice: Advice, run: Mapping[str, str], now_ms: int) -> Advice | None:
    """Return an advice after a run of its job, as the history of runs has it; None if the job is tried again."""
    report = json_object(run.get("result", ""))
    if PROPERTIES_SET in report.get("measured", {}):
        version = next(iter(report.get("versions", ())), report.get("seen_version", -1))
        return replace(advice, status=AdviceStatus.APPLIED, applied_version=version, changed_ms=now_ms, problem="")
    if run.get("outcome") not in (FinishOutcome.DELETED, FinishOutcome.QUARANTINED):
        return None
    problem = run.get("error") or report.get("left_out") or ENDED_WITHOUT
    return replace(advice, status=AdviceStatus.OPEN, changed_ms=0, job="", problem=problem)


def after_cancel(advice: Advice, job: str) -> Advice | None:
    """Return an advice whose job was cancelled while it waited; None if the advice does not wait for this job."""
    if advice.status is not AdviceStatus.APPLYING or advice.job != job:
        return None
    return replace(advice, status=AdviceStatus.OPEN, changed_ms=0, job="", problem=CANCELLED_WAITING)


def _is_cancelled_while_waiting(note: Mapping[str, str]) -> bool:
    """Return whether a note is of a cancelled job that no actor ran; the end of a run reports itself."""
    return note.get("event") == "cancel" and note.get("detail") != JobState.LEASED
