"""`make bench-index`: appends by a plain writer to a table with a Qbeast index, and a run after each of them.

The table is one that Qbeast's library wrote, of 1,000 rows; each append adds as many. Measured is what a run costs: new
files are indexed, and blocks of cubes are merged. Two minutes or so.
"""

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.ports import TableJob
from services.cli.decider_parts import local_formats
from shared.formats.qbeast.status import index_status
from shared.index.status import IndexMetrics, IndexQuery
from shared.jobs.options import IndexJobOptions
from shared.jobs.payload import INDEX
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.bench.cpu_parts import cpu_parts
from tests.bench.machine import Limit, exit_code, keep, machine
from tests.bench.spark import started_spark
from tests.support.index_tables import TABLES
from tests.support.local_vacuum import Control

COLUMNS = (
    "appends", "iterations", "CPU s each, median", "MB replaced", "files", "blocks", "fragmentation", "samples miss",
)  # fmt: skip
MAX_CPU_S = 0.5
"""Of an iteration once the JVM has compiled what it runs; the library's took 3 to 5."""


@dataclass(frozen=True, slots=True)
class Part:
    """Figures of some appends one after the other; bytes of files that were replaced. metrics: of the index then."""

    appends: int
    iterations: int
    cpu_s: float
    replaced_bytes: int
    metrics: IndexMetrics

    @property
    def row(self) -> str:
        """The figures as a row in Markdown."""
        now = self.metrics
        figures = (self.appends, self.iterations, f"{self.cpu_s:.2f}", f"{self.replaced_bytes / 1e6:.2f}", now.files)
        return f"| {' | '.join(map(str, (*figures, now.blocks, f'{now.fragmentation:.2f}', now.hidden_blocks)))} |"


class Indexed:
    """The table, and a writer that knows nothing of its index."""

    def __init__(self, engine: DeltaEngine, path: Path) -> None:
        self.path = path
        self._engine = engine
        self._runs = 0
        self._rows = pa.table(QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all())

    def append(self) -> None:
        """Append the rows of the beginning again."""
        write_deltalake(self.path, self._rows, mode="append")

    def run(self) -> dict[str, int]:
        """Optimize until nothing is left, as a job does; return the job's figures."""
        self._runs += 1
        policy = Policy(index=True).with_traits(is_indexed=True)
        origin, options = CommitOrigin("bench", self._runs), IndexJobOptions().encode()
        job = TableJob(INDEX, self.path.as_uri(), policy, origin, options=options)
        return dict(self._engine.run_table_job(job, Control()).figures)

    def metrics(self) -> IndexMetrics:
        """Return the state of the newest revision."""
        found = index_status(asyncio.run(local_formats().open(str(self.path)).snapshot()), IndexQuery())
        assert found is not None
        return found.revisions[-1].metrics


def play(table: Indexed, appends: int, parts: int) -> list[Part]:
    """Append and run in turn; returns figures of each part of the appends."""
    done = []
    for number in range(parts):
        each: list[float] = []
        replaced = iterations = 0
        for _ in range(appends // parts):
            table.append()
            before = cpu_parts().total()
            figures = table.run()
            now = figures.get("iterations", 0)
            each += [(cpu_parts().total() - before) / now] * now
            iterations, replaced = iterations + now, replaced + figures.get("bytes_replaced", 0)
        played = (number + 1) * (appends // parts)
        done.append(Part(played, iterations, statistics.median(each), replaced, table.metrics()))
        print(done[-1].row, flush=True)
    return done


def main() -> int:
    """Play, print figures and the limit, and keep the figures; returns 1 if the limit is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.index")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--appends", type=int, default=60)
    parser.add_argument("--parts", type=int, default=4, help="of the appends, with figures of their own")
    asked, began, started = parser.parse_args(), machine(), time.monotonic()
    print(f"{began}\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="lakewright-index-") as made, started_spark(Path(made) / "s") as spark:
        path = shutil.copytree(TABLES / "one", Path(made) / "one")
        table = Indexed(DeltaEngine(spark, EngineSettings()), path)
        done = play(table, asked.appends, asked.parts)
    checked = [
        Limit("CPU seconds of an iteration in the last part", done[-1].cpu_s, MAX_CPU_S),
        Limit("blocks whose rows samples may miss", done[-1].metrics.hidden_blocks, 0),
    ]
    print(*checked, f"{time.monotonic() - started:.0f} s", sep="\n")
    keep({**began, "appends": asked.appends, "parts": [asdict(one) for one in done]}, asked.json)
    return exit_code(checked)


if __name__ == "__main__":
    sys.exit(main())
