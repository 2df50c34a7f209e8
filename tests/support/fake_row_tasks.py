"""The JVM's side of tasks that read rows by their keys, without a JVM."""

import json
from types import SimpleNamespace
from typing import Any, cast

from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from tests.support.fake_copies import FOOTER, FakeCopies
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PREFIX, add

V, T = Column(("v",), "INT64", "int", (64, 64)), Column(("t",), "BINARY", "text")
STORED = Storage(((V, T),), {"snappy": 100})
STATS = {
    "numRecords": 10,
    "minValues": {"v": 1, "t": "a"},
    "maxValues": {"v": 5, "t": "z"},
    "nullCount": {"v": 0, "t": 0},
}
MADE = {"name": "o", "size": 50, "rows": 4, "modification": 7}


class FakeRowTasks:
    """Two files of ten rows; `said`: what each task says; `told`: what it was told after the inputs.

    What the JVM is told of an object it makes is a tuple that begins with its class.
    """

    def __init__(
        self,
        stats: dict[str, Any] = STATS,
        said: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        **footer: Any,
    ) -> None:
        self.table = FakeTable()
        self.table.commit({"metaData": METADATA | {"partitionColumns": []} | (metadata or {})})
        self.table.commit(*(add(name, partitionValues={}, stats=json.dumps(stats)) for name in "xy"))
        self.scala = cast("Any", FakeCopies(self.table, (FOOTER, FOOTER | footer), {}))
        self.live = live_group(self.table, "x", "y")
        self.log = TableLog(self.scala, self.table.log().session, "file:///lake/t")
        snapshot = self.log.transaction().snapshot()
        paths = OutputPaths(self.scala, self.log, snapshot, self.log.shape(snapshot), PREFIX)
        self.tasks = ParquetTasks(self.scala, self.log, paths, DeltaCaches())
        self.said, self.told = {"attempt": 0} | (said or {}), list[tuple[Any, ...]]()
        self.scala.group.scattered = self.scala.group.read = self.scala.group.merged = self._run
        self.scala.row_sample = lambda every: ("RowSample", every)
        self.scala.cut_tree = SimpleNamespace(of=lambda cuts: ("CutTree", cuts))
        cubes = {name: _made(name) for name in ("ofFiles", "ofIndex", "ofPlaces")}
        folds = {name: _made(name) for name in ("CubeCount", "CubeRoute", "ValueRanges")}
        self.scala.qbeast = SimpleNamespace(QbeastCube=SimpleNamespace(**cubes), **folds)

    def _run(self, _context: Any, *given: Any) -> str:
        self.told.append(given[3:])
        return json.dumps(self.said)


def _made(name: str) -> Any:
    return lambda *told: (name, *told)
