"""Connections that never send a call: more of them than the decider has descriptors."""

from collections.abc import Iterator

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import beside
from tests.attacks.hostile import TOKENS

CONNECTIONS = 1_300
"""More than the usual soft limit of descriptors, 1,024."""

LOG_BYTES = 200_000
"""What a decider may write into its log meanwhile; 18 MB in 30 s were seen."""


def _run(world: AttackWorld) -> Iterator[Limit]:
    decider = world.stack.handicapped_decider("few-descriptors", **TOKENS)
    yield from beside(world, "half-open connections", CONNECTIONS)
    size = decider.log.stat().st_size
    yield Limit(f"its log grows by less than {LOG_BYTES} bytes", size < LOG_BYTES, f"{size} bytes")


ATTACKS = (Attack("1,300 half-open connections", _run),)
