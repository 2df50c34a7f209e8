"""What the event stream carries: the `data` of each kind of event."""

from datetime import datetime

from pydantic import Field

from decider.web.base_model import ResponseModel


class DecisionEvent(ResponseModel):
    """`decision`: what was decided about a cell; skips included."""

    at: datetime = Field(description="When it was decided, by the decider's clock.")
    table_id: str = Field(description="Id of the table.")
    table: str = Field(description="Name of the table.")
    partition_label: str | None = Field(description="The partition, by its columns as the log spells them.")
    version: int | None = Field(description="Version of the table whose commit led to it.")
    decision: str = Field(description="`skip`, `enqueue`, `defer`, or `unreadable`: what a newer release wrote.")
    reason: str = Field(description="Why, as a stable word.")
    outcome: str = Field(description="What became of the job; empty where none was wanted.")
    message: str = Field(description="The whole decision in words.")


class JobStreamEvent(ResponseModel):
    """`job`: a run that ended, or what no run reports (quarantined, preempted, cancel)."""

    at: datetime = Field(description="When it happened, by the server's clock.")
    job: str = Field(description="Id of the job.")
    event: str = Field(description="`done`, `yield`, `fail`, `cancelled`, or what happened to it.")
    table_id: str = Field(description="Id of its table.")
    partition_label: str = Field(description="The partition; empty where it is not known.")
    actor: str = Field(description="Who ran it; empty where nobody did.")
    detail: str = Field(description="The error, or what else there is to say.")


class QueueStreamEvent(ResponseModel):
    """`queue`: how many jobs there are, whenever that changes; it has no id, for only the newest counts."""

    depth: dict[str, int] = Field(description="Jobs per state.")
    oldest_wait_s: float = Field(description="Seconds that the oldest queued job has been waiting.")


class ConnectedEvent(ResponseModel):
    """`connected`: the first event, which says what will come."""

    tables: int = Field(description="Tables whose decisions will come.")
    all_tables: bool = Field(
        description="Whether that is all of them; if not, name those that matter with the parameter `table`."
    )
