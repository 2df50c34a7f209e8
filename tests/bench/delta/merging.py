"""A MERGE in another session, at the level at which it can lose: it reads a partition, takes its time, and commits.

Delta's own transaction reads the files of one partition and later replaces one of them, with a data change, as a MERGE
does; Delta's own conflict rules decide. Only its rows are left as they are, so that the tables stay comparable.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.conflicts import classify
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.jvm.scala import jvm_session
from actor.rewrite.model import Verdict
from tests.bench.delta.table import PlayedTable


class Merge:
    """One MERGE under way on one day's partition."""

    def __init__(self, scala: DeltaScala, log: TableLog, table: PlayedTable, day: str) -> None:
        self._scala, self._log, self._table = scala, log, table
        self._txn = log.transaction()
        parser: Any = jvm_session(log.session).sessionState().sqlParser()
        wanted = scala.seq([parser.parseExpression(f"day = '{day}'")])
        read = self._txn.filterFiles(wanted, False)
        files = json.loads(scala.to_json(read))
        self._file = min(files, key=lambda add: add["path"], default=None)

    def commit(self) -> bool:
        """Replace the file; False if Delta aborted us because another caller committed in between."""
        if self._file is None:
            return True
        copy = {**self._file, "path": self._table.copy_of(self._file["path"]), "dataChange": True}
        update = self._scala.resolve("org.apache.spark.sql.delta.DeltaOperations$Update")(self._scala.none)
        removed = self._scala.removes(self._scala.adds(json.dumps([self._file])), 1, data_change=True)
        actions = self._scala.adds(json.dumps([copy])).concat(removed)
        try:
            self._txn.commit(actions, update)
        except Exception as error:
            if classify(error) is not Verdict.UNKNOWN:
                return False
            raise
        return True


class SparkTable(PlayedTable):
    """A played table in which a MERGE can begin."""

    def __init__(self, spark: SparkSession, path: Path, configuration: Mapping[str, str]) -> None:
        super().__init__(path, configuration)
        self._scala = DeltaScala(spark)
        self._log = TableLog(self._scala, spark, path.as_uri())

    def merge(self, day: str) -> Merge:
        """Begin a MERGE of one day's partition."""
        return Merge(self._scala, self._log, self, day)
