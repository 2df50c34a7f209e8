"""Commits folded per second per core: a real log is read from disk, decoded, folded, decided on and ingested.

Several tables at once keep the decider's core busy while single calls wait for Redis or the disk. The same commits are
also decoded alone: how many times as long the whole takes does not depend on the machine.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from decider.formats.delta.actions import decode_commit
from decider.formats.delta.damage import LogFile
from shared.queue import keys
from shared.table import PartitionColumn, TableId, TableMetadata
from tests.bench.decide.house import QUEUE, House
from tests.bench.decide.logs import FILES_PER_COMMIT, WrittenLog

TABLES = 8
_METADATA = TableMetadata("t", (PartitionColumn("day", "day", "date"),))


@dataclass(slots=True)
class _Side:
    """A decider with its tables, and what each round gave: commits per CPU second and per second, Redis' us each."""

    home: House
    logs: list[WrittenLog]
    ids: list[TableId]
    found: list[tuple[float, float, float]] = field(default_factory=list)

    def round(self, commits: int) -> None:
        """Let the decider catch up with so many commits."""
        for log in self.logs:
            for _ in range(commits // TABLES):
                log.write(log.body())
        with self.home.metered() as costs:
            self.home.report([log.path.name for log in self.logs])
            for log, identity in zip(self.logs, self.ids, strict=True):
                self.home.await_version(identity, log.version)
        cost, done = costs[0], commits // TABLES * TABLES
        self.found.append((done / cost.decider_s, done / cost.wall_s, cost.redis_s / done * 1e6))


def folding(homes: Mapping[str, House], folder: Path, *, commits: int, rounds: int, seed: int) -> dict[str, Any]:
    """Let each decider catch up with `commits` commits in each round, in turns; the median round counts.

    homes: by the prefix of its figures; the one without is that of this checkout.
    """
    sides = {prefix: _side(home, folder, prefix, seed) for prefix, home in homes.items()}
    decoding_us = []
    for number in range(rounds):
        for prefix, side in sides.items():
            side.round(commits)
            per_core, per_s, redis_us = side.found[-1]
            print(
                f"  round {number + 1} of {rounds}{', ' if prefix else ''}{prefix.strip('_')}: {commits} commits of "
                f"{FILES_PER_COMMIT} files, {per_core:,.0f} per CPU second of the decider, {per_s:,.0f} per second of "
                f"wall clock, {redis_us:.0f} us of Redis each",
                flush=True,
            )
        decoding_us.append(_decoding_us(sides[""].logs[0], min(commits, 1_000)))
    decoding = sorted(decoding_us)[rounds // 2]
    figures: dict[str, Any] = {"decoding_us_per_commit": round(decoding, 1)}
    for prefix, side in sides.items():
        per_core, per_s, redis_us = sorted(side.found)[rounds // 2]
        figures |= {
            f"{prefix}commits_per_s_per_core": round(per_core),
            f"{prefix}commits_per_s_wall": round(per_s),
            f"{prefix}redis_us_per_commit": round(redis_us, 1),
            f"{prefix}cpu_over_decoding": round(1e6 / per_core / decoding, 2),
        }
    return figures


def _side(home: House, folder: Path, prefix: str, seed: int) -> _Side:
    logs = [WrittenLog(folder / f"folding-{prefix}{n}", seed + n) for n in range(TABLES)]
    return _Side(home, logs, [home.register(log.path, log.path.name) for log in logs])


def _decoding_us(log: WrittenLog, commits: int) -> float:
    """Return the CPU time of decoding one commit and nothing else, in microseconds."""
    bodies = [log.body() for _ in range(commits)]
    began = time.process_time()
    for body in bodies:
        decode_commit(body, LogFile("memory:///t", 1, "1.json"), _METADATA)
    return (time.process_time() - began) / commits * 1e6


AIM_BYTES = 400
DAYS_PER_TABLE = 365
FIRST_DAY = date(2025, 1, 1)


def days_of_a_year() -> list[str]:
    """Return a partition for each day."""
    return [(FIRST_DAY + timedelta(number)).isoformat() for number in range(DAYS_PER_TABLE)]


def memory(home: House, folder: Path, *, partitions: int, seed: int) -> dict[str, Any]:
    """Fill tables of a year of daily partitions with some thirty files a partition, and weigh their partitions."""
    tables = max(1, partitions // DAYS_PER_TABLE)
    days = days_of_a_year()
    before = _used(home.client)
    total = count = 0
    for number in range(tables):
        log = WrittenLog(folder / f"memory-{number}", seed + number, days=days)
        for start in range(0, 3 * len(days), FILES_PER_COMMIT):
            touched = [days[(start + n) % len(days)] for n in range(FILES_PER_COMMIT)]
            log.write(log.body([day for day in touched for _ in range(10)]))
        identity = home.register(log.path, log.path.name)
        home.await_version(identity, log.version)
        key = keys.partitions(QUEUE, identity)
        weight: Any = home.client.memory_usage(key, samples=0)
        size: Any = home.client.hlen(key)
        total, count = total + weight, count + size
    print(f"  {count:,} partitions in {tables} tables: {total / count:.0f} bytes each, aim {AIM_BYTES}", flush=True)
    return {
        "bytes_per_partition": round(total / count, 1),
        "partitions_weighed": count,
        "used_memory_bytes_per_partition_with_cursors_ledgers_and_jobs": round(
            (_used(home.client) - before) / count, 1
        ),
    }


def _used(client: Any) -> int:
    return int(client.info("memory")["used_memory"])
