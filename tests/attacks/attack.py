"""What an attack is: a name, and a run against a world of its own that yields limits, each met or not.

A module below `tests/attacks/cases` lists its attacks in `ATTACKS`; nothing else has to be registered. A limit is never
a number of milliseconds: it is a count, a state, or a ratio to what the same run measured before its attack.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.attacks import cases
from tests.attacks.honest import QUIET_RATIO, Fare, fare
from tests.attacks.hostile import HONEST, PAUSE_S, Crowd
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.time_limits import scaled


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of an attack: the promise, whether it was kept, and what was seen."""

    promise: str
    is_met: bool
    seen: str = ""

    def __str__(self) -> str:
        """Show it on a line."""
        return f"  {'met    ' if self.is_met else 'NOT MET'}  {self.promise}: {self.seen}"


@dataclass(frozen=True, slots=True)
class AttackWorld:
    """What an attack may use: an empty folder, a Redis of its own, and services that end with the attack."""

    folder: Path
    redis: RedisServer
    stack: Stack


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack; `run` prepares, attacks, and yields its limits as soon as each is known."""

    name: str
    run: Callable[[AttackWorld], Iterable[Limit]]


def all_attacks(only: str = "") -> Iterator[Attack]:
    """Yield the attacks of all modules whose name contains a match of the expression, in the order of the modules."""
    for found in sorted(pkgutil.iter_modules(cases.__path__), key=lambda one: one.name):
        module = importlib.import_module(f"{cases.__name__}.{found.name}")
        yield from (attack for attack in module.ATTACKS if re.search(only, attack.name))


SECONDS = 6.0
"""Seconds for which the honest client is watched before the attack, and during it."""


def beside(world: AttackWorld, kind: str, count: int, pause_s: float = PAUSE_S) -> Iterator[Limit]:
    """Measure an honest client alone, beside so many clients of a kind, and alone again.

    The slower of both quiet times counts: other programs on the machine come and go.
    """
    before = _fare(world)
    crowd = Crowd(world.stack.port, {kind: count}, pause_s)
    attacked = _fare(world)
    crowd.close()
    quiet = max(before, _fare(world), key=lambda one: one.p99_s)
    yield Limit("all calls of others are accepted", not attacked.refused, f"{attacked.answers}")
    yield as_quiet(attacked.p99_s, quiet.p99_s)
    yield alive(world)


def as_quiet(attacked_s: float, quiet_s: float) -> Limit:
    """Return whether the slowest hundredth of honest calls takes not much longer than without an attack."""
    seen = f"{attacked_s / quiet_s:.1f} times ({1000 * quiet_s:.0f} ms quiet)"
    promise = f"the p99 of others is at most {QUIET_RATIO:g} times the quiet one"
    return Limit(promise, attacked_s <= QUIET_RATIO * quiet_s, seen)


def alive(world: AttackWorld) -> Limit:
    """Return whether the decider is alive and ready."""
    states = [httpx.get(world.stack.url + path, timeout=scaled(10)).status_code for path in ("/livez", "/readyz")]
    return Limit("the decider is alive and ready", states == [200, 200], f"{states}")


def _fare(world: AttackWorld) -> Fare:
    return fare(world.stack.url, seconds=SECONDS, token=HONEST)
