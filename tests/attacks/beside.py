"""What holds beside every attack of clients: others are served, nearly as fast as before, and no task ends."""

from collections.abc import Iterator

import httpx

from tests.attacks.attack import AttackWorld, Limit
from tests.attacks.honest import QUIET_RATIO, Fare, fare
from tests.attacks.hostile import HONEST, PAUSE_S, Crowd
from tests.support.time_limits import scaled

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
