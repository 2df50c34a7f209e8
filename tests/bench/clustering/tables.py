"""A clustered table of each format: made, merged into, clustered by its format and by cells, and what its files say."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.ports import TableJob
from shared.formats.iceberg.cell_names import tag_of
from shared.formats.iceberg.names import COMMIT_KEY
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.boxes import Box
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CellReport, CommitOrigin
from tests.support.delta_tables import actions, commit_info, live, newest
from tests.support.iceberg_lab import IcebergLab
from tests.support.local_vacuum import Control

TARGET_BYTES = 512 * KIB
KEYS = ("a", "b")
POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=TARGET_BYTES).with_traits(is_clustered=True)
_CONF = "spark.databricks.delta."
_AUTO_COMPACTION = {"autoCompact.enabled": "true", "autoCompact.maxFileSize": str(TARGET_BYTES)}


class Table:
    """A table of id, a, b and t, clustered by a and b; `name` as Spark spells it. Sizes are bytes."""

    name: str
    command: str
    """Of the table's format, which clusters."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def create(self, file: Path) -> None:
        """Make the table with the rows of a file."""
        raise NotImplementedError

    def merge(self, file: Path) -> None:
        """Merge the rows of a file."""
        self.spark.sql(
            f"MERGE INTO {self.name} target USING parquet.`{file}` given ON target.id = given.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def cluster(self) -> None:
        """Run the format's command, with files of the target size."""
        raise NotImplementedError

    def run_cells(self, *, force: bool) -> None:
        """Run a job on cells."""
        raise NotImplementedError

    def report(self) -> CellReport:
        """Return what the last run on cells left."""
        raise NotImplementedError

    def counts(self) -> ClusteredFiles:
        """Return the live files in cells and others."""
        raise NotImplementedError

    def rewritten(self) -> int:
        """Return the bytes of the files that rewrites have replaced so far."""
        raise NotImplementedError

    def boxes(self) -> list[tuple[Box, int]]:
        """Return each live file's box and its rows."""
        raise NotImplementedError

    def rows(self) -> Any:
        """Return what is equal for equal rows."""
        text = f"SELECT count(*), sum(xxhash64(id, a, b, t) % 1000003) FROM {self.name}"
        return tuple(self.spark.sql(text).collect()[0])


class OnDelta(Table):
    """A Delta table with `CLUSTER BY` and deletion vectors; is_auto: writers compact after their commits."""

    command = "OPTIMIZE"

    def __init__(self, spark: SparkSession, folder: Path, name: str, *, is_auto: bool = False) -> None:
        super().__init__(spark)
        self.path = folder / name
        self.name = f"delta.`{self.path}`"
        self._engine, self._is_auto = DeltaEngine(spark), is_auto

    def create(self, file: Path) -> None:
        self.spark.sql(
            f"CREATE TABLE {self.name} (id BIGINT, a BIGINT, b BIGINT, t STRING) USING delta CLUSTER BY (a, b) "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        self.spark.read.parquet(str(file)).repartition(8).write.format("delta").mode("append").save(str(self.path))

    def merge(self, file: Path) -> None:
        given = _AUTO_COMPACTION if self._is_auto else {}
        for name, value in given.items():
            self.spark.conf.set(_CONF + name, value)
        super().merge(file)
        for name in given:
            self.spark.conf.unset(_CONF + name)

    def cluster(self) -> None:
        name = _CONF + "optimize.maxFileSize"
        self.spark.conf.set(name, str(TARGET_BYTES))
        self.spark.sql(f"OPTIMIZE {self.name}").collect()
        self.spark.conf.unset(name)

    def run_cells(self, *, force: bool) -> None:
        self._engine.run_table_job(_job(self.path.as_uri(), POLICY, force=force), Control())

    def report(self) -> CellReport:
        return _report(commit_info(self.path, one).get("userMetadata") for one in range(newest(self.path), -1, -1))

    def counts(self) -> ClusteredFiles:
        return ClusteredFiles.of((add["size"], CELL_TAG in (add.get("tags") or {})) for add in live(self.path).values())

    def rewritten(self) -> int:
        return sum(
            action["remove"]["size"]
            for version in range(newest(self.path) + 1)
            if commit_info(self.path, version)["operation"] == "OPTIMIZE"
            for action in actions(self.path, version)
            if "remove" in action
        )

    def boxes(self) -> list[tuple[Box, int]]:
        stats = [json.loads(add["stats"]) for add in live(self.path).values()]
        return [
            (tuple((one["minValues"][key], one["maxValues"][key] + 1) for key in KEYS), one["numRecords"])
            for one in stats
        ]


class OnIceberg(Table):
    """An Iceberg table that is merged on read; is_curve: its command goes along a Z-order, and not by a and then b."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, *, is_curve: bool = True) -> None:
        engine = IcebergEngine(spark, IcebergEngineSettings(reads_folders=True))
        self._lab = IcebergLab(spark, engine, folder)
        super().__init__(self._lab.session)
        self._is_curve = is_curve
        self.name = f"ice.db.{name}"
        self.command = f"rewrite_data_files by {'Z-order' if is_curve else 'sort'}"
        self._policy = replace(POLICY, cluster_by=", ".join(KEYS))

    def create(self, file: Path) -> None:
        given = {
            "format-version": "2",
            "write.distribution-mode": "none",
            "write.merge.mode": "merge-on-read",
            "write.parquet.compression-codec": "snappy",  # As Delta's, so that rows have the same bytes.
        }
        text = ", ".join(f"'{name}'='{value}'" for name, value in given.items())
        self.spark.sql(
            f"CREATE TABLE {self.name} (id BIGINT, a BIGINT, b BIGINT, t STRING) USING iceberg TBLPROPERTIES ({text})"
        )
        self.spark.read.parquet(str(file)).repartition(8).writeTo(self.name).append()

    def cluster(self) -> None:
        table, scala = self._lab.java(self.name), self._lab.engine._scala
        action = scala.actions(self.spark).rewriteDataFiles(table)
        if self._is_curve:
            names = self.spark._sc._gateway.new_array(self.spark._jvm.java.lang.String, len(KEYS))
            for place, key in enumerate(KEYS):
                names[place] = key
            action = action.zOrder(names)
        else:
            order = scala.resolve("org.apache.iceberg.SortOrder").builderFor(table.schema())
            for key in KEYS:
                order = order.asc(key)
            action = action.sort(order.build())
        action.option("rewrite-all", "true").option("target-file-size-bytes", str(TARGET_BYTES)).execute()

    def run_cells(self, *, force: bool) -> None:
        location = self._lab.location(self.name)
        self._lab.engine.run_table_job(_job(location, self._policy, force=force), Control())

    def report(self) -> CellReport:
        found = self.spark.sql(f"SELECT summary FROM {self.name}.snapshots ORDER BY committed_at DESC").collect()
        return _report(row[0].get(COMMIT_KEY) for row in found)

    def counts(self) -> ClusteredFiles:
        found = self.spark.sql(f"SELECT file_path, file_size_in_bytes FROM {self.name}.data_files").collect()
        return ClusteredFiles.of((size, tag_of(path) is not None) for path, size in found)

    def rewritten(self) -> int:
        found = self.spark.sql(f"SELECT summary FROM {self.name}.snapshots WHERE operation = 'replace'").collect()
        return sum(int(row[0].get("removed-files-size", 0)) for row in found)

    def boxes(self) -> list[tuple[Box, int]]:
        bounds = ", ".join(f"readable_metrics.{key}.{end}_bound" for key in KEYS for end in ("lower", "upper"))
        found = self.spark.sql(f"SELECT record_count, {bounds} FROM {self.name}.data_files").collect()
        return [(((low_a, high_a + 1), (low_b, high_b + 1)), rows) for rows, low_a, high_a, low_b, high_b in found]


def _job(location: str, policy: Policy, *, force: bool) -> TableJob:
    return TableJob(CLUSTER, location, policy, CommitOrigin("bench", 1), options=ClusterOptions(force=force).encode())


def _report(marks: Iterable[str | None]) -> CellReport:
    """Return what the first of these commits that is ours reports; without one, nothing is left."""
    ours = next((json.loads(mark)["lakewright"] for mark in marks if mark), {})
    return CellReport(*(ours.get(name, 0) for name in CellReport._fields))
