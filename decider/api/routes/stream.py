"""The event stream: decisions, jobs and queue depth as they occur, until the reader disconnects.

A reader costs two small reads a second and nothing while it is slow: what it has not read stays in Redis, in streams
that are capped. So the number of readers is bounded, and nothing else has to be.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import Field

from decider.api.dependencies import Http, Queue, Tables
from decider.api.openapi import failures
from decider.api.routes.decisions import UNREADABLE
from decider.api.services import QueueServices, TableServices
from decider.decide.ledger import LedgerRecord
from decider.gateway.rate_limit import address
from decider.store.queue.stream_reader import (
    LEDGER,
    NOTES,
    RUNS,
    MovePosition,
    StreamEntry,
    StreamPosition,
    position_after,
)
from decider.web.base_model import ResponseModel
from decider.web.errors import ApiError, not_found
from shared.errors import LakewrightError
from shared.partitions import partition_label
from shared.table import PartitionKey, TableId, TableRef


class DecisionEvent(ResponseModel):
    """`decision`: a decision about a partition, skips included."""

    at: datetime = Field(description="Decision time, by the decider's clock.")
    table_id: str = Field(description="Table id.")
    table: str = Field(description="Table name.")
    partition_label: str | None = Field(description="Partition label; columns as in the table's log.")
    version: int | None = Field(description="Table version of the commit that led to it.")
    action: str = Field(description="Kind of job.")
    decision: str = Field(description="`skip`, `enqueue`, `defer`, or `unreadable` for a record of a newer release.")
    reason: str = Field(description="Machine-readable reason.")
    outcome: str = Field(description="Outcome of the enqueue; empty for a skip.")
    message: str = Field(description="Human-readable decision.")


class JobStreamEvent(ResponseModel):
    """`job`: a finished run, or a job that was quarantined, preempted or cancelled."""

    at: datetime = Field(description="Time, by the Redis server's clock.")
    job: str = Field(description="Job id.")
    event: str = Field(
        description="`done`, `yield`, `fail`, `crashed`, `cancelled`, `quarantined`, `preempted` or `cancel`."
    )
    table_id: str = Field(description="Table id.")
    partition_label: str = Field(description="Partition label; empty if unknown.")
    actor: str = Field(description="Actor that ran the job; empty if none.")
    detail: str = Field(description="Error or further details.")


class QueueStreamEvent(ResponseModel):
    """`queue`: queue depth, sent on every change of it and of what is paused, without an id."""

    depth: dict[str, int] = Field(description="Number of jobs by state.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued job in seconds.")


class TablesEvent(ResponseModel):
    """`tables`: tables whose state moved, by a commit of any writer or a rebuild; sent without an id."""

    table_ids: tuple[str, ...] = Field(description="Table ids, at most 500.")
    more: bool = Field(description="Whether further tables moved that are not listed.")


class ConnectedEvent(ResponseModel):
    """`connected`: the first event of a stream."""

    tables: int = Field(description="Number of tables whose decisions are streamed.")
    all_tables: bool = Field(
        description="Whether these are all tables; if not, select tables with the parameter `table`."
    )


MAX_TABLES = 200
"""Maximum number of tables whose decisions one reader gets; beyond it, the reader has to name tables."""

MAX_MOVED = 500
"""Maximum number of tables that one event names: 30 kB."""

REFRESH_POLLS = 30
"""Polls between two lists of all tables: half a minute until a new table is included."""

RETRY_MS = 2_000
"""Milliseconds after which a browser that lost the connection reconnects."""

EXAMPLE = (
    "event: decision\n"
    'data: {"at":"2026-01-01T14:03:07Z","table_id":"sales-orders-1f0c7a52","table":"sales.orders",'
    '"partition_label":"dt=2026-01-01","version":41,"decision":"enqueue","reason":"eligible","outcome":"queued",'
    '"message":"Version 41, dt=2026-01-01: enqueue. ..."}\n'
    "id: 1767276187000-0/ledger.sales-orders-1f0c7a52\n\n"
)

About = Literal["decisions", "jobs", "queue", "tables"]

log = structlog.get_logger()

router = APIRouter(prefix="/v1/stream", tags=["status"])


async def _stream_slot(request: Request, http: Http) -> AsyncIterator[None]:
    """Hold one of the readers' slots until the response ends."""
    slots, client = http.stream_slots, request.scope.get("lakewright.client") or address(request.scope)
    if not slots.take(client):
        raise ApiError(
            503,
            f"Too many stream readers (limit {slots.limit}, per client {slots.per_client}); retry later or use another "
            "decider",
        )
    try:
        yield
    finally:
        slots.leave(client)


