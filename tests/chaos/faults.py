"""The eleven kinds of faults, each a function that does its harm to the world and says what it found broken by it."""

import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from services.standalone.append_only_file import AppendOnlyFile
from shared.errors import RetryableError
from shared.queue import commands
from shared.queue.model import Claim, FinishOutcome, HeartbeatEntry, HeartbeatStatus, RunResult
from tests.chaos.history import now_ns
from tests.chaos.network import Weather
from tests.chaos.skewed_worker import BEHIND_S
from tests.chaos.worker import LABELS, PAUSED_AT, QUEUE, TIMES, schema
from tests.chaos.world import World, wait
from tests.support.queue_bench import repaired
from tests.support.redis_server import RedisServer


def worker_killed(world: World) -> None:
    """Kill -9 two workers, each where it stands still at a labelled point: those that have been met least often.

    All five at once would leave no one to work until five new processes have started.
    """
    for label in _least_met(world, "killed", LABELS):
        name = world.stopped(world.request(label))
        if name is None:
            world.not_shown.append(f"worker_killed at {label}: no worker came by")
            continue
        world.hits[f"killed at {label}"] += 1
        world.kill_worker(name)
        world.start_worker()


def worker_paused(world: World) -> None:
    """Stop two workers until others have their jobs; when they go on, they commit nothing and finish nothing.

    The successor stands still with the job while they do, so that nothing but the fence is between them.
    """
    paused: list[_Paused] = []
    for label in _least_met(world, "paused", PAUSED_AT):
        name = world.stopped(world.request(label))
        if name is None:
            world.not_shown.append(f"worker_paused at {label}: no worker came by")
            continue
        run = next(one for one in reversed(world.tail(name)) if "token" in one)
        # Between check and commit no lease can tell; the table's log decides, and there the successor must be first.
        request = None if label == "confirmed" else world.request("claimed", run["job"])
        paused.append(_Paused(label, name, run, request))
        world.start_worker()
    # Before the first one goes on, or it might become the successor of the next one.
    successors = [None if one.request is None else world.stopped(one.request) for one in paused]
    for one, successor in zip(paused, successors, strict=True):
        _go_on_without_lease(world, one, successor)
        world.kill_worker(one.name)


def redis_killed(world: World) -> None:
    """Kill -9 Redis, under the one or the other way of syncing its log."""
    since = now_ns()
    world.kills += 1
    world.redis.kill()
    world.redis.appendfsync = world.random.choice(["everysec", "always"])
    with world.lock:
        world.redis.start()
        world.take_back("redis_killed", since)
    world.await_service("redis_killed", since)


def power_lost(world: World) -> None:
    """Kill Redis and cut the tail of its log; the server drops the torn rest when it starts, as everywhere.

    What a decider does then: it has the log written again, and audits.
    """
    since = now_ns()
    world.kills += 1
    world.redis.kill()
    with world.lock:
        log = _newest_log(world.redis.folder)
        with log.open("r+b") as file:
            file.truncate(max(0, log.stat().st_size - world.random.randrange(1, 8_000)))
        world.redis.start()
        with world.redis.client() as client:
            client.bgrewriteaof()
            is_written = wait(lambda: client.info("persistence")["aof_last_rewrite_time_sec"] >= 0, seconds=20)
            world.expect(is_written, "power_lost: the log was not written again within 20 s")
        world.take_back("power_lost", since)
    world.await_service("power_lost", since)
    queue = world.queue()
    sum(repaired(queue, queue.redis))


def disk_full(world: World) -> None:
    """Give Redis no room until a write fails, then room, then kill it: what it had acknowledged is there again.

    It refuses writes or ends, by the way of syncing its log; a log that it does not load is repaired.
    """
    since = now_ns()
    world.kills += 1
    server = world.redis
    before = len(server.log)
    server.limit_files(_newest_log(server.folder).stat().st_size + 2_000)
    is_full = wait(
        lambda: re.search("Error writing to the AOF|Short write|AOF write error", server.log[before:]), seconds=10
    )
    if not is_full:
        world.not_shown.append("disk_full: Redis wrote nothing meanwhile")
    with suppress(ProcessLookupError):
        server.limit_files(-1)
        wait(lambda: _is_writing(server), seconds=10)
    with world.lock:
        server.kill()
        try:
            server.start()
        except RuntimeError:
            world.expect(AppendOnlyFile(server.folder).repair_increments(), "disk_full: the log cannot be repaired")
            server.start()
        lost = world.take_back("disk_full", since)
        world.expect(lost == 0, f"disk_full: {lost} acknowledged events are gone")
    world.await_service("disk_full", since)


