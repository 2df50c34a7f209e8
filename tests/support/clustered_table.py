"""A table with CLUSTER BY whose small commits are made like those of Spark, without a Spark job for each."""

import json
import random
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actor.ports import TableJob, TableJobOutcome
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.partition_stats import CUBE_TAG
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import live, newest
from tests.support.local_vacuum import Control
from tests.support.sorted_table import KEYS, ranges

ROWS = 250
POLICY = Policy(cluster=ClusterMode.ON, target_bytes=64 * KIB, min_input_files=8).with_traits(is_clustered=True)


def batch(dice: random.Random, at: int) -> pa.Table:
    """The rows of one commit: random keys, a number, and a text that does not compress away."""
    return pa.table(
        {
            "k": pa.array([dice.randrange(KEYS) for _ in range(ROWS)], pa.int64()),
            "n": pa.array(range(at * ROWS, (at + 1) * ROWS), pa.int64()),
            "t": pa.array([f"{dice.getrandbits(64):016x}" for _ in range(ROWS)]),
        }
    )


class ClusteredTable:
    """A table clustered by k."""

    def __init__(self, lab: DeltaLab, name: str, columns: str = "k BIGINT, n BIGINT, t STRING") -> None:
        self.lab = lab
        self.path = lab.directory / name
        self.name = f"delta.`{self.path}`"
        self.rewritten_bytes = self.runs = 0
        self.shares: list[float] = []
        self.reads: list[tuple[float, float]] = []
        lab.sql(f"CREATE TABLE {self.name} ({columns}) USING delta CLUSTER BY (k)")

    def files(self) -> ClusteredFiles:
        """Count the live files by the log."""
        return ClusteredFiles.of((add["size"], CUBE_TAG in (add.get("tags") or {})) for add in self.live())

    def live(self) -> Sequence[Mapping[str, Any]]:
        return list(live(self.path).values())

    def append(self, file: Path) -> None:
        """Commit a copy of a file of rows."""
        name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        shutil.copy(file, self.path / name)
        keys = pq.read_table(file, columns=["k"])["k"].to_pylist()
        bounds = {"minValues": {"k": min(keys)}, "maxValues": {"k": max(keys)}, "nullCount": {"k": 0}}
        add = {
            "path": name,
            "partitionValues": {},
            "size": (self.path / name).stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps({"numRecords": len(keys), **bounds}),
        }
        version = newest(self.path) + 1
        lines = [{"commitInfo": {"timestamp": version, "operation": "WRITE"}}, {"add": add}]
        with (self.path / "_delta_log" / f"{version:020d}.json").open("x") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))

    def run(self, *, force: bool = False, control: Control | None = None, policy: Policy = POLICY) -> TableJobOutcome:
        """Run a job as an actor does."""
        options = ClusterOptions(force=force).encode()
        job = TableJob(CLUSTER, self.path.as_uri(), policy, CommitOrigin("job", 7), options=options)
        done = self.lab.engine.run_table_job(job, control or Control())
        self._count(done.figures.get("bytes_replaced", 0), len(done.commits))
        return done

    def optimize(self, file_bytes: int) -> None:
        """Run OPTIMIZE as a schedule does, with files of this size."""
        before = {add["path"]: add["size"] for add in self.live()}
        self.lab.spark.conf.set("spark.databricks.delta.optimize.maxFileSize", file_bytes)
        try:
            self.lab.sql(f"OPTIMIZE {self.name}")
        finally:
            self.lab.spark.conf.unset("spark.databricks.delta.optimize.maxFileSize")
        after = {add["path"] for add in self.live()}
        self._count(sum(size for path, size in before.items() if path not in after), int(before.keys() != after))

    def _count(self, replaced_bytes: int, runs: int) -> None:
        self.rewritten_bytes += replaced_bytes
        self.runs += runs

    def note(self, width: int) -> None:
        """Note the share of the bytes that is not clustered, and what ranges of this width read."""
        found = self.files()
        self.shares.append(found.unclustered_bytes / (found.unclustered_bytes + found.clustered_bytes))
        self.reads.append(self.read(width))

    def read(self, width: int) -> tuple[float, float]:
        """Mean over ranges of k: files whose minimum and maximum overlap the range, and their share of the bytes."""
        files = []
        for add in self.live():
            stats = json.loads(add["stats"])
            files.append((stats["minValues"]["k"], stats["maxValues"]["k"], add["size"]))
        examples = [low_high for (low_high,) in ranges(width)]
        hits = [size for low, high in examples for least, greatest, size in files if least <= high and greatest >= low]
        total = sum(size for *_, size in files)
        return len(hits) / len(examples), sum(hits) / len(examples) / total
