"""The rules that are played on Iceberg: each is told of every commit once it is there, and does what it would do then.

Every rule gets the same target. What else it has is its own default, scaled where it is a size.
"""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.ports import RewriteRequest
from decider.formats.registry import TableFormats, table_formats
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from decider.whatif.baselines import PEERS, ObservedPartition
from decider.whatif.trace import SimulatedPartition
from shared.formats.options import FormatOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.policy.policy import Policy
from shared.table import CommitOrigin, DataFile, PartitionKey
from tests.bench.delta import ours
from tests.bench.delta.playing import LeaveAlone, Played, play_rounds
from tests.bench.delta.rules import COMMITS_PER_HOUR, TARGET_BYTES
from tests.bench.delta.trace import Trace
from tests.bench.iceberg.table import IcebergTable
from tests.bench.spark import started_spark
from tests.support.iceberg_lab import ice_session
from tests.support.steering import Steering

RULES = ("none", "lakewright", "each", "hourly", "amoro")

MINUTE_MS = 60_000


class RewriteDataFiles(LeaveAlone):
    """Iceberg's `rewrite_data_files` with its defaults, of the whole table after every so many commits."""

    def __init__(self, session: SparkSession, title: str, every: int) -> None:
        self.title = title
        self._session = session
        self._every = every

    def after(self, number: int) -> None:
        if number % self._every == 0:
            name = self.table.sql_name.removeprefix("ice.")
            self._session.sql(f"CALL ice.system.rewrite_data_files(table => '{name}')").collect()


class Amoro(LeaveAlone):
    """Amoro's rule, read after each commit for all partitions; our engine rewrites what it proposes.

    Amoro itself is not run: it is a service with its own optimizers. The rule gets its view of the files for nothing.
    """

    title = "Amoro's rule"

    def __init__(self, engine: IcebergEngine) -> None:
        self._engine = engine
        self._rule = next(rule for rule in PEERS if rule.name == "amoro")
        self._policy = Policy(target_bytes=TARGET_BYTES)
        self._rewritten_ms: int | None = None
        self._seen: list[SimulatedPartition] = []

    def begin(self, table: IcebergTable) -> None:
        super().begin(table)
        self._rewritten_ms = None

    def look(self) -> None:
        self._seen = _partitions(self.table)

    def after(self, number: int) -> None:
        at_ms = number * MINUTE_MS
        groups = tuple(
            FileGroup(partition.key, merge.inputs, RewriteMode.FULL)
            for partition in self._seen
            for merge in self._rule.propose(ObservedPartition(partition, self._policy, at_ms, self._rewritten_ms))
        )
        if groups:
            mark = CommitMetadata(CommitOrigin("bench", number), partition="{}", round=1, mode="full", started_ms=1)
            request = RewriteRequest(self.table.path.as_uri(), groups, mark.encode())
            if self._engine.rewrite(request, Steering()).version is None:
                raise RuntimeError(f"nothing was committed after commit {number}")
            self._rewritten_ms = at_ms


class Lakewright(ours.Lakewright):
    """Follow each commit, decide, and do the jobs: as on Delta."""

    table: Any

    def __init__(self, spark: SparkSession, engine: IcebergEngine, formats: TableFormats) -> None:
        super().__init__(spark, engine, formats)

    def newest_version(self) -> int:
        return int(self.table.version())


def _partitions(table: IcebergTable) -> list[SimulatedPartition]:
    """Return the live files as Amoro's rule sees them, those below the target."""
    found: dict[str, SimulatedPartition] = {}
    for path, (day, size) in table.live.items():
        key = PartitionKey(json.dumps({"day": day}, separators=(",", ":")))
        of_day = found.setdefault(day, SimulatedPartition(key))
        if size < TARGET_BYTES:
            of_day.small[path] = DataFile(path, size, key)
    return [found[day] for day in sorted(found)]


class Lake:
    """A warehouse in a folder, in a session with the catalog `ice`."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.session = ice_session(spark, folder)
        self._scala = IcebergScala(spark)

    def rules(self) -> dict[str, LeaveAlone]:
        """Return every rule by the name that it has on the command line, in the order of playing."""
        engine = IcebergEngine(self.spark, IcebergEngineSettings(reads_folders=True))
        formats = table_formats(StorageAccess(ReadMeter()), FormatOptions(iceberg_folders=True))
        made = (
            LeaveAlone(),
            Lakewright(self.spark, engine, formats),
            RewriteDataFiles(self.session, "rewrite_data_files after each commit", 1),
            RewriteDataFiles(self.session, "rewrite_data_files hourly", COMMITS_PER_HOUR),
            Amoro(engine),
        )
        return dict(zip(RULES, made, strict=True))

    def create(self, name: str) -> IcebergTable:
        return IcebergTable(self.session, self._scala, self.folder, name, TARGET_BYTES)


def play_alone(folder: Path, trace: Trace, name: str, rounds: int) -> tuple[Played, int]:
    """Play one rule in each round; returns what was measured in the last one, and the manifests of its table."""
    with started_spark(folder / f"spark-{name}", iceberg=True) as spark:
        lake = Lake(spark, folder / "lake")
        tables = [lake.create(f"{name}_{number}") for number in range(rounds)]
        return play_rounds(lake.session, lake.rules()[name], trace, tables), tables[-1].manifests
