"""fabric-200: MERGE after MERGE of 1,000 rows, a tenth of them updates, with a query after each; the rows must agree.

Published for 200 of them on Fabric: 33.27 minutes without compaction, 14.63 with OPTIMIZE after each 20, 14.51 with
auto compaction, 12.77 with optimized write as well. Each side has a process and a JVM of its own.
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from actor.formats.delta.conflicts import FAILURES
from tests.bench.machine import Limit, tree_cpu_s
from tests.bench.rivals.page import Result, markdown
from tests.bench.spark import called_alone, started_spark
from tests.bench.writers.rows import aborts_until_done
from tests.support import line_chart
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.waiting import until

CONF = "spark.databricks.delta"
ROWS, UPDATED = 1_000, 100
NEWEST = 10_000
"""Rows among which updates are: those of the last ten MERGEs, as most changes are of rows that are new."""
CALLS = 10
"""Calls of a compaction that runs when it is called, as one after each 20 of 200 MERGEs."""
SHUFFLE = {"spark.sql.shuffle.partitions": "16", "spark.sql.adaptive.coalescePartitions.enabled": "false"}
"""So that a MERGE leaves 16 files, as one on several machines does, though two cores need no more than one."""
TEXT = "x" * 40
OURS = "Lakewright beside the writer"

After = Callable[[bool], object]
"""Called once a MERGE is committed, with whether a call is due."""


@dataclass(frozen=True, slots=True)
class Side:
    """`conf`: of the writer's session; `beside`: what works meanwhile, given the session and the folder of all."""

    title: str
    conf: Mapping[str, str]
    beside: "Callable[[SparkSession, Path], Any]"


@dataclass(slots=True)
class Played:
    """Seconds, and CPU seconds of writer, reader and compactor together; `done`: seconds after which each MERGE was."""

    title: str
    wall_s: float = 0.0
    merge_s: float = 0.0
    query_s: float = 0.0
    cpu_s: float = 0.0
    files: int = 0
    aborted: int = 0
    done: list[float] = field(default_factory=list)


def table_of(folder: Path) -> Path:
    """Return where the table of a side lies."""
    return folder / "tables" / "merged"


@contextmanager
def nothing(_: SparkSession, __: Path) -> Iterator[After]:
    """Do nothing, or leave it to the session."""
    yield lambda _: None


@contextmanager
def optimize(spark: SparkSession, folder: Path) -> Iterator[After]:
    """Call OPTIMIZE, for which the writer waits."""
    yield lambda is_due: is_due and spark.sql(f"OPTIMIZE delta.`{table_of(folder)}`").collect()


@contextmanager
def deltalake(_: SparkSession, folder: Path) -> Iterator[After]:
    """Call deltalake's `compact` in a thread, for which the writer does not wait."""
    due, is_over = Event(), Event()

    def work() -> None:
        while due.wait() and not is_over.is_set():
            due.clear()
            try:
                DeltaTable(str(table_of(folder))).optimize.compact()
            except Exception as lost:  # noqa: BLE001 - a lost race: the next call takes the same files
                print(f"deltalake: {lost}", flush=True)

    thread = Thread(target=work)
    thread.start()
    yield lambda is_due: is_due and due.set()
    is_over.set()
    due.set()
    thread.join()


@contextmanager
def lakewright(_: SparkSession, folder: Path) -> Iterator[After]:
    """Run a decider and an actor with their defaults, in processes of their own, told of each commit."""
    with RedisServer(appendfsync="everysec") as redis:
        stack = Stack(folder, redis, {"LAKEWRIGHT_POLICY": "", "JDK_JAVA_OPTIONS": ""})
        try:
            stack.decider()
            body = {"location": table_of(folder).as_uri(), "name": "merged"}
            stack.post("/v1/tables", body).raise_for_status()
            stack.actor()
            until("the actor is ready", lambda: (folder / "data" / "actor.ready").exists(), seconds=120)
            yield lambda _: stack.post("/v1/events", {"table": table_of(folder).as_uri()}).raise_for_status()
        finally:
            stack.close()


AUTO = {f"{CONF}.autoCompact.enabled": "true"}
SIDES = {
    "none": Side("none", {}, nothing),
    "optimize": Side(f"OPTIMIZE, {CALLS} times", {}, optimize),
    "auto": Side("auto compaction", AUTO, nothing),
    "auto-optimized": Side(
        "auto compaction, optimized write", AUTO | {f"{CONF}.optimizeWrite.enabled": "true"}, nothing
    ),
    "deltalake": Side(f"deltalake `compact` beside the writer, {CALLS} times", {}, deltalake),
    "lakewright": Side(OURS, {}, lakewright),
}


