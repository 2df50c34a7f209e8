"""The same figures for Iceberg tables of a REST catalog: commits of ten files, each in one manifest of ten entries.

Two snapshots are never one: the decider asks the catalog for the table, reads the manifest list of each new snapshot
and the manifest that it wrote. The catalog is a process of its own, and its time is not the decider's. A round has its
own tables, for the metadata of a table grow with the snapshots that it keeps.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from shared.queue import keys
from tests.bench.decide.folding import DAYS_PER_TABLE, days_of_a_year
from tests.bench.decide.house import QUEUE, House, house
from tests.bench.decide.logs import DAYS, FILES_PER_COMMIT
from tests.support.iceberg_rest_lake import RestLake, rest_lake

TABLES = 8
_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
_BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))


class Writer:
    """One table of the catalog; commits list files that are never read, so none are written."""

    def __init__(self, lake: RestLake, name: str, seed: int) -> None:
        self.name = f"db.{name}"
        self.location = f"catalog://lake/db/{name}"
        self._table: Table = lake.catalog.create_table(self.name, _SCHEMA, partition_spec=_BY_DAY)
        self._dice = random.Random(seed)

    def commit(self, days: Sequence[str] | None = None) -> None:
        """Append ten files to one to three partitions, or one to each of these days."""
        dice = self._dice
        touched = dice.sample(DAYS, dice.choice((1, 1, 1, 2, 3)))
        chosen = days or [dice.choice(touched) for _ in range(FILES_PER_COMMIT)]
        with self._table.transaction() as change, change.update_snapshot().fast_append() as append:
            for day in chosen:
                append.append_data_file(self._file(day))

    @property
    def last_ms(self) -> int:
        """Time of the newest snapshot, which is the version that a decider gives it, unless two had one time."""
        newest = self._table.current_snapshot()
        return -1 if newest is None else newest.timestamp_ms

    def _file(self, day: str) -> DataFile:
        dice = self._dice
        low, rows = dice.randrange(10**9), dice.randrange(5_000, 50_000)
        bounds = {1: low.to_bytes(8, "little"), 2: day.encode()}
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self._table.location()}/data/day={day}/{dice.randbytes(16).hex()}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(day),
            record_count=rows,
            file_size_in_bytes=max(1_000, int(1_000_000 * dice.lognormvariate(0, 0.7))),
            column_sizes={1: 8 * rows, 2: rows},
            value_counts={1: rows, 2: rows},
            null_value_counts={1: 0, 2: 0},
            nan_value_counts={},
            lower_bounds=bounds,
            upper_bounds=bounds,
            split_offsets=[4],
            sort_order_id=0,
        )


def iceberg(folder: Path, *, commits: int, rounds: int, partitions: int, seed: int) -> dict[str, Any]:
    """Let a decider follow tables of a REST catalog; `commits` in each round over eight tables, the median counts."""
    (folder / "lake").mkdir(parents=True)
    with rest_lake(folder / "lake") as lake:
        lake.catalog.create_namespace("db")
        catalogs = json.dumps({"lake": lake.options})
        with house(
            folder / "house",
            LAKEWRIGHT_CATALOGS=catalogs,
            LAKEWRIGHT_ROOTS="catalog://lake",
            LAKEWRIGHT_DISCOVER="active",
        ) as home:
            return _folding(home, lake, commits, rounds, seed) | _memory(home, lake, partitions, seed)


def _folding(home: House, lake: RestLake, commits: int, rounds: int, seed: int) -> dict[str, Any]:
    found = []
    for number in range(rounds):
        writers = [Writer(lake, f"f{number}_{one}", seed + one) for one in range(TABLES)]
        ids = [home.register(writer.location, writer.name) for writer in writers]
        for _ in range(commits // TABLES):
            for writer in writers:
                writer.commit()
        with home.metered() as costs:
            home.report([writer.name for writer in writers])
            for writer, identity in zip(writers, ids, strict=True):
                home.await_version(identity, writer.last_ms)
        done = commits // TABLES * TABLES
        found.append((done / costs[0].decider_s, done / costs[0].wall_s, costs[0].redis_s / done * 1e6))
        print(
            f"  Iceberg, round {number + 1} of {rounds}: {done} commits of {FILES_PER_COMMIT} files, "
            f"{found[-1][0]:,.0f} per CPU second of the decider, {found[-1][1]:,.0f} per second of wall clock",
            flush=True,
        )
    per_core, per_s, redis_us = sorted(found)[rounds // 2]
    return {
        "iceberg_snapshots_per_table": commits // TABLES,
        "iceberg_commits_per_s_per_core": round(per_core),
        "iceberg_commits_per_s_wall": round(per_s),
        "iceberg_redis_us_per_commit": round(redis_us, 1),
    }


def _memory(home: House, lake: RestLake, partitions: int, seed: int) -> dict[str, Any]:
    """Weigh the partitions of tables of a year, with some thirty files in each."""
    days = days_of_a_year()
    total = count = 0
    for number in range(max(1, partitions // DAYS_PER_TABLE)):
        writer = Writer(lake, f"m{number}", seed + number)
        for _ in range(3):
            writer.commit([day for day in days for _ in range(10)])
        identity = home.register(writer.location, writer.name)
        home.await_version(identity, writer.last_ms)
        key = keys.partitions(QUEUE, identity)
        weight: Any = home.client.memory_usage(key, samples=0)
        size: Any = home.client.hlen(key)
        total, count = total + weight, count + size
    print(f"  Iceberg: {count:,} partitions, {total / count:.0f} bytes each", flush=True)
    return {"iceberg_bytes_per_partition": round(total / count, 1), "iceberg_partitions_weighed": count}
