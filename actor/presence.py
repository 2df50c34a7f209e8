"""Registration of an actor: that it is alive, its jobs and its versions; it expires by itself.

Nothing depends on it: jobs are kept by leases alone. It is sent with the heartbeat, and the reply is the one request
that an actor receives: to be drained. A new process under an old name begins without the old request.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis.exceptions import RedisError
from redis.typing import EncodableT

from actor.queue_executor import SyncQueueExecutor
from shared.errors import RetryableError
from shared.queue import keys
from shared.queue.limits import MAX_ERROR_CHARS
from shared.queue.model import JobId

DEATH_TTL_MS = 3_600_000
"""How long an actor that died is listed with its cause: an hour, or until one of the same name takes its place."""


@dataclass(frozen=True, slots=True)
class ActorInfo:
    """Attributes of an actor that never change; `versions` by what they are of, `started_ms` since 1970.

    `abilities`: what it can do, each as `format/action`; it claims no other jobs.
    """

    slots: int
    started_ms: int
    host: str
    versions: Mapping[str, str]
    abilities: tuple[str, ...] = ()


class Presence:
    """Reports about one actor; it counts as stopped `ttl_ms` after its last report."""

    def __init__(self, queue: SyncQueueExecutor, name: str, about: ActorInfo, *, ttl_ms: int) -> None:
        self._redis = queue.redis
        self._name = name
        self._key = keys.actor(queue.name, name)
        self._names = keys.actors(queue.name)
        self._drain = keys.drain(queue.name, name)
        self._ttl_ms = ttl_ms
        self._fixed: dict[EncodableT, EncodableT] = {
            "slots": about.slots,
            "started_ms": about.started_ms,
            "host": about.host,
            "versions": json.dumps(dict(about.versions), separators=(",", ":")),
            "abilities": json.dumps(about.abilities),
            "kept_ms": ttl_ms,
        }
        self._is_new = True
        self._is_drained = False

    def announce(self, jobs: Sequence[JobId], busy_slots: int) -> bool:
        """Report which jobs run, and in how many slots; returns whether the actor is to take no more.

        Raises RetryableError without Redis.
        """
        try:
            forgets = self._is_new and not self._was_announced()
            with self._redis.pipeline(transaction=True) as pipe:
                if forgets:
                    pipe.delete(self._key, self._drain)
                work: dict[EncodableT, EncodableT] = {"jobs": json.dumps(list(jobs)), "busy_slots": busy_slots}
                pipe.hset(self._key, mapping={**self._fixed, **work})
                pipe.hset(self._key, "drain", str(int(self._is_drained)))
                pipe.pexpire(self._key, self._ttl_ms)
                pipe.sadd(self._names, self._name)
                pipe.get(self._drain)
                *_, asked = pipe.execute()
        except RedisError as problem:
            raise RetryableError(f"the actor {self._name} cannot report that it is alive: {problem}") from problem
        self._is_new = False
        # Confirmed with the next report only: a claim under way when the request was received is among its jobs by
        # then.
        self._is_drained = self._is_drained or asked is not None
        return self._is_drained

    def _was_announced(self) -> bool:
        """Return whether Redis knows this process: the first reply was lost, so the request is meant for it."""
        return self._redis.hget(self._key, "started_ms") == str(self._fixed["started_ms"]).encode()

    def report_death(self, cause: str) -> None:
        """Report why this actor ended, for people. Raises RetryableError without Redis."""
        try:
            with self._redis.pipeline(transaction=True) as pipe:
                fields = {**self._fixed, "jobs": "[]", "busy_slots": 0, "drain": "0", "died": cause[:MAX_ERROR_CHARS]}
                pipe.hset(self._key, mapping={**fields, "kept_ms": DEATH_TTL_MS})
                pipe.pexpire(self._key, DEATH_TTL_MS)
                pipe.delete(self._drain)
                pipe.sadd(self._names, self._name)
                pipe.execute()
        except RedisError as problem:
            raise RetryableError(f"the actor {self._name} cannot report why it ends: {problem}") from problem

    def deregister(self) -> None:
        """Delete the registration at once. Raises RetryableError without Redis."""
        try:
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(self._key, self._drain)
                pipe.srem(self._names, self._name)
                pipe.execute()
        except RedisError as problem:
            raise RetryableError(f"the actor {self._name} cannot report that it leaves: {problem}") from problem
