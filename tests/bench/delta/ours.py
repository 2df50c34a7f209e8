"""Lakewright under the trace: the real follower and the real worker, with a real Redis between them, in this process.

Each commit is followed, and the jobs that come of it are done, when two more commits have come: a run is the same every
time, and lags behind as an actor with other work to do does. In production both are processes of their own.
"""

from pyspark.sql import SparkSession

from actor.ports import TableEngine
from decider.formats.registry import TableFormats
from shared.policy import Policy
from shared.table import TableId, TableRef
from tests.bench.delta.rules import TARGET_BYTES, LeaveAlone
from tests.bench.delta.table import PlayedTable
from tests.bench.services import Services

QUEUE = "default"
LAG_COMMITS = 2


class Lakewright(LeaveAlone):
    """Follow each commit, decide, and do the jobs."""

    title = "Lakewright"

    def __init__(self, spark: SparkSession, engine: TableEngine, formats: TableFormats | None = None) -> None:
        super().__init__(spark)
        self._engine = engine
        self._formats = formats

    def begin(self, table: PlayedTable) -> None:
        super().begin(table)
        self.services = Services(self._engine, QUEUE, Policy(target_bytes=TARGET_BYTES), self._formats)
        self._ref = TableRef(TableId("bench"), "bench", table.path.as_uri())
        self._versions: list[int] = []
        self.services.run(self.services.tracker.follow(self._ref))

    def after(self, number: int) -> None:
        self._versions.append(self.newest_version())
        if len(self._versions) > LAG_COMMITS:
            self.services.run(self.services.tracker.follow(self._ref, self._versions[-1 - LAG_COMMITS]))
            while self.services.worker.run_next():
                pass

    def newest_version(self) -> int:
        """Return the version of the newest commit."""
        return self.table.follow() - 1

    def end(self) -> None:
        self.services.close()
