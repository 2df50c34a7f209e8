"""Runs as many actors as the backlog needs: asks the decider, decides by `actor_scaling`, and starts, drains and stops.

The decider's own interface says how much work waits, and drains actors. While it does not answer, nothing changes.
Names are never used twice, so that no report of an earlier process is taken for a later one's.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
import structlog

from decider.storage import machine
from services.actor.settings import MEMORY, actor_settings
from services.settings import scaling_seconds
from services.standalone.actor_scaling import (
    ActorCount,
    ActorState,
    Need,
    PoolActor,
    ScalingRule,
    Steps,
    default_max_actors,
    jvm_bytes,
    needed_actors,
    next_steps,
    with_need,
)
from services.standalone.supervisor import ChildSpec
from shared.errors import InvalidInput

POLL_S = 3.0
"""Seconds between two looks at the backlog: an actor takes longer to start, and reports every five seconds."""

_ANSWER_S = 2.0

log = structlog.get_logger()


class Children(Protocol):
    """Port that starts and stops processes."""

    def add(self, spec: ChildSpec) -> None:
        """Start a child and keep it running."""

    def retire(self, name: str) -> None:
        """Ask a child to end, and do not start it again."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all children, of those that are ending, too."""


@dataclass(frozen=True, slots=True)
class DeciderState:
    """A report of the decider: predicted seconds of work, and the state of each actor by its name."""

    work_s: float
    actors: Mapping[str, str]


class DeciderClient:
    """The calls to the decider; raises httpx.HTTPError where it does not answer as it should."""

    def __init__(self, url: str, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=_ANSWER_S, trust_env=False)

    def read(self) -> DeciderState:
        """Return the backlog and the actors."""
        actors = self._get("/v1/actors")["actors"]
        return DeciderState(self._get("/v1/backlog")["work_s"], {one["id"]: one["state"] for one in actors})

    def drain(self, actor: str) -> None:
        """Let an actor finish its jobs and claim no more; one that is not known any more has none."""
        answer = self._client.post(f"/v1/actors/{actor}/drain")
        if answer.status_code != httpx.codes.NOT_FOUND:
            answer.raise_for_status()

    def _get(self, path: str) -> Any:
        return self._client.get(path).raise_for_status().json()


class ActorPool:
    """The actors of one machine; `tick` does what is due, and returns at once otherwise."""

    def __init__(
        self,
        children: Children,
        decider: DeciderClient,
        rule: ScalingRule,
        spec: Callable[[str], ChildSpec],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._children = children
        self._decider = decider
        self._rule = rule
        self._spec = spec
        self._clock = clock
        self._recent: tuple[Need, ...] = ()
        self._started = 0
        self._names: list[str] = []
        self._stopping: set[str] = set()
        self._next_s = clock()
        self._target = 0
        self._is_answered = True

    def tick(self) -> None:
        """Compare the pool with the backlog, if that is due."""
        now_s = self._clock()
        if now_s < self._next_s:
            return
        self._next_s = now_s + POLL_S
        try:
            found = self._decider.read()
            self._adapt(found, now_s)
        except httpx.HTTPError as problem:
            if self._is_answered:
                log.warning("backlog_unknown", error=str(problem), effect="the number of actors stays as it is")
            self._is_answered = False
        else:
            self._is_answered = True

    def _adapt(self, found: DeciderState, now_s: float) -> None:
        need = needed_actors(found.work_s, self._rule)
        self._recent = with_need(self._recent, Need(now_s, need), self._rule)
        target = self._recent[0].actors
        actors = self._actors(found.actors)
        if target != self._target:
            log.info("actors_scaled", work_s=found.work_s, target=target, actors=len(actors))
            self._target = target
        self._take(next_steps(actors, target, self._rule))

    def _take(self, steps: Steps) -> None:
        for name in steps.stop:
            self._stopping.add(name)
            self._children.retire(name)
        for _ in range(steps.start):
            self._started += 1
            name = f"actor-{self._started}"
            self._names.append(name)
            self._children.add(self._spec(name))
        for name in steps.drain:
            self._decider.drain(name)

    def _actors(self, reported: Mapping[str, str]) -> list[PoolActor]:
        """Return the actors whose processes have not ended, with the states that the decider reports."""
        running = self._children.names()
        self._names = [name for name in self._names if name in running]
        self._stopping &= set(self._names)
        return [PoolActor(name, self._state(name, reported.get(name, ""))) for name in self._names]

    def _state(self, name: str, reported: str) -> ActorState:
        if name in self._stopping:
            return ActorState.STOPPING
        # One that died is started again by the supervisor, and reports itself then.
        return ActorState.STARTING if reported in ("", "died") else ActorState(reported)


def scaling_rule(count: ActorCount, environment: Mapping[str, str]) -> ScalingRule:
    """Return the rule that the settings and the machine lead to. Raises InvalidInput for a setting that is unusable."""
    settings = actor_settings(environment)
    try:
        heap_bytes = jvm_bytes(settings.driver_memory)
    except ValueError as problem:
        raise InvalidInput(f"{MEMORY}: {problem}", field=MEMORY) from problem
    maximum = count.maximum or default_max_actors(
        cores=machine.cores(),
        memory_bytes=machine.memory_bytes(),
        cores_of_actor=settings.slots * settings.parallel_groups,
        heap_bytes=heap_bytes,
    )
    work_s, idle_s = scaling_seconds(environment)
    return ScalingRule(maximum, work_s * settings.slots, idle_s)
