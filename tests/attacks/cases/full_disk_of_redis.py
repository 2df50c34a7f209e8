"""No room on Redis's disk for a moment: what it acknowledged is there after a crash, and a decider is ready again."""

from collections.abc import Iterator

import redis

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import alive
from tests.support.waiting import comes_true

WRITES = 200
"""Attempts to write, of some hundred bytes each: the disk is full after a few."""


def _run(world: AttackWorld) -> Iterator[Limit]:
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


ATTACKS = (Attack("a full disk of Redis", _run),)
