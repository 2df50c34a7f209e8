"""A stack of services whose actors run their tasks on a standalone cluster of Spark."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import spark_events
from tests.support.iceberg_rest_lake import RestLake
from tests.support.outside import is_at_rest
from tests.support.spark_cluster import SparkCluster
from tests.support.stack import Process, Stack
from tests.support.waiting import until

SMALL: Mapping[str, Any] = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.databricks.delta.snapshotPartitions": 1,
    "spark.sql.shuffle.partitions": 1,
}
"""Options of Spark for a cluster of two cores and tables of a few files."""


@dataclass(slots=True)
class World:
    """Redis, a decider, a cluster and a folder for the event logs; tests start the actors that they need.

    lake: a catalog that the decider follows, too. for_iceberg: variables of actors that rewrite its tables.
    """

    stack: Stack
    cluster: SparkCluster
    events: Path
    lake: RestLake | None = None
    for_iceberg: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def actor(
        self, name: str = "actor", *, options: dict[str, Any] | None = None, **environment: str
    ) -> Iterator[Process]:
        """Run an actor until it has ended by itself; its options of Spark extend those of all."""
        process = self.start(name, options=options, **environment)
        try:
            self.await_ready(process)
            yield process
            assert process.alive, process.log.read_text()[-3000:]
        finally:
            if process.alive:
                process.terminate()

    def start(self, name: str, *, options: dict[str, Any] | None = None, **environment: str) -> Process:
        """Start an actor without waiting for it."""
        given = {**SMALL, **spark_events.OPTIONS, "spark.eventLog.dir": self.events.as_uri(), **(options or {})}
        return self.stack.start(
            name,
            ["-m", "services.actor"],
            LAKEWRIGHT_ACTOR_NAME=name,
            LAKEWRIGHT_SPARK_MASTER=self.cluster.url,
            LAKEWRIGHT_SPARK_OPTIONS=json.dumps(given),
            SPARK_LOCAL_IP="127.0.0.1",
            **{"LAKEWRIGHT_SELF_TEST_LOCATION": str(self.stack.folder / "shared"), **environment},
        )

    def await_ready(self, process: Process) -> None:
        """Wait until an actor takes jobs."""
        until(f"{process.name} takes jobs", lambda: self.takes_jobs(process, process.name), seconds=180)

    def takes_jobs(self, process: Process, name: str) -> bool:
        """Return whether an actor is ready; fails if it has ended."""
        assert process.alive, process.log.read_text()[-5000:]
        actors = self.stack.get("/v1/actors")["actors"]
        return any(one["id"] == name and one["state"] in ("idle", "working") for one in actors)

    def register(self, table: Path, **properties: str) -> None:
        """Register a table under the name of its folder, with properties of Lakewright's."""
        self.register_at(table.as_uri(), f"db.{table.name}", **properties)

    def register_at(self, location: str, name: str, **properties: str) -> None:
        """Register a table of any location."""
        stated = {f"lakewright.{key.replace('_', '-')}": value for key, value in properties.items()}
        body = {"location": location, "name": name, "properties": stated}
        self.stack.post("/v1/tables", body).raise_for_status()

    def is_done(self, table: Path) -> bool:
        """Return whether a job of a table has run, and nothing waits or runs."""
        return bool(self.runs(table)) and is_at_rest(self.stack, f"db.{table.name}", table)

    def runs(self, table: Path) -> list[dict[str, Any]]:
        """Return the finished runs of a table, newest first."""
        return self.runs_of(f"db.{table.name}")

    def runs_of(self, name: str) -> list[dict[str, Any]]:
        """Return the finished runs of the table of this name, newest first."""
        runs = self.stack.get("/v1/jobs", state="finished", page_size=200)["jobs"]
        return [run for run in runs if run["table_name"] == name]
