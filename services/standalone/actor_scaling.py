"""How many actors a backlog needs, and which of them to start, drain and stop: pure functions of what was observed.

More actors are started as soon as the backlog needs them. Fewer are kept only after fewer have sufficed for a while:
the target is the greatest need within the last `idle_s` seconds, so that a backlog that varies stops no actor that it
needs again. An actor is stopped only after it was drained: it has finished its jobs and claims no more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

MIB, GIB = 1 << 20, 1 << 30

MAX_ACTORS = 64
"""Most actors that one machine is asked to run; each is a JVM of a gigabyte and more."""

BESIDE_HEAP_BYTES = int(1.2 * GIB)
"""Memory of an actor beside its heap (docs/deploy.md)."""

SHARE_OF_MEMORY = 0.75
"""Share of the machine's memory for actors; the rest is for Redis, the decider and what else runs."""

_JVM_SIZE = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": MIB, "g": GIB, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class ActorCount:
    """How many actors run: none or one, or as many as the backlog needs.

    maximum: of an automatic count; None: as many as the machine has cores and memory for.
    """

    fixed: int = 1
    is_automatic: bool = False
    maximum: int | None = None


ONE_ACTOR = ActorCount()


def parse_actor_count(text: str) -> ActorCount:
    """Read `0`, `1`, `auto` or `auto:4`. Raises ValueError."""
    if text in ("0", "1"):
        return ActorCount(int(text))
    kind, colon, maximum = text.partition(":")
    if kind == "auto" and not colon:
        return ActorCount(0, is_automatic=True)
    if kind == "auto" and maximum.isdecimal() and 1 <= int(maximum) <= MAX_ACTORS:
        return ActorCount(0, is_automatic=True, maximum=int(maximum))
    raise ValueError(f"expected 0, 1, auto, or auto:N with N from 1 to {MAX_ACTORS}")


class ActorState(StrEnum):
    """State of an actor of the pool; one that starts is not known to the decider yet."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    DRAINING = "draining"
    DRAINED = "drained"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """When an actor is started or stopped.

    max_actors: processes at any time, those that stop included. actor_work_s: predicted seconds of work, on one slot,
    for each actor. idle_s: for how long fewer actors must suffice before one is drained.
    """

    max_actors: int
    actor_work_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Need:
    """How many actors the backlog needed at a time in seconds."""

    at_s: float
    actors: int


@dataclass(frozen=True, slots=True)
class PoolActor:
    """One actor of the pool, in the order of starting."""

    name: str
    state: ActorState


@dataclass(frozen=True, slots=True)
class Steps:
    """Next steps: how many actors to start, which to drain, and which drained ones to stop."""

    start: int = 0
    drain: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()


def needed_actors(work_s: float, rule: ScalingRule) -> int:
    """Return how many actors a backlog of so many predicted seconds needs; any work needs one."""
    return min(rule.max_actors, ceil(work_s / rule.actor_work_s))


def with_need(recent: Sequence[Need], need: Need, rule: ScalingRule) -> tuple[Need, ...]:
    """Add a need to the needs of the last `idle_s` seconds; the first of them is the greatest, and so the target.

    Needs that a later one reaches are left out, because they never become the greatest again.
    """
    kept = (one for one in recent if need.at_s - one.at_s < rule.idle_s and one.actors > need.actors)
    return (*kept, need)


def next_steps(actors: Sequence[PoolActor], target: int, rule: ScalingRule) -> Steps:
    """Return what brings the pool nearer to its target.

    Idle actors are drained before working ones, and later ones first. One that still starts cannot be drained: it is
    when it has started.
    """
    serving = [one for one in actors if one.state in (ActorState.STARTING, ActorState.IDLE, ActorState.WORKING)]
    stop = tuple(one.name for one in actors if one.state is ActorState.DRAINED)
    if len(serving) <= target:
        return Steps(max(0, min(target - len(serving), rule.max_actors - len(actors))), (), stop)
    started = [one for one in reversed(serving) if one.state is not ActorState.STARTING]
    started.sort(key=lambda one: one.state is ActorState.WORKING)
    return Steps(0, tuple(one.name for one in started[: len(serving) - target]), stop)


def jvm_bytes(text: str) -> int:
    """Return the bytes of a size in the JVM's notation, such as `1g`. Raises ValueError."""
    match = _JVM_SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no size of the JVM, such as 512m or 2g")
    return int(match[1]) * _UNITS[match[2].lower()]


def default_max_actors(*, cores: int, memory_bytes: int, cores_of_actor: int, heap_bytes: int) -> int:
    """Return how many actors a machine has cores and memory for, at least one.

    cores_of_actor: that one actor keeps busy, which is its slots times the groups that each writes at once.
    """
    by_memory = int(SHARE_OF_MEMORY * memory_bytes) // (heap_bytes + BESIDE_HEAP_BYTES)
    return max(1, min(ceil(cores / cores_of_actor), by_memory, MAX_ACTORS))
