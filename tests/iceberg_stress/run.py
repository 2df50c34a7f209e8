"""One stress from beginning to end: a catalog, writers, actors that are killed, and the check of every snapshot."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
from pyspark.sql import SparkSession

from actor.formats.iceberg.catalogs import TableLoader
from actor.formats.iceberg.java_table import JavaTable
from actor.jvm.scala import Scala
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared import commit_metadata
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY
from tests.contract.formats.worlds import access
from tests.iceberg_stress.operations import OPERATION_KEY, Row, Rows, follows_from
from tests.iceberg_stress.writers import Ids, JavaSteps, PyicebergSteps, SparkSteps, Writer
from tests.support.spark_session import start_spark, stop_spark
from tests.support.stack import free_port
from tests.support.waiting import until

TABLES = {
    "cow": {"format-version": "2"},
    "mor": {
        "format-version": "2",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
        "write.delete.granularity": "partition",
    },
}
TOKEN = "stress"  # noqa: S105 - of a catalog that lives as long as the run
FAULTS = ("lost-reply", "dropped", "late", "unavailable", "conflict")
FAULT_S = (0.5, 3.0)
KILL_S = (4.0, 12.0)
LONGER_S = 180.0
"""How much longer a busy machine may take to reach what follows."""
LEAST_JOBS, LEAST_KILLED = 20, 1
SHOWN = 20
"""Problems that the verdict names."""


@dataclass(frozen=True, slots=True)
class StressOptions:
    """How long, with which choices, and where everything is kept."""

    seconds: float
    seed: int
    folder: Path


class Stress:
    """Holds all parts of one run."""

    def __init__(self, options: StressOptions) -> None:
        self._options = options
        self._random = Random(options.seed)
        self._stop = threading.Event()
        self._actors: list[subprocess.Popen[str]] = []
        self._started = self._killed = 0
        self._uri = f"http://127.0.0.1:{free_port()}"
        warehouse = options.folder / "warehouse"
        warehouse.mkdir()
        self._warehouse = warehouse
        self._catalog = {"type": "rest", "uri": self._uri, "token": TOKEN}
        self._problems: list[str] = []
        self._conf: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Run everything, and return the figures; processes are ended whatever happens."""
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.iceberg_rest",
                self._uri.rpartition(":")[2],
                str(self._warehouse),
                TOKEN,
            ]
        )
        (self._options.folder / "main").mkdir()
        spark = start_spark(self._options.folder / "main")
        try:
            until("the catalog answers", self._is_up, seconds=30)
            self._configure(spark)
            self._create(spark)
            writers = self._writers(spark)
            self._start_actor()
            until("the first actor is ready", lambda: self._is_ready(self._actors[0]), seconds=120)
            started = time.monotonic()
            for writer in writers:
                writer.start()
            self._disturb(started + self._options.seconds)
            self._stop.set()
            for writer in writers:
                writer.join()
            self._end_actors()
            figures = self._check(spark)
            return figures | {
                "seconds": self._options.seconds,
                "seed": self._options.seed,
                "actors": {"started": self._started, "killed": self._killed},
                "done": {one.name: dict(one.done) for one in writers},
                "lost": {one.name: dict(one.lost.most_common(6)) for one in writers},
                "problems": self._problems[:SHOWN],
            }
        finally:
            self._stop.set()
            self._end_actors()
            stop_spark(spark)
            server.kill()
            server.wait()

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self._uri}/v1/config").is_success
        except httpx.TransportError:
            return False

    def _configure(self, spark: SparkSession) -> None:
        for name, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": self._uri,
            ".token": TOKEN,
            ".cache-enabled": "false",
        }.items():
            spark.conf.set(f"spark.sql.catalog.lake{name}", value)
            self._conf[f"spark.sql.catalog.lake{name}"] = value

    def _create(self, spark: SparkSession) -> None:
        """Create the tables with a first spec without fields, for deletes by value of the whole table."""
        spark.sql("CREATE NAMESPACE lake.db")
        for name, properties in TABLES.items():
            given = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
            spark.sql(f"CREATE TABLE lake.db.{name} (id BIGINT, g INT, v INT) USING iceberg TBLPROPERTIES ({given})")
            self._load(spark, name).raw.updateSpec().addField("g").commit()

    def _load(self, spark: SparkSession, name: str) -> JavaTable:
        return TableLoader(Scala(spark), spark, {"lake": self._catalog}, reads_folders=False).load(location(name))

    def _writers(self, spark: SparkSession) -> list[Writer]:
        found: list[Writer] = []
        for number, name in enumerate(TABLES):
            ids, seed = Ids(), self._options.seed + 10 * number

            def load(name: str = name) -> JavaTable:
                return self._load(spark, name)

            steps = {
                "spark": SparkSteps(spark, self._conf, f"lake.db.{name}", ids, Random(seed)),
                "pyiceberg": PyicebergSteps(f"db.{name}", self._catalog, ids, Random(seed + 1)),
                "java": JavaSteps(load, spark.sparkContext._jvm, self._warehouse, Random(seed + 2)),
            }
            found += [Writer(f"{name} {kind}", step, self._stop) for kind, step in steps.items()]
        return found

    def _start_actor(self) -> None:
        self._started += 1
        name = f"actor{self._started}"
        command = [sys.executable, "-m", "tests.iceberg_stress.actor", str(self._options.folder), name]
        command += [",".join(location(one) for one in TABLES), json.dumps(self._catalog)]
        command += [str(self._options.seed + 1000 * self._started)]
        log = (self._options.folder / f"{name}.log").open("w")
        self._actors.append(subprocess.Popen(command, stdout=log, stderr=log, text=True, start_new_session=True))

    def _is_ready(self, actor: subprocess.Popen[str]) -> bool:
        log = self._options.folder / f"actor{self._actors.index(actor) + 1}.log"
        assert actor.poll() is None, log.read_text()[-3000:]
        return "ready" in log.read_text()

    def _disturb(self, until_s: float) -> None:
        """Plan faults of the catalog, and kill the older of two actors some seconds after the newer one is ready."""
        next_kill: float | None = None
        self._start_actor()
        while (now := time.monotonic()) < until_s or (now < until_s + LONGER_S and not self._has_worked()):
            self._stop.wait(self._random.uniform(*FAULT_S))
            httpx.post(f"{self._uri}/faults", json=[self._random.choice(FAULTS)])
            newest, older = self._actors[-1], self._actors[-2]
            if next_kill is None and self._is_ready(newest):
                next_kill = now + self._random.uniform(*KILL_S)
            if next_kill is not None and now >= next_kill:
                self._kill(older)
                next_kill = None
                self._start_actor()

    def _has_worked(self) -> bool:
        journal = self._options.folder / "jobs.jsonl"
        jobs = len(journal.read_text().splitlines()) if journal.exists() else 0
        return jobs >= LEAST_JOBS and self._killed >= LEAST_KILLED

    def _kill(self, actor: subprocess.Popen[str]) -> None:
        if actor.poll() is None:
            os.killpg(actor.pid, 9)
            self._killed += 1
        actor.wait()

    def _end_actors(self) -> None:
        for actor in self._actors:
            self._kill(actor)

    def _check(self, spark: SparkSession) -> dict[str, Any]:
        figures: dict[str, Any] = {"rewrites": {}, "snapshots": {}, "files": {}}
        journal = self._options.folder / "jobs.jsonl"
        jobs = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
        origins: Counter[str] = Counter()
        for name in TABLES:
            head = self._load(spark, name).head()
            rewrites = self._check_snapshots(spark, name, head, origins)
            self._check_follower(spark, name)
            figures["snapshots"][name], figures["rewrites"][name] = len(head.snapshots), rewrites
        self._problems += [f"job {job} has {count} snapshots" for job, count in origins.items() if count > 1]
        reported = {one["job"] for one in jobs if one.get("version")}
        self._problems += [f"job {job} reported a commit that no snapshot shows" for job in reported - origins.keys()]
        errors = Counter(one["error"].split(":")[0] for one in jobs if "error" in one)
        conflicts = sum(one.get("groups", []).count("conflicted") for one in jobs)
        if not origins:
            self._problems.append("no rewrite was committed, so nothing was tested")
        figures["jobs"] = {"ended": len(jobs), "committed": len(reported), "conflicted groups": conflicts} | errors
        figures["commits without a report"] = len(origins.keys() - reported)
        return figures

    def _check_snapshots(self, spark: SparkSession, name: str, head: TableHead, origins: Counter[str]) -> int:
        """Compare the rows of each snapshot, those that were rolled back among them, with those of its parent."""
        known: dict[int | None, Rows] = {None: Counter()}
        rewrites = 0
        for snapshot in sorted(head.snapshots.values(), key=lambda one: one.sequence_number):
            known[snapshot.id] = rows(spark, name, snapshot.id)
            ours = commit_metadata.decode(snapshot.summary.get(COMMIT_KEY))
            rewrites += ours is not None
            if ours is not None:
                origins.update(origin.job for origin in ours.origins)
            self._check_snapshot(name, snapshot, known)
        return rewrites

    def _check_snapshot(self, name: str, snapshot: SnapshotRecord, known: dict[int | None, Rows]) -> None:
        before, after = known[snapshot.parent], known[snapshot.id]
        what = snapshot.summary.get(OPERATION_KEY)
        if what is None and snapshot.operation != "replace":
            self._problems.append(f"{name}: snapshot {snapshot.id} ({snapshot.operation}) has no operation")
        elif not follows_from(what, before, after):
            lost, doubled = list((before - after).items())[:5], list((after - before).items())[:5]
            self._problems.append(
                f"{name}: snapshot {snapshot.id} ({snapshot.operation}, {what}): went {lost}, came {doubled}"
            )

    def _check_follower(self, spark: SparkSession, name: str) -> None:
        """Compare what the decider reads with what Spark finds."""
        table = IcebergFormat(access(), IcebergSettings({"lake": self._catalog})).open(location(name))
        found = asyncio.run(table.snapshot())
        for kind, mine in (("data_files", found.files), ("delete_files", found.deletes)):
            theirs = sorted(row[0] for row in spark.sql(f"SELECT file_path FROM lake.db.{name}.{kind}").collect())
            if sorted(one.path for one in mine) != theirs:
                self._problems.append(f"{name}: the decider's {kind} differ from Spark's")


def location(name: str) -> str:
    """Return the location of a table of the run."""
    return f"catalog://lake/db/{name}"


def rows(spark: SparkSession, name: str, snapshot: int) -> Rows:
    """Return the rows of a snapshot."""
    found = spark.sql(f"SELECT id, g, v FROM lake.db.{name} VERSION AS OF {snapshot}")
    return Counter(Row(*row) for row in found.collect())
