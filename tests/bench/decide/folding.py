"""Commits folded per second per core: a real log is read from disk, decoded, folded, decided on and ingested.

Several tables at once keep the decider's core busy while single calls wait for Redis or the disk.
"""

from pathlib import Path
from typing import Any

from tests.bench.decide.house import House
from tests.bench.decide.logs import FILES_PER_COMMIT, WrittenLog

TABLES = 8


def folding(home: House, folder: Path, *, commits: int, rounds: int, seed: int) -> dict[str, Any]:
    """Let a decider catch up with `commits` commits in each round; the median round counts."""
    found = []
    logs = [WrittenLog(folder / f"folding-{n}", seed + n) for n in range(TABLES)]
    ids = [home.register(log.path, log.path.name) for log in logs]
    for number in range(rounds):
        for log in logs:
            for _ in range(commits // TABLES):
                log.write(log.body())
        with home.metered() as costs:
            home.report([log.path.name for log in logs])
            for log, identity in zip(logs, ids, strict=True):
                home.await_version(identity, log.version)
        cost, done = costs[0], commits // TABLES * TABLES
        found.append((done / cost.decider_s, done / cost.wall_s, cost.redis_s / done * 1e6))
        print(
            f"  round {number + 1} of {rounds}: {done} commits of {FILES_PER_COMMIT} files, "
            f"{found[-1][0]:,.0f} per CPU second of the decider, {found[-1][1]:,.0f} per second of wall clock, "
            f"{found[-1][2]:.0f} us of Redis each",
            flush=True,
        )
    per_core, per_s, redis_us = sorted(found)[len(found) // 2]
    return {
        "commits_per_s_per_core": round(per_core),
        "commits_per_s_wall": round(per_s),
        "redis_us_per_commit": round(redis_us, 1),
    }
