"""Redis bytes per partition: `MEMORY USAGE` of the hashes that hold the partitions, over very many of them."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

from shared.queue import keys
from tests.bench.decide.house import QUEUE, House
from tests.bench.decide.logs import FILES_PER_COMMIT, WrittenLog

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
