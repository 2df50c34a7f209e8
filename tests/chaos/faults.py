"""The ten kinds of faults, each a function that does its harm to the world and puts outer conditions right again."""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.network import Weather
from tests.chaos.worker import LEASE_MS, QUEUE
from tests.chaos.world import World
from tests.support.queue_audit import mended
from tests.support.redis_server import RedisServer

LABELS = ("claimed", "committed", "finished")
LOOK_S = 2.0


def worker_killed(world: World) -> None:
    """Kill -9 a worker right after each labelled point."""
    for label in LABELS:
        world.kill_worker(_worker_at(world, label))
        world.start_worker()


def worker_paused(world: World) -> None:
    """Stop a worker beyond its lease, also between commit and finish; then it goes on with what is no longer its."""
    name = _worker_at(world, world.random.choice(LABELS[:2]))
    world.signal_worker(name, signal.SIGSTOP)
    time.sleep(LEASE_MS / 1000 * 1.3)
    world.signal_worker(name, signal.SIGCONT)


def redis_killed(world: World) -> None:
    """Kill -9 Redis, under the one or the other way of syncing its log."""
    world.redis.appendfsync = world.random.choice(["everysec", "always"])
    since = time.monotonic()
    world.kills += 1
    world.redis.restart()
    world.network.target_port = world.redis.port
    world.wait_until_served(since)


def power_lost(world: World) -> None:
    """Kill Redis and cut the tail of its log; the server drops the torn rest when it starts, as everywhere; audit."""
    since = time.monotonic()
    world.kills += 1
    world.redis.kill()
    log = _newest_log(world.redis.folder)
    with log.open("r+b") as file:
        size = log.stat().st_size
        file.truncate(max(0, size - world.random.randrange(1, 2_000)))
    world.redis.start()
    world.wait_until_served(since)
    queue = world.queue()
    sum(mended(queue, queue.redis))


def reply_lost(world: World) -> None:
    """Swallow replies after their calls were carried out."""
    _weather(world, Weather.LOSE_REPLY, 0.4)


def network_bad(world: World) -> None:
    """Delay, half-close, black hole."""
    for weather in (Weather.DELAY, Weather.HALF_CLOSE, Weather.BLACK_HOLE):
        _weather(world, weather, 0.6)


def failed_over(world: World) -> None:
    """A replica that lags takes over: what was not replicated yet is gone."""
    replica = RedisServer(world.redis.binary, appendfsync="everysec").start()
    with replica.client() as client, world.redis.client() as master:
        client.replicaof("127.0.0.1", world.redis.port)
        deadline = time.monotonic() + 20
        while client.info("replication").get("master_link_status") != "up" and time.monotonic() < deadline:
            time.sleep(0.02)
        master.execute_command("CLIENT", "KILL", "TYPE", "replica")
        client.replicaof("NO", "ONE")
        time.sleep(0.1)
    world.kills += 1
    old, world.redis = world.redis, replica
    world.network.target_port = replica.port
    old.close()
    world.network.cut()
    queue = world.queue()
    sum(mended(queue, queue.redis))


def clock_off(world: World) -> None:
    """A worker whose clock is an hour behind works beside the others."""
    world.kill_worker(world.random.choice(sorted(world.workers)))
    world.start_worker("skewed")


def memory_full(world: World) -> None:
    """Nothing new is taken, but what runs ends."""
    with world.redis.client() as client:
        client.config_set("maxmemory", "1mb")
        time.sleep(0.6)
        client.config_set("maxmemory", "0")


def release_before(world: World) -> None:
    """A worker of the release before works beside the others, until the queue belongs to the next release."""
    world.kill_worker(world.random.choice(sorted(world.workers)))
    name = world.start_worker("previous")
    _await_label(world, name, "finished")
    with world.redis.client() as client:
        client.hset(f"{{lw:{QUEUE}}}:cfg", "schema", 2)
        _await_label(world, name, "refused")
        client.hset(f"{{lw:{QUEUE}}}:cfg", "schema", 1)


FAULTS: tuple[Callable[[World], None], ...] = (
    worker_killed,
    worker_paused,
    redis_killed,
    power_lost,
    reply_lost,
    network_bad,
    failed_over,
    clock_off,
    memory_full,
    release_before,
)


def _newest_log(folder: Path) -> Path:
    logs = [path for path in (folder / "appendonlydir").iterdir() if path.name.endswith(".incr.aof")]
    return max(logs, key=lambda path: int(re.findall(r"\.(\d+)\.incr", path.name)[0]))


def _weather(world: World, weather: Weather, for_s: float) -> None:
    world.network.weather = weather
    time.sleep(for_s)
    world.network.weather = Weather.FAIR
    world.network.cut()


def _worker_at(world: World, label: str) -> str:
    """Return a worker whose last log line has this label, any after a while."""
    deadline = time.monotonic() + LOOK_S
    while time.monotonic() < deadline:
        for name in sorted(world.workers):
            if f'"{label}"' in world.label_of(name):
                return name
    return min(world.workers)


def _await_label(world: World, name: str, label: str) -> None:
    deadline = time.monotonic() + LOOK_S
    while f'"{label}"' not in world.label_of(name) and time.monotonic() < deadline:
        time.sleep(0.01)
