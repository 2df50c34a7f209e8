"""Actors over the wire: who is there, what each runs, and what with."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class ActorView(ResponseModel):
    """One actor, as it says itself with its heartbeat."""

    id: str = Field(description="Its name among the workers.")
    state: str = Field(
        description="`working`, `idle`, `draining` (takes no more jobs, finishes those it has), `drained`, or `died`."
    )
    slots: int = Field(description="Jobs that it runs at once at most.")
    jobs: tuple[str, ...] = Field(description="Ids of the jobs that it runs.")
    host: str = Field(description="The machine that it runs on.")
    versions: dict[str, str] = Field(description="Versions of what it works with.")
    started_at: datetime | None = Field(description="When it started, by its own clock.")
    heartbeat_age_s: float = Field(description="Seconds since its last word.")
    expires_after_s: float = Field(description="Seconds after its last word at which it is no longer listed.")
    error: str = Field(description="Why it died; empty if it did not.")


ACTOR_EXAMPLE: dict[str, Any] = {
    "id": "worker-7-4711",
    "state": "working",
    "slots": 2,
    "jobs": ["sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact"],
    "host": "worker-7",
    "versions": {"lakewright": "0.1.0", "spark": "4.1.4", "delta": "4.4.0", "java": "17.0.13"},
    "started_at": "2026-01-01T08:00:00Z",
    "heartbeat_age_s": 1.7,
    "expires_after_s": 30.0,
    "error": "",
}


class ActorList(ResponseModel):
    """The actors that are there."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"slots": 2, "busy_slots": 1, "actors": [ACTOR_EXAMPLE]}]}
    )

    slots: int = Field(description="Slots of all actors that take jobs.")
    busy_slots: int = Field(description="Jobs that run on any actor.")
    actors: tuple[ActorView, ...] = Field(description="The actors by name.")