def _is_writing(server: RedisServer) -> bool:
    """Return whether a server writes its log again, or has ended, as `appendfsync always` demands."""
    with server.client() as client:
        try:
            return bool(client.info("persistence")["aof_last_write_status"] == "ok")
        except RedisError:
            return True


def reply_lost(world: World) -> None:
    """Swallow replies after their calls were carried out."""
    _weather(world, Weather.LOSE_REPLY, 0.4)


def network_bad(world: World) -> None:
    """Delay, half-close, black hole."""
    for weather in (Weather.DELAY, Weather.HALF_CLOSE, Weather.BLACK_HOLE):
        _weather(world, weather, 0.6)


def failed_over(world: World) -> None:
    """A replica that lags takes over: what the old master has acknowledged since is gone."""
    replica = RedisServer(world.redis.binary, appendfsync="everysec").start()
    with replica.client() as client, world.redis.client() as master:
        master.config_set("repl-diskless-sync-delay", 0)
        client.replicaof("127.0.0.1", world.redis.port)
        has_copy = wait(lambda: client.info("replication").get("master_link_status") == "up", seconds=20)
        world.expect(has_copy, "failed_over: the replica got no copy within 20 s")
        since = now_ns()
        client.replicaof("NO", "ONE")
        acknowledged = len(world.acks)
        world.expect(
            wait(lambda: len(world.acks) > acknowledged + 2, seconds=10),
            "failed_over: the old master took no event any more",
        )
    world.kills += 1
    with world.lock:
        old, world.redis = world.redis, replica
        world.network.target_port = replica.port
        world.network.cut()
        lost = world.take_back("failed_over", since)
    world.expect(lost > 0, "failed_over: the replica did not lag, so that nothing was lost and nothing shown")
    world.await_service("failed_over", since)
    old.close()
    queue = world.queue()
    sum(repaired(queue, queue.redis))


def clock_off(world: World) -> None:
    """A worker all of whose clocks are an hour behind works beside the others, with the same leases and tokens."""
    world.kill_worker(world.random.choice(sorted(world.workers)))
    name = world.start_worker(module="skewed_worker")
    if not wait(lambda: _last(world, name, "finished", verdict="done"), seconds=10):
        world.expect(False, "clock_off: the worker with the wrong clock finished nothing in 10 s")
        return
    end = _last(world, name, "finished", verdict="done")
    world.expect(end["outcome"] != "STALE", f"clock_off: the end of {end['job']} was stale")
    off_s = _last(world, name, "files_written")["clock_off_ms"] / 1000
    world.expect(abs(off_s + BEHIND_S) < 60, f"clock_off: the worker's clock was off by {off_s} s only")
    late_s = time.time() - end["token"] / 1_000_000
    world.expect(abs(late_s) < 60, f"clock_off: token {end['token']} is not of the server's clock")


