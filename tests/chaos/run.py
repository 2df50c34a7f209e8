"""One run: commits keep coming, faults come one after another, and at the end everything must have been served."""

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from shared.errors import RetryableError
from shared.queue import commands, queries
from shared.queue.model import JobState
from tests.chaos.checker import judge
from tests.chaos.faults import FAULTS
from tests.chaos.follower import Follower
from tests.chaos.history import reported
from tests.chaos.machine_faults import MACHINE_FAULTS
from tests.chaos.network import Network
from tests.chaos.verdict import Verdict, verdict_of
from tests.chaos.worker import QUEUE, TIMES
from tests.chaos.world import SETTINGS, World
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled

WORKERS = 3
COMMIT_EVERY_S = 0.02
BETWEEN_S = 0.3
DRAIN_S = 60.0
KEPT = Path("artifacts")


def run(binary: Path, seconds: float, seed: int, say: Callable[[str], None]) -> Verdict:
    """Run for so many seconds, every kind of fault at least once, then let the queue run empty."""
    redis = RedisServer(binary, appendfsync="everysec").start()
    network = Network(redis.port)
    with tempfile.TemporaryDirectory() as folder:
        world = World(redis, network, Path(folder), Random(seed))
        world.follower = Follower(Path(folder) / "decider", redis, network, seed)
        return run_in(world, (*FAULTS, *MACHINE_FAULTS), seconds, seed, say)


def run_in(
    world: World,
    faults: Sequence[Callable[[World], None]],
    seconds: float,
    seed: int,
    say: Callable[[str], None],
) -> Verdict:
    """Run in a world with these faults, and end it."""
    try:
        world.queue().run(commands.configure(QUEUE, SETTINGS))
        for _ in range(WORKERS):
            world.start_worker()
        _do_harm(world, faults, seconds, say)
        since = time.monotonic()
        stuck = _drained(world)
        say(f"{'drained':16s} {time.monotonic() - since:5.1f} s")
        dead = [name for name, process in world.workers.items() if process.poll() is not None]
        world.expect(not dead, f"workers have died by themselves: {dead}")
        if world.follower is not None:
            world.broken += world.follower.problems(world.redis)
        history = world.history()
        findings = judge(history, lease_us=TIMES.lease_ms * 1000)
        if findings.broken:
            KEPT.mkdir(exist_ok=True)
            kept = KEPT / f"chaos-{seed}.log"
            kept.write_text(reported(history))
            say(f"the history of this run is kept: {kept}")
        return verdict_of(world, findings, seconds=seconds, runs=len(history.claims), stuck_jobs=stuck)
    finally:
        world.close()


def _do_harm(
    world: World, faults: Sequence[Callable[[World], None]], seconds: float, say: Callable[[str], None]
) -> None:
    ended = threading.Event()
    writer = threading.Thread(target=_commits, args=(world, ended))
    writer.start()
    until = time.monotonic() + seconds
    try:
        rounds = stated = 0
        while time.monotonic() < until or rounds == 0:
            for fault in world.random.sample(faults, len(faults)):
                since = time.monotonic()
                fault(world)
                say(f"{fault.__name__:16s} {time.monotonic() - since:5.1f} s")
                for what in world.broken[stated:]:
                    say(f"BROKEN {what}")
                stated = len(world.broken)
                time.sleep(BETWEEN_S)
                if rounds and time.monotonic() >= until:
                    break
            rounds += 1
    finally:
        ended.set()
        writer.join()


def _commits(world: World, ended: threading.Event) -> None:
    while not ended.wait(COMMIT_EVERY_S):
        world.commit()


def _drained(world: World) -> int:
    """Sweep once, then wait until nothing is left; returns the jobs that are left at the deadline."""
    deadline = time.monotonic() + scaled(DRAIN_S)
    left = -1
    while time.monotonic() < deadline:
        try:
            if not world.notify_all():
                continue
            depth = world.queue().run(queries.depth(QUEUE)).depth
        except RetryableError:
            continue
        left = sum(depth[state] for state in JobState)
        if left == 0:
            return 0
        time.sleep(0.1)
    return left
