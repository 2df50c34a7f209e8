"""Faults of a primary that sentinels replace, and of workers: everything finds the primary by its sentinels."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.chaos.faults import worker_killed, worker_paused
from tests.chaos.history import now_ns
from tests.chaos.network import Network
from tests.chaos.run import run_in
from tests.chaos.verdict import Verdict
from tests.chaos.world import World
from tests.support.redis_sentinels import RedisSentinels


class SentinelNetwork(Network):
    """No proxy: sentinels name the servers' own addresses."""

    def __init__(self, sentinels: RedisSentinels) -> None:
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        """The sentinels."""
        return self.sentinels.url

    @property
    def direct_url(self) -> str:
        """The sentinels, too."""
        return self.sentinels.url

    def close(self) -> None:
        """End all servers."""
        self.sentinels.close()


def primary_killed(world: World) -> None:
    """Kill -9 the primary; it comes back with its old data, and becomes a replica."""
    _fail_over(world, "primary_killed", is_paused=False)


def primary_paused(world: World) -> None:
    """Stop the primary; when it goes on, it takes itself for the primary until a sentinel tells it otherwise."""
    _fail_over(world, "primary_paused", is_paused=True)


def _fail_over(world: World, fault: str, *, is_paused: bool) -> None:
    if not isinstance(world.network, SentinelNetwork):
        raise TypeError("this world has no sentinels")
    sentinels, since = world.network.sentinels, now_ns()
    world.kills += 1
    with world.lock:
        old = sentinels.fail_over(is_paused=is_paused)
        world.redis = sentinels.primary
        world.take_back(fault, since)
    world.await_service(fault, since)
    with world.lock:
        # Until a sentinel demotes it, the old primary acknowledges what it is sent, and then forgets it.
        sentinels.bring_back(old, is_paused=is_paused)
        world.take_back(fault, since)


FAULTS = (worker_killed, worker_paused, primary_killed, primary_paused)


def run(binary: Path, seconds: float, seed: int, say: Callable[[str], None]) -> Verdict:
    """Run for so many seconds with sentinels, every kind of fault at least once."""
    sentinels = RedisSentinels(binary)
    with tempfile.TemporaryDirectory() as folder:
        world = World(sentinels.primary, SentinelNetwork(sentinels), Path(folder), Random(seed))
        return run_in(world, FAULTS, seconds, seed, say)
