"""Actors: list them and drain one."""

from typing import Annotated

from fastapi import APIRouter, Path

from decider.api.dependencies import Queue
from decider.api.openapi import failures
from decider.api.schemas.actors import ActorList, ActorView, UnservedJobs
from decider.api.schemas.queue import AdminResult
from decider.store.actor_registry import ActorRecord
from decider.web.base_model import moment
from decider.web.errors import not_found
from shared.queue.limits import MAX_NAME_CHARS

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


@router.get("", summary="List actors", responses=failures())
async def list_actors(queue: Queue) -> ActorList:
    """List actors with their slots, jobs, versions and heartbeat age."""
    seen = await queue.actors.all()
    unserved = await queue.actors.unserved(seen)
    return ActorList(
        slots=sum(one.slots for one in seen if one.takes_jobs),
        busy_slots=sum(one.busy_slots for one in seen),
        actors=tuple(map(_actor_view, seen)),
        unserved=tuple(UnservedJobs(ability=name, jobs=count) for name, count in unserved.items()),
    )


@router.post("/{actor}/drain", summary="Drain an actor", responses=failures(404, 422))
async def drain_actor(actor: ActorPath, queue: Queue) -> AdminResult:
    """Let an actor finish its jobs and claim no more, so that it can be stopped without losing work.

    Takes effect with the next heartbeat and lasts until the actor restarts.
    """
    if not await queue.actors.request_drain(actor):
        raise not_found("actor", actor)
    return AdminResult(message=f"Actor {actor} claims no more jobs; stop it when its state is drained.")


def _actor_view(one: ActorRecord) -> ActorView:
    return ActorView(
        id=one.name,
        state=one.state,
        slots=one.slots,
        busy_slots=one.busy_slots,
        jobs=one.jobs,
        host=one.host,
        abilities=one.abilities,
        versions=dict(one.versions),
        started_at=moment(one.started_ms),
        heartbeat_age_s=one.age_ms / 1000,
        expires_after_s=one.ttl_ms / 1000,
        error=one.death_cause,
    )
