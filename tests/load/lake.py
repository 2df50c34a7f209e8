"""Tables on the local disk whose logs really advance, and whether a decider knows all of them as a count finds it.

Commits are as an appending writer makes them, without data files: the decider never reads data, so a log is all it
needs; and a machine that also wrote Parquet would be measured itself.
"""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.paths.locations import table_id
from shared.queue import keys
from tests.support.delta_tables import PLAIN, metadata_of
from tests.support.outside import POLICY
from tests.support.redis_server import RedisServer
from tests.support.stack import s3_event

QUEUE = "default"
"""Name of the queue, as services call it unless told otherwise."""

DAYS = tuple(f"2026-01-{day:02d}" for day in range(1, 9))

_FIRST = ({"protocol": PLAIN}, {"metaData": metadata_of({"dt": "string"}, ["dt"])})


@dataclass(slots=True)
class LoadTable:
    """One table: `version` is the newest of its log, `live` the size of each file by partition."""

    path: Path
    rng: random.Random
    version: int = -1
    live: dict[str, list[int]] = field(default_factory=dict)

    def advance(self) -> str:
        """Commit one or two small files to one partition; return the key of the commit below the lake."""
        self.version += 1
        log = self.path / "_delta_log"
        day = self.rng.choice(DAYS)
        actions = [] if self.version else list(_FIRST)
        for number in range(self.rng.randint(1, 2)):
            size = self.rng.randint(50_000, 2_000_000)
            self.live.setdefault('{"dt":"' + day + '"}', []).append(size)
            actions.append(
                {
                    "add": {
                        "path": f"dt={day}/part-{self.version:05d}-{number}.parquet",
                        "partitionValues": {"dt": day},
                        "size": size,
                        "modificationTime": 1_767_225_600_000,
                        "dataChange": True,
                        "stats": '{"numRecords":1000}',
                    }
                }
            )
        actions.append({"commitInfo": {"timestamp": 1_767_225_600_000, "operation": "WRITE"}})
        name = f"{self.version:020d}.json"
        # A reader never sees half a commit.
        (log / f".{name}.tmp").write_text("".join(json.dumps(action) + "\n" for action in actions))
        (log / f".{name}.tmp").replace(log / name)
        return f"{self.path.name}/_delta_log/{name}"


class Lake:
    """All tables, and the notifications that their bucket would send."""

    def __init__(self, folder: Path, tables: int, seed: int, name: str = "t") -> None:
        self._rng = random.Random(seed)
        self.tables = []
        for number in range(tables):
            path = folder / f"{name}{number:04d}"
            (path / "_delta_log").mkdir(parents=True)
            self.tables.append(LoadTable(path, random.Random(seed * 1_000 + number)))
        self.commits = 0

    def batch(self, events: int, commits: int) -> dict[str, object]:
        """Make some commits, and return as many events: those of the commits, of their data files, and old ones again.

        Shuffled, as buckets deliver them.
        """
        keys = []
        for _ in range(commits):
            table = self.tables[self.commits % len(self.tables)]
            keys.append(table.advance())
            self.commits += 1
        while len(keys) < events:
            table = self._rng.choice(self.tables)
            if self._rng.random() < 0.5:
                keys.append(f"{table.path.name}/dt=2026-01-01/part-{self._rng.randrange(10**6):05d}.parquet")
            else:
                keys.append(f"{table.path.name}/_delta_log/{self._rng.randint(0, max(0, table.version)):020d}.json")
        self._rng.shuffle(keys)
        return {"Records": [record for key in keys for record in s3_event(key)["Records"]]}

    def is_followed(self, server: RedisServer) -> bool:
        """Whether every table's cursor in Redis is at the newest commit on disk."""
        return not self.behind(server)

    def behind(self, server: RedisServer) -> list[str]:
        """The tables whose cursor in Redis is not at the newest commit on disk, each with both versions."""
        with server.client() as redis:
            pipe = redis.pipeline(transaction=False)
            for table in self.tables:
                pipe.hget(keys.table_state(QUEUE, table_id(table.path.as_uri())), "version")
            known = [int(-1 if found is None else found) for found in pipe.execute()]
        return [
            f"{table.path.name} at {version} of {table.version}"
            for table, version in zip(self.tables, known, strict=True)
            if version != table.version
        ]

    def wrong_tables(self, server: RedisServer) -> int:
        """Count the tables whose stored partitions differ from a rebuild of what was written, integer for integer."""
        wrong = 0
        with server.client() as redis:
            for table in self.tables:
                raw = redis.hgetall(keys.partitions(QUEUE, table_id(table.path.as_uri())))
                stored = {partition.decode(): PartitionStats.decode(state.decode()) for partition, state in raw.items()}
                wrong += stored != {
                    partition: stats_of_sizes(POLICY.size_levels, sizes) for partition, sizes in table.live.items()
                }
        return wrong
