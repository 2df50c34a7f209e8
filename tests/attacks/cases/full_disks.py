"""Full disks of logs, of Redis and of the saved registry: what was acknowledged is there, and the decider goes on."""

import resource
from collections.abc import Iterator

import httpx
import redis

from tests.attacks.attack import Attack, AttackWorld, Limit, alive
from tests.support.live_decider import WrittenTable
from tests.support.time_limits import scaled
from tests.support.waiting import comes_true


def _of_logs(world: AttackWorld) -> Iterator[Limit]:
    stack = world.stack
    stack.handicapped_decider("full-log")
    sound, broken = (WrittenTable(stack.tables / name, seed=7) for name in ("sound", "broken"))
    for table in (broken, sound):
        stack.post("/v1/tables", {"location": str(table.path), "name": table.path.name}).raise_for_status()
    for number in range(20):
        # A refresh that fails is logged, again and again.
        (broken.path / "_delta_log" / f"{number + 1:020d}.json").write_text("no commit\n")
        stack.notify(broken.path, number + 1)
    sound.append(commits=3)
    stack.notify(sound.path, sound.version)

    def followed() -> bool:
        return bool(stack.get("/v1/tables/sound")["state"]["version"] == sound.version)

    is_followed = bool(comes_true(followed, seconds=30))
    yield Limit("an event is followed although nothing can be logged", is_followed, f"version {sound.version}")
    yield alive(world)


WRITES = 200
"""Attempts to write, of some hundred bytes each: the disk is full after a few."""


def _of_redis(world: AttackWorld) -> Iterator[Limit]:
    server = world.redis
    world.stack.decider()
    with server.client() as client:
        comes_true(lambda: client.info("persistence")["aof_last_rewrite_time_sec"] >= 0, seconds=30)
        folder = server.folder / "appendonlydir"
        size = max(file.stat().st_size for file in folder.glob("*.incr.aof"))
        server.limit_files(size + 5_000)
        acknowledged = 0
        for number in range(WRITES):
            acknowledged += _is_taken(client, number)
        server.limit_files(-1)
        is_writing = bool(comes_true(lambda: _is_taken(client, WRITES), seconds=30))
        yield Limit("Redis was full, and writes again", is_writing and acknowledged < WRITES, f"{acknowledged} writes")
        before = {file.name for file in folder.glob("*.base.rdb")}
        is_rewritten = bool(comes_true(lambda: {file.name for file in folder.glob("*.base.rdb")} != before, seconds=30))
        yield Limit("the decider has its file written again", is_rewritten)
        comes_true(lambda: not client.info("persistence")["aof_rewrite_in_progress"], seconds=30)
    server.restart()
    with server.client() as client:
        found = int(client.hlen("attack"))
    yield Limit("everything acknowledged is there after a crash", found >= acknowledged, f"{found} of {acknowledged}")
    comes_true(lambda: alive(world).is_met, seconds=30)
    yield alive(world)


def _is_taken(client: "redis.Redis", number: int) -> bool:
    try:
        client.hset("attack", str(number), "x" * 100)
    except redis.ResponseError:
        return False
    return True


def _of_the_saved_registry(world: AttackWorld) -> Iterator[Limit]:
    stack = world.stack
    process = stack.decider(LAKEWRIGHT_STATE=(world.folder / "state").as_uri())
    orders, late = (WrittenTable(stack.tables / name, seed=7) for name in ("orders", "late"))
    stack.post("/v1/tables", {"location": str(orders.path), "name": "orders"}).raise_for_status()
    late_one = {"location": str(late.path), "name": "late"}
    free = resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (0, free[1]))
    posted = stack.post("/v1/tables", late_one).status_code
    changed = httpx.patch(f"{stack.url}/v1/tables/orders", json={"tenant": "other"}, timeout=scaled(30)).status_code
    yield Limit("changes are refused", (posted, changed) == (503, 503), f"POST {posted}, PATCH {changed}")
    names = {one["name"]: one["tenant"] for one in stack.get("/v1/tables")["tables"]}
    yield Limit("and are not in force", names == {"orders": "default"}, f"{names}")
    orders.append(commits=2)
    stack.notify(orders.path, orders.version)

    def followed() -> bool:
        return bool(stack.get("/v1/tables/orders")["state"]["version"] == orders.version)

    yield Limit("a commit is followed", bool(comes_true(followed, seconds=30)), f"version {orders.version}")
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, free)
    accepted = bool(comes_true(lambda: stack.post("/v1/tables", late_one).status_code in (200, 201), seconds=30))
    yield Limit("once there is room, a change is made", accepted, "")
    yield alive(world)


ATTACKS = (
    Attack("a full disk of logs", _of_logs),
    Attack("a full disk of Redis", _of_redis),
    Attack("a full disk of the saved registry", _of_the_saved_registry),
)