def memory_full(world: World) -> None:
    """Nothing new is taken, and the caller is asked to try again; but what runs is kept alive and ends."""
    queue = world.queue()
    held: list[Claim] = []
    claim = commands.claim(QUEUE, worker="driver", nonce=uuid.uuid4().hex, slots=1, lease_ms=TIMES.lease_ms)
    if not wait(lambda: held.extend(queue.run(claim)) or held, seconds=10):
        world.not_shown.append("memory_full: the driver got no job to hold")
        return
    with world.redis.client() as client:
        client.config_set("maxmemory", int(client.info("memory")["used_memory"]) // 2)
        try:
            _end_while_full(world, held[0])
        finally:
            client.config_set("maxmemory", 0)


def release_before(world: World) -> None:
    """A worker of the release before works beside the others, until the queue belongs to the next release.

    The release before is this one's scripts that know a schema less: what they do to the keys is the same.
    """
    world.kill_worker(world.random.choice(sorted(world.workers)))
    name = world.start_worker("previous")
    works = wait(lambda: _last(world, name, "finished"), seconds=10)
    world.expect(works, f"release_before: a worker that knows schema {schema() - 1} finished nothing beside the others")
    settings = f"{{lw:{QUEUE}}}:cfg"
    with world.redis.client() as client:
        before = client.hget(settings, "schema")
        client.hset(settings, "schema", schema() + 1)
        since = now_ns()
        refused = wait(lambda: _last(world, name, "refused", since=since), seconds=10)
        world.expect(refused, "release_before: the store of the release after the next was not refused")
        others = [one for one in world.workers if one != name]
        goes_on = wait(lambda: any(_last(world, one, "claimed", since=since) for one in others), seconds=10)
        world.expect(goes_on, "release_before: this release refused the store of the next one")
        claimed = _last(world, name, "claimed", since=_at(_last(world, name, "refused", since=since)))
        world.expect(not claimed, "release_before: a worker that was refused claimed a job")
        if before is None:
            client.hdel(settings, "schema")
        else:
            client.hset(settings, "schema", before)


FAULTS: tuple[Callable[[World], None], ...] = (
    worker_killed,
    worker_paused,
    redis_killed,
    power_lost,
    disk_full,
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


def _least_met(world: World, harm: str, labels: tuple[str, ...]) -> list[str]:
    mixed = world.random.sample(labels, len(labels))
    return sorted(mixed, key=lambda label: world.hits[f"{harm} at {label}"])[:2]


@dataclass(frozen=True, slots=True)
class _Paused:
    """A worker that stands still at a label; `run` is its log's last entry, `request` stops its successor."""

    label: str
    name: str
    run: dict[str, Any]
    request: Path | None


def _go_on_without_lease(world: World, paused: _Paused, successor: str | None) -> None:
    where = f"worker_paused at {paused.label}"
    if successor is None and (paused.request or not wait(lambda: _is_overtaken(world, paused.run), seconds=10)):
        world.not_shown.append(f"{where}: no one took over {paused.run['job']}")
        return
    world.go_on(paused.name)
    _must_have_lost(world, paused, where)
    if successor is not None:
        world.go_on(successor)


def _is_overtaken(world: World, run: dict[str, Any]) -> bool:
    """Whether a later run of the same job has committed."""
    return any(
        one["event"] == "committed" and one["job"] == run["job"] and one["token"] > run["token"]
        for name in world.workers
        for one in world.tail(name)
    )


def _must_have_lost(world: World, paused: _Paused, where: str) -> None:
    """What a worker does with a job that is not its own any more, up to its next job."""
    name, run = paused.name, paused.run
    went_on = wait(lambda: _last(world, name, "claimed").get("token", -1) > run["token"], seconds=15)
    world.expect(went_on, f"{where}: {name} claimed nothing any more")
    own = [one for one in world.tail(name) if one.get("token") == run["token"]]
    ends = [one["outcome"] for one in own if one["event"] == "finished"]
    commits = [one for one in own if one["event"] == "committed" and one["at"] > run["at"]]
    world.expect(not commits, f"{where}: a lost run committed {run['job']}")
    world.expect(set(ends) <= {"STALE"}, f"{where}: the end of a lost run was {ends}")
    if paused.label == "committed" and not ends:
        # It had more to do, and heard before its next commit that it had lost; that is another label's case.
        world.not_shown.append(f"{where}: {run['job']} had another round to go")
        return
    world.hits[f"paused at {paused.label}"] += 1


def _end_while_full(world: World, held: Claim) -> None:
    queue = world.queue()
    refused = world.refused
    world.expect(wait(lambda: world.refused > refused, seconds=10), "memory_full: events were still taken")
    try:
        queue.run(commands.enqueue(QUEUE, next(one for one in world.tables if one.log).spec(0)))
        world.expect(False, "memory_full: a new job was taken")
    except RetryableError:
        pass  # This is what a caller must be told: nothing is wrong with the job, and the memory may come back.
    beat = commands.heartbeat(
        QUEUE, worker="driver", beats=[HeartbeatEntry(held.id, held.token)], lease_ms=TIMES.lease_ms
    )
    (alive,) = queue.run(beat)
    world.expect(alive.status is HeartbeatStatus.OK, f"memory_full: the heartbeat was answered by {alive.status}")
    end = commands.finish(
        QUEUE,
        worker="driver",
        nonce=uuid.uuid4().hex,
        id=held.id,
        token=held.token,
        run_result=RunResult.YIELD,
        cost_bytes=held.cost_bytes,
        seen_version=-1,
    )
    outcome = queue.run(end).outcome
    world.expect(outcome is FinishOutcome.REQUEUED, f"memory_full: the end was answered by {outcome}")


def _last(world: World, name: str, event: str, *, since: int = 0, **more: object) -> dict[str, Any]:
    """Return a worker's newest entry of this kind that came after `since`; empty if there is none."""
    for one in reversed(world.tail(name)):
        if one["event"] == event and one["at"] > since and more.items() <= one.items():
            return one
    return {}


def _at(entry: dict[str, Any]) -> int:
    return int(entry.get("at", now_ns()))
