"""Faults of the machines that decider and workers run on: full disks, no descriptors, hanging reads, hostile files.

Each lasts for a moment. What goes on in it must go on, and nothing is lost when it is over.
"""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.attacks.handicapped import FULL_LOG, HANGING
from tests.chaos.follower import Follower
from tests.chaos.history import now_ns
from tests.chaos.network import Weather
from tests.chaos.table import OUTPUTS, SCRATCH
from tests.chaos.world import World, wait

SLOW_S = 1.0
"""Delay of each request to a slow Redis."""


def logs_full(world: World) -> None:
    """The disk of the decider's logs is full: it follows tables all the same."""
    with _there(_follower(world).data / FULL_LOG):
        world.expect(_follower(world).follows(), "logs_full: a decider whose log is full follows no event")


def state_full(world: World) -> None:
    """No file of the decider can grow, those of its state, its logs and below /tmp: it follows tables all the same."""
    with _limited(world, resource.RLIMIT_FSIZE, 0):
        world.expect(_follower(world).follows(), "state_full: a decider whose disk is full follows no event")


def tables_full(world: World) -> None:
    """The disk of the tables is full, on which workers write outputs."""
    _no_room(world, OUTPUTS)


def scratch_full(world: World) -> None:
    """The disk of temporary files is full, which workers need."""
    _no_room(world, SCRATCH)


def descriptors_gone(world: World) -> None:
    """The decider can open nothing more; once it can, it follows what was committed meanwhile."""
    follower = _follower(world)
    with _limited(world, resource.RLIMIT_NOFILE, follower.open_files):
        time.sleep(SLOW_S)
    world.expect(follower.follows(), "descriptors_gone: a decider follows no event after it had no descriptors")


def reads_hang(world: World) -> None:
    """Reads of two tables hang: the others are followed."""
    follower = _follower(world)
    with _there(follower.data / HANGING):
        follower.hang()
        world.expect(follower.follows(), "reads_hang: reads that hang keep others from being followed")


def redis_slow(world: World) -> None:
    """Every round trip to Redis takes a second: events go on being accepted and followed."""
    world.network.delay_s, before = SLOW_S, world.network.delay_s
    world.network.weather = Weather.DELAY
    try:
        time.sleep(3 * SLOW_S)
    finally:
        world.network.weather = Weather.FAIR
        world.network.delay_s = before
    world.expect(_follower(world).follows(), "redis_slow: a decider follows no event after Redis was slow")


def files_hostile(world: World) -> None:
    """Pipes, holes, devices and links lie where tables have their next commits: the others are followed."""
    _follower(world).plant_hostile_files()
    world.expect(_follower(world).follows(), "files_hostile: hostile files keep others from being followed")


MACHINE_FAULTS: tuple[Callable[[World], None], ...] = (
    logs_full,
    state_full,
    tables_full,
    scratch_full,
    descriptors_gone,
    reads_hang,
    redis_slow,
    files_hostile,
)


def _follower(world: World) -> Follower:
    if world.follower is None:
        raise TypeError("this world has no decider")
    return world.follower


@contextmanager
def _there(file: Path) -> Iterator[None]:
    file.touch()
    try:
        yield
    finally:
        file.unlink()


@contextmanager
def _limited(world: World, what: int, limit: int) -> Iterator[None]:
    """Let the decider have no more of a resource for a while."""
    pid = _follower(world).process.popen.pid
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, what, before)


def _no_room(world: World, name: str) -> None:
    """Let no worker write a file of this name until one has failed; then work goes on."""
    place, since = world.folder / name, now_ns()
    full = place.with_name(f"{name}.full")
    full.symlink_to("/dev/full")
    full.replace(place)  # At once: a worker would write the file again between its removal and the link.
    try:
        failed = wait(lambda: world.has_noted("failed", since), seconds=10)
        if not failed:
            world.not_shown.append(f"{name}: no worker came by")
    finally:
        place.unlink()
    since = now_ns()
    world.expect(wait(lambda: world.has_noted("committed", since), seconds=20), f"{name}: no worker commits any more")
