"""Actors: list them and drain one."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from decider.api.dependencies import GroupAsked, Queue
from decider.api.openapi import failures
from decider.api.routes.queue import AdminResult
from decider.store.queue.actor_registry import ActorRecord
from decider.web.base_model import Moment, ResponseModel, Seconds, read_from
from decider.web.errors import not_found
from shared.queue.limits import MAX_NAME_CHARS


class ActorView(
    ResponseModel,
    alias_generator=read_from(
        id="name", started_at="started_ms", heartbeat_age_s="age_ms", expires_after_s="ttl_ms", error="death_cause"
    ),
):
    """One actor, as reported with its heartbeat."""

    id: str = Field(description="Actor name.")
    group: str = Field(description="Group of the queue that it serves.")
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
    started_at: Moment = Field(description="Start time, by the actor's clock.")
    heartbeat_age_s: Seconds = Field(description="Seconds since the last heartbeat.")
    expires_after_s: Seconds = Field(description="Seconds without one after which the actor is no longer listed.")
    error: str = Field(description="Error that ended the actor; empty otherwise.")


class UnservedJobs(ResponseModel):
    """Jobs that wait because no actor that takes jobs has the ability that they need."""

    ability: str = Field(description="Ability that the jobs need, as `format/action`.")
    jobs: int = Field(description="Number of jobs.")


class ActorList(ResponseModel):
    """Registered actors."""

    slots: int = Field(description="Slots of all actors that claim jobs.")
    busy_slots: int = Field(description="Slots of any actor that run jobs.")
    actors: tuple[ActorView, ...] = Field(description="Actors by group and name.")
    unserved: tuple[UnservedJobs, ...] = Field(
        description="Jobs that no actor of their group can run, by the ability that they need."
    )


router = APIRouter(prefix="/v1/actors", tags=["actors"])

ActorPath = Annotated[
    str,
    Path(
        max_length=MAX_NAME_CHARS,
        pattern=r"^[^\s|{}/]+$",
        description="Actor name.",
        openapi_examples={"an actor": {"value": "worker-7-4711"}},
    ),
]


@router.get("", summary="List actors", responses=failures(404, 422))
async def list_actors(queue: Queue, group: GroupAsked) -> ActorList:
    """List actors with their slots, jobs, versions and heartbeat age."""
    seen, unserved = list[ActorRecord](), Counter[str]()
    for one in queue.by_group.values() if group is None else (group,):
        own = await one.actors.all()
        seen += own
        unserved.update(await one.actors.unserved(own))
    return ActorList(
        slots=sum(one.slots for one in seen if one.takes_jobs),
        busy_slots=sum(one.busy_slots for one in seen),
        actors=tuple(map(ActorView.of, seen)),
        unserved=tuple(UnservedJobs(ability=name, jobs=count) for name, count in unserved.items()),
    )


@router.post("/{actor}/drain", summary="Drain an actor", responses=failures(404, 422))
async def drain_actor(actor: ActorPath, queue: Queue) -> AdminResult:
    """Let an actor finish its jobs and claim no more, so that it can be stopped without losing work.

    Takes effect with the next heartbeat and lasts until the actor restarts.
    """
    if not any([await one.actors.request_drain(actor) for one in queue.by_group.values()]):
        raise not_found("actor", actor)
    return AdminResult(message=f"Actor {actor} claims no more jobs; stop it when its state is drained.")