async def _position(
    queue: Queue,
    last_event_id: Annotated[
        str | None, Header(max_length=400, description="Id of the last received event; the stream resumes after it.")
    ] = None,
) -> StreamPosition:
    return await queue.streams.now() if last_event_id is None else position_after(last_event_id)


@dataclass(frozen=True, slots=True)
class _Selection:
    """The tables and jobs that a reader named: tables, None for all; and jobs, none for all."""

    tables: tuple[TableRef, ...] | None
    jobs: frozenset[str]


async def _selected(
    tables: Tables,
    table: Annotated[
        list[str] | None,
        Query(max_length=MAX_TABLES, description="Table names or ids; without it, all tables.", examples=["a.b"]),
    ] = None,
    job: Annotated[
        list[str] | None, Query(max_length=MAX_TABLES, description="Job ids; without it, all jobs.", examples=["t.1.x"])
    ] = None,
) -> _Selection:
    found = []
    for name in table or ():
        known = await tables.registry.find(name)
        if known is None:
            raise not_found("table", name)
        found.append(known)
    return _Selection(tuple(found) if table else None, frozenset(job or ()))


@router.get(
    "",
    summary="Stream decisions, jobs and queue depth",
    response_class=EventSourceResponse,
    dependencies=[Depends(_stream_slot)],
    responses=failures(404, 422)
    | {
        200: {
            "description": "Server-sent events: `connected`, then `decision`, `job`, `queue` and `tables`; `error` "
            "while Redis is unavailable. A comment every 15 seconds keeps the connection open.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
        }
    },
)
async def watch(
    tables: Tables,
    queue: Queue,
    http: Http,
    tail: Annotated[StreamPosition, Depends(_position)],
    selected: Annotated[_Selection, Depends(_selected)],
    about: Annotated[
        list[About] | None, Query(max_length=4, description="Kinds of events; without it, all but `tables`.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Stream decisions, job results, queue depth and moved tables as server-sent events.

    Resume with `Last-Event-ID`: events of one millisecond may be delivered twice, and events that the capped streams
    have dropped are lost.
    """
    watching = _Subscription(tables, queue, tail, selected, frozenset(about or ("decisions", "jobs", "queue")))
    yield await watching.begin()
    while True:
        try:
            for event in await watching.poll():
                yield event
        except LakewrightError as problem:
            yield ServerSentEvent(event="error", data={"detail": str(problem)})
        await asyncio.sleep(http.stream_slots.poll_s)


@dataclass(slots=True)
class _Subscription:
    """One reader: the events it selects, its position, and the depth and pauses that it received last."""

    known_tables: TableServices
    queue: QueueServices
    tail: StreamPosition
    selected: _Selection
    about: frozenset[str]
    tables: dict[TableId, TableRef] = field(default_factory=dict)
    reported: tuple[Mapping[str, int], tuple[str, ...]] = field(default_factory=lambda: ({}, ()))
    moves: MovePosition | None = None
    polls: int = 0

    async def begin(self) -> ServerSentEvent:
        """List the tables and describe the stream to the reader."""
        everything = await self._list()
        return ServerSentEvent(
            event="connected", data=ConnectedEvent(tables=len(self.tables), all_tables=everything), retry=RETRY_MS
        )

    async def poll(self) -> list[ServerSentEvent]:
        """Return what is new."""
        self.polls += 1
        if self.polls % REFRESH_POLLS == 0:
            await self._list()
        streams = [RUNS, NOTES] if "jobs" in self.about else []
        streams += [LEDGER + table for table in self.tables]
        events = [
            event for entry in await self.queue.streams.read(self.tail, streams) if (event := self._event_of(entry))
        ]
        return [*events, *await self._moved(), *([depth] if (depth := await self._depth()) else [])]

    async def _list(self) -> bool:
        """Select the tables whose decisions are sent; returns whether these are all that were requested."""
        if "decisions" not in self.about:
            return True
        if self.selected.tables is not None:
            self.tables = {table.id: table for table in self.selected.tables}
            return True
        page = await self.known_tables.registry.page(prefix="", after="", limit=MAX_TABLES)
        self.tables = {table.id: table for table in page.tables}
        return page.next_after is None

    async def _moved(self) -> list[ServerSentEvent]:
        if "tables" not in self.about:
            return []
        if self.moves is None:
            # What moved while the reader was away counts, too.
            self.moves = MovePosition(int(self.tail.start.partition("-")[0]))
        if not (moved := await self.queue.streams.moved(self.moves)):
            return []
        named = None if self.selected.tables is None else {table.id for table in self.selected.tables}
        ids = [table for table in moved if named is None or table in named]
        data = TablesEvent(table_ids=tuple(ids[:MAX_MOVED]), more=len(ids) > MAX_MOVED)
        return [ServerSentEvent(event="tables", data=data)] if ids else []

    async def _depth(self) -> ServerSentEvent | None:
        if "queue" not in self.about:
            return None
        found = await self.queue.admin.depth_of_all()
        depth = {state.value: count for state, count in found.depth.items()}
        if (current := (depth, await self.queue.admin.pauses())) == self.reported:
            return None
        self.reported = current
        return ServerSentEvent(
            event="queue", data=QueueStreamEvent(depth=depth, oldest_wait_s=found.oldest_wait_ms / 1000)
        )

    def _event_of(self, entry: StreamEntry) -> ServerSentEvent | None:
        """Convert an entry; None for another job than those named, and for one that cannot be read, which is logged."""
        try:
            if entry.table is not None:
                return ServerSentEvent(event="decision", data=self._decided(entry, entry.table), id=entry.id)
            if self.selected.jobs and entry.fields["job"] not in self.selected.jobs:
                return None
            return ServerSentEvent(event="job", data=_job(entry), id=entry.id)
        except (ValueError, LookupError, TypeError) as problem:
            log.warning("stream_entry_unreadable", entry=entry.id, error=str(problem))
            return None

    def _decided(self, entry: StreamEntry, of: TableId) -> DecisionEvent:
        table = self.tables[of]
        record = self.known_tables.ledgers.read(entry.fields["record"], entry.fields["out"], entry.at_ms)
        verdict, reason = (
            (record.verdict, record.reason) if isinstance(record, LedgerRecord) else (UNREADABLE, UNREADABLE)
        )
        return DecisionEvent(
            at=_at(record.at_ms),
            table_id=table.id,
            table=table.name,
            partition_label=None if record.partition is None else partition_label(record.partition),
            version=record.version,
            action=record.action,
            decision=verdict,
            reason=reason,
            outcome=record.outcome,
            message=record.message,
        )


def _job(entry: StreamEntry) -> JobStreamEvent:
    fields = entry.fields
    job = fields["job"]
    is_run = entry.stream == RUNS
    return JobStreamEvent(
        at=_at(entry.at_ms),
        job=job,
        event=fields["run_result"] if is_run else fields["event"],
        table_id=fields["table"] if is_run else job.rsplit(".", 2)[0],
        partition_label=partition_label(PartitionKey(fields["partition"])) if is_run else "",
        actor=fields["worker"] if is_run else "",
        detail=fields["error"] if is_run else fields["detail"],
    )


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
