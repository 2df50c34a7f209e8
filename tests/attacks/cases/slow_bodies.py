"""Bodies that trickle, and clients that leave within theirs: no other waits, and nothing is an error of ours."""

from collections.abc import Iterator

import httpx

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import beside
from tests.attacks.hostile import TOKENS
from tests.support.time_limits import scaled


def _slow_bodies_of_a_token(world: AttackWorld) -> Iterator[Limit]:
    world.stack.decider(**TOKENS)
    yield from beside(world, "slow bodies of a token", 530)


def _slow_signed_bodies(world: AttackWorld) -> Iterator[Limit]:
    world.stack.decider(**TOKENS)
    yield from beside(world, "slow signed bodies", 300)


def _leaving(world: AttackWorld) -> Iterator[Limit]:
    decider = world.stack.decider(**TOKENS)
    yield from beside(world, "clients that leave", 16, pause_s=0.05)
    counted = httpx.get(f"{world.stack.url}/metrics", timeout=scaled(10)).text
    yield Limit("none is counted as an error of ours", 'status="500"' not in counted, "")
    yield Limit("none leaves a traceback", "Traceback" not in decider.log.read_text(), "")


ATTACKS = (
    Attack("530 slow bodies of one token", _slow_bodies_of_a_token),
    Attack("300 slow bodies that claim to be signed", _slow_signed_bodies),
    Attack("clients that leave within their body", _leaving),
)
