"""The actors that are alive, as they report themselves; one that stopped reporting is not listed, and soon deleted."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys
from shared.queue.decode import text
from shared.queue.model import SPARE_CAPACITY, JobId

MAX_ACTORS = 1_000
"""Actors listed at most; each costs one hash to read, in one round trip for all."""

DRAIN_TTL_S = 86_400
"""Time to live of a drain request; an actor reads it every few seconds."""


@dataclass(frozen=True, slots=True)
class ActorRecord:
    """One actor. `age_ms`: time since its last report, by Redis' clock; `ttl_ms`: after how long it counts as stopped.

    `death_cause`: why it ended, if it could not continue; such an actor is listed for a while. `abilities`: what it can
    do, each as `format/action`. `group`: the one that it serves, or its queue.
    """

    name: str
    slots: int
    busy_slots: int
    jobs: tuple[JobId, ...]
    drain_requested: bool
    drain_acknowledged: bool
    host: str
    versions: Mapping[str, str]
    started_ms: int
    age_ms: int
    ttl_ms: int
    death_cause: str = ""
    abilities: tuple[str, ...] = ()
    group: str = ""

    @property
    def takes_jobs(self) -> bool:
        """True if it claims jobs, or will after those it has."""
        return not (self.drain_requested or self.drain_acknowledged or self.death_cause)

    @property
    def state(self) -> str:
        """Its state: `working`, `idle`, `draining` (finishes its jobs, takes no more), `drained` or `died`."""
        if self.death_cause:
            return "died"
        if not self.takes_jobs:
            return "drained" if self.drain_acknowledged and not self.jobs else "draining"
        return "working" if self.jobs else "idle"


class ActorRegistry:
    """Reads the reports of actors, and asks one to take no more jobs."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._redis = queue.redis
        self._queue = queue.name

    @translate_redis_errors
    async def all(self) -> tuple[ActorRecord, ...]:
        """Return the actors that are alive, by name; the names of the others are deleted."""
        found: Any = await self._redis.smembers(keys.actors(self._queue))
        names = sorted(text(name) for name in found)[:MAX_ACTORS]
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hgetall(keys.actor(self._queue, name))
                pipe.pttl(keys.actor(self._queue, name))
                pipe.get(keys.drain(self._queue, name))
            rows = await pipe.execute()
        group = keys.group_of(self._queue) or self._queue
        seen = [_decode(name, group, *rows[3 * place : 3 * place + 3]) for place, name in enumerate(names)]
        gone = [name for name, one in zip(names, seen, strict=True) if one is None]
        if gone:
            await self._redis.srem(keys.actors(self._queue), *gone)
        return tuple(one for one in seen if one is not None)

    async def slots(self) -> int:
        """Add up the slots of the live actors that take jobs."""
        return sum(one.slots for one in await self.all() if one.takes_jobs)

    @translate_redis_errors
    async def waiting_by_ability(self) -> dict[str, int]:
        """Count the jobs that were set aside because no actor that claimed could run them, by the ability they need."""
        found: Any = await self._redis.smembers(keys.aside(self._queue))
        names = sorted(text(name) for name in found)
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.zcard(keys.aside_jobs(self._queue, name))
            counts = await pipe.execute()
        return {name: count for name, count in zip(names, counts, strict=True) if count}

    async def unserved(self, actors: Iterable[ActorRecord]) -> dict[str, int]:
        """Count the jobs that none of these actors can run, by the ability that they need."""
        served = {SPARE_CAPACITY, *(ability for one in actors if one.takes_jobs for ability in one.abilities)}
        waiting = await self.waiting_by_ability()
        return {name: count for name, count in waiting.items() if name not in served}

    @translate_redis_errors
    async def request_drain(self, name: str) -> bool:
        """Ask an actor to take no more jobs; False if it is not registered."""
        if not await self._redis.exists(keys.actor(self._queue, name)):
            return False
        await self._redis.set(keys.drain(self._queue, name), "1", ex=DRAIN_TTL_S)
        return True


def _decode(name: str, group: str, raw: Mapping[bytes, bytes], left_ms: int, drain: bytes | None) -> ActorRecord | None:
    if not raw:
        return None
    fields = {text(field): text(value) for field, value in raw.items()}
    kept_ms = int(fields["kept_ms"])
    return ActorRecord(
        name=name,
        slots=int(fields["slots"]),
        busy_slots=int(fields["busy_slots"]),
        jobs=tuple(JobId(job) for job in json.loads(fields["jobs"])),
        drain_requested=drain is not None,
        drain_acknowledged=fields["drain"] == "1",
        host=fields["host"],
        versions=json.loads(fields["versions"]),
        started_ms=int(fields["started_ms"]),
        age_ms=max(0, kept_ms - left_ms) if left_ms >= 0 else kept_ms,
        ttl_ms=kept_ms,
        death_cause=fields.get("died", ""),
        abilities=tuple(json.loads(fields["abilities"])),
        group=group,
    )
