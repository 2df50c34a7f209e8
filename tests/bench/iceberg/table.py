"""The Iceberg table that a rule is played on: the trace's files by hard links, commits by Iceberg's Java classes.

What a rule rewrote and how many files are live is read from the snapshots alone, in the same way for every rule.
"""

import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.conflicts import classify
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.java_table import JavaTable
from actor.rewrite.model import Verdict
from shared.formats.iceberg.positions import newest_position
from tests.bench.delta.trace import COLUMNS

_ICEBERG = "org.apache.iceberg"
_TYPES = {"long": "BIGINT", "string": "STRING"}


class IcebergTable:
    """One table of the catalog `ice`, whose warehouse is `folder`."""

    begins_ms = None
    """Its commits have the time of this machine's clock, so decider and queue go by that one, too."""

    def __init__(self, session: SparkSession, scala: IcebergScala, folder: Path, name: str, target_bytes: int) -> None:
        self._scala = scala
        self.path = folder / "db" / name
        self.sql_name = f"ice.db.{name}"
        self.bytes_rewritten = self.rewrites = 0
        self.live: dict[str, tuple[str, int]] = {}
        """Day and bytes of the live files by path, as of the last look."""
        columns = ", ".join(f"{column} {_TYPES[kind]}" for column, kind in COLUMNS.items())
        session.sql(
            f"CREATE TABLE {self.sql_name} ({columns}) USING iceberg PARTITIONED BY (day) "
            f"TBLPROPERTIES ('format-version'='2', 'write.target-file-size-bytes'='{target_bytes}')"
        )
        tables = scala.resolve(f"{_ICEBERG}.hadoop.HadoopTables")(session._jsparkSession.sessionState().newHadoopConf())
        self.raw = tables.load(str(self.path))
        self._java = JavaTable(scala, self.raw, self.path.as_uri())
        self._seen: int | None = None

    @property
    def files(self) -> int:
        """Live files, as of the last look."""
        return len(self.live)

    @property
    def live_bytes(self) -> int:
        """Bytes in live files, as of the last look."""
        return sum(size for _, size in self.live.values())

    @property
    def manifests(self) -> int:
        """Manifests of the newest snapshot."""
        return len(self.raw.currentSnapshot().allManifests(self.raw.io()))

    def version(self) -> int:
        """Return the version of the newest commit, as deciders count."""
        return newest_position(self._java.refresh()).version

    def bring(self, folder: Path, adds: Iterable[Mapping[str, Any]]) -> None:
        """Link the data files of a commit into the table's folder."""
        for add in adds:
            target = self.path / "data" / add["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(folder / add["path"], target)

    def append(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Commit data files as a foreign writer does."""
        self.raw.refresh()
        change = self.raw.newAppend()
        for add in adds:
            change.appendFile(self._described(self.path / "data" / add["path"]))
        change.commit()
        self.follow()

    def merge(self, day: str) -> "Merge":
        """Begin a MERGE of one day's partition."""
        return Merge(self, self._scala, day)

    def copy_of(self, path: str) -> Any:
        """Link a live data file under a new name beside it, and return Iceberg's object of that."""
        file = Path(path.removeprefix("file:"))
        copy = file.parent / f"merged-{uuid.uuid4().hex}.parquet"
        os.link(file, copy)
        return self._described(copy)

    def follow(self) -> int:
        """Read the snapshots since the last look; returns how many there are."""
        self.raw.refresh()
        new = []
        snapshot = self.raw.currentSnapshot()
        while snapshot is not None and snapshot.snapshotId() != self._seen:
            new.append(snapshot)
            parent = snapshot.parentId()
            snapshot = None if parent is None else self.raw.snapshot(parent)
        for one in reversed(new):
            added = {str(file.location()): _day_and_bytes(file) for file in one.addedDataFiles(self.raw.io())}
            for file in one.removedDataFiles(self.raw.io()):
                del self.live[str(file.location())]
            self.live |= added
            if str(one.operation()) == "replace":
                self.bytes_rewritten += sum(size for _, size in added.values())
                self.rewrites += 1
        if new:
            self._seen = new[0].snapshotId()
        return len(new)

    def _described(self, path: Path) -> Any:
        """Return a data file with its metrics, as a writer would have them."""
        input_file = self.raw.io().newInputFile(str(path))
        config = self._scala.resolve(f"{_ICEBERG}.MetricsConfig").forTable(self.raw)
        metrics = self._scala.resolve(f"{_ICEBERG}.parquet.ParquetUtil").fileMetrics(input_file, config)
        builder = self._scala.resolve(f"{_ICEBERG}.DataFiles").builder(self.raw.spec()).withInputFile(input_file)
        return builder.withFormat("parquet").withPartitionPath(path.parent.name).withMetrics(metrics).build()


class Merge:
    """A copy-on-write MERGE in another session, at the level at which it can lose: it reads a day, and commits later.

    Iceberg's own overwrite validates what a MERGE of Spark does under serializable isolation. It replaces one file of
    the day by a copy, so that the tables stay comparable.
    """

    def __init__(self, table: IcebergTable, scala: IcebergScala, day: str) -> None:
        self._table = table
        table.raw.refresh()
        self._since = table.raw.currentSnapshot().snapshotId()
        self._filter = scala.resolve(f"{_ICEBERG}.expressions.Expressions").equal("day", day)
        with closing(table.raw.newScan().filter(self._filter).planFiles()) as planned:
            lists = scala.resolve(f"{_ICEBERG}.relocated.com.google.common.collect.Lists")
            files = [task.file() for task in lists.newArrayList(planned)]
        self._file = min(files, key=lambda file: str(file.location()), default=None)

    def commit(self) -> bool:
        """Replace the file; False if Iceberg aborted the MERGE because another caller committed in between."""
        if self._file is None:
            return True
        self._table.raw.refresh()
        change = self._table.raw.newOverwrite().validateFromSnapshot(self._since).conflictDetectionFilter(self._filter)
        change = change.validateNoConflictingData().validateNoConflictingDeletes()
        try:
            change.deleteFile(self._file).addFile(self._table.copy_of(str(self._file.location()))).commit()
        except Exception as error:
            if classify(error) is Verdict.UNKNOWN:
                raise
            return False
        return True


def _day_and_bytes(file: Any) -> tuple[str, int]:
    return str(file.location()).rpartition("/")[0].rpartition("day=")[2], int(file.fileSizeInBytes())
