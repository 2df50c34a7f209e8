"""Schemas of the event stream: the `data` of each kind of event."""

from datetime import datetime

from pydantic import Field

from decider.web.base_model import ResponseModel


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
    """`queue`: queue depth, sent on every change, without an id."""

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