class Merges:
    """The rows of each MERGE from a seed, and what the table must hold after it: amounts by id."""

    def __init__(self, seed: int, newest: int) -> None:
        self._draw = random.Random(seed)
        self._newest = newest
        self.amounts: dict[int, int] = {}

    def next(self) -> pa.Table:
        """Return the rows of the next MERGE."""
        among = range(max(0, len(self.amounts) - self._newest), len(self.amounts))
        updated = self._draw.sample(among, UPDATED) if among else []
        ids = [*updated, *range(len(self.amounts), len(self.amounts) + ROWS - len(updated))]
        amounts = [self._draw.randrange(10**6) for _ in ids]
        self.amounts.update(zip(ids, amounts, strict=True))
        return pa.table({"id": ids, "amount": amounts, "name": [f"{TEXT}{amount}" for amount in amounts]})


def play_side(folder: Path, name: str, merges: int, seed: int, newest: int) -> Played:
    """Play one side; raises RuntimeError if the rows are not those that were merged."""
    side, source = SIDES[name], Merges(seed, newest)
    played, path = Played(side.title), table_of(folder)
    path.parent.mkdir(parents=True)
    with started_spark(folder / "spark", driver_memory="1g", iceberg=False, **SHUFFLE, **side.conf) as spark:
        target = f"delta.`{path}`"
        spark.sql(f"CREATE TABLE {target} (id BIGINT, amount BIGINT, name STRING) USING delta").collect()
        with side.beside(spark, folder) as after:
            began, cpu_s = time.monotonic(), tree_cpu_s(os.getpid())
            for number in range(1, merges + 1):
                spark.createDataFrame(source.next()).createOrReplaceTempView("merged")
                at = time.monotonic()
                played.aborted += _merge(spark, target)
                after(number % max(1, merges // CALLS) == 0)
                played.merge_s += time.monotonic() - at
                at = time.monotonic()
                found = spark.sql(f"SELECT count(*), sum(amount), max(name) FROM {target}").collect()[0]
                played.query_s += time.monotonic() - at
                played.done.append(time.monotonic() - began)
                if found[:2] != (len(source.amounts), sum(source.amounts.values())):
                    raise RuntimeError(f"{side.title}: {found[:2]} after MERGE {number}")
            played.cpu_s = tree_cpu_s(os.getpid()) - cpu_s
            played.wall_s = played.done[-1]
        played.files = len(DeltaTable(str(path)).file_uris())
    print(played.title, f"{played.wall_s:.0f} s, {played.cpu_s:.0f} CPU s, {played.files} files", flush=True)
    return played


def _merge(spark: SparkSession, target: str) -> int:
    """Merge, again where it was aborted; returns how often that was."""
    text = (
        f"MERGE INTO {target} t USING merged s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    return aborts_until_done(FAILURES, lambda: spark.sql(text).collect())


def goals(done: list[Played]) -> list[Limit]:
    """Return what Lakewright has to show: the least CPU of all, and no aborted MERGE."""
    ours = next((one for one in done if one.title == OURS), None)
    others = [one.cpu_s for one in done if one.title != OURS]
    if ours is None or not others:
        return []
    return [
        Limit("total CPU by the least of the others", ours.cpu_s / min(others), 1.0),
        Limit("aborted MERGEs", ours.aborted, 0),
    ]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked for."""
    parser.add_argument("--merges", type=int, default=60, help="of each side; published with 200")
    parser.add_argument("--newest", type=int, default=NEWEST, help="rows among which updates are")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sides", nargs="*", default=list(SIDES), choices=list(SIDES))


def play(folder: Path, asked: Any) -> Result:
    """Play all sides."""
    done = [
        called_alone(play_side, folder / name, name, asked.merges, asked.seed, asked.newest) for name in asked.sides
    ]
    head = ("side", "wall s", "MERGEs s", "queries s", "CPU s of all", "files at the end", "MERGEs aborted")
    rows = [
        (one.title, *(f"{value:.0f}" for value in (one.wall_s, one.merge_s, one.query_s, one.cpu_s)), one.files,
         one.aborted)
        for one in done
    ]  # fmt: skip
    curves = [line_chart.Line(one.title, [(at, number) for number, at in enumerate(one.done, 1)]) for one in done]
    versions = {name: metadata.version(name) for name in ("pyspark", "delta-spark", "deltalake", "lakewright")}
    setting = f"{asked.merges} MERGEs, updates among the newest {asked.newest:,} rows, seed {asked.seed}"
    return Result(
        markdown(head, rows),
        line_chart.draw("MERGEs done over time", curves, unit="MERGEs"),
        setting,
        versions,
        goals(done),
        {"merges": asked.merges, "newest": asked.newest, "seed": asked.seed,
         "sides": [{name: getattr(one, name) for name in Played.__slots__} for one in done]},
    )  # fmt: skip
