"""Schemas of actors."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class ActorView(ResponseModel):
    """One actor, as reported with its heartbeat."""

    id: str = Field(description="Actor name.")
    state: str = Field(
        description="`working`, `idle`, `draining` (finishes its jobs and claims no more), `drained`, or `died`."
    )
    slots: int = Field(description="Number of slots; each runs one job at a time, or several that share a commit.")
    busy_slots: int = Field(description="Slots that run jobs.")
    jobs: tuple[str, ...] = Field(description="Ids of the running jobs.")
    host: str = Field(description="Host name.")
    abilities: tuple[str, ...] = Field(
        description="Jobs that the actor can run, each as `format/action`; it claims no others."
    )
    versions: dict[str, str] = Field(description="Versions of Lakewright, Spark, Delta and Java.")
    started_at: datetime | None = Field(description="Start time, by the actor's clock.")
    heartbeat_age_s: float = Field(description="Seconds since the last heartbeat.")
    expires_after_s: float = Field(description="Seconds without a heartbeat after which the actor is no longer listed.")
    error: str = Field(description="Error that ended the actor; empty otherwise.")


ACTOR_EXAMPLE: dict[str, Any] = {
    "id": "worker-7-4711",
    "state": "working",
    "slots": 2,
    "busy_slots": 1,
    "jobs": ["sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact"],
    "host": "worker-7",
    "abilities": ["delta/compact"],
    "versions": {"lakewright": "0.1.0", "spark": "4.1.4", "delta": "4.4.0", "java": "17.0.13"},
    "started_at": "2026-01-01T08:00:00Z",
    "heartbeat_age_s": 1.7,
    "expires_after_s": 30.0,
    "error": "",
}


class UnservedJobs(ResponseModel):
    """Jobs that wait because no actor that takes jobs has the ability that they need."""

    ability: str = Field(description="Ability that the jobs need, as `format/action`.")
    jobs: int = Field(description="Number of jobs.")


class ActorList(ResponseModel):
    """Registered actors."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"slots": 2, "busy_slots": 1, "actors": [ACTOR_EXAMPLE], "unserved": []}]},
    )

    slots: int = Field(description="Slots of all actors that claim jobs.")
    busy_slots: int = Field(description="Slots of any actor that run jobs.")
    actors: tuple[ActorView, ...] = Field(description="Actors by name.")
    unserved: tuple[UnservedJobs, ...] = Field(
        description="Jobs that none of these actors can run, by the ability that they need."
    )
