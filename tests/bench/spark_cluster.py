"""`make bench-spark-cluster`: one job of 64 groups on a standalone cluster of Spark, with one executor and with two.

Workers and their executors have one core each. All processes are on one machine: master, workers, driver, decider and
Redis share its cores with the executors. One actor runs all jobs. Each round takes one worker away, and gives the
cluster a new one, so that both numbers of executors have their turn; whatever is new writes a few groups before the
clock counts. The medians over all rounds count.
"""

import argparse
import json
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from tests.bench.machine import cpu_s, keep, machine
from tests.support import spark_events
from tests.support.large_files import linked, written
from tests.support.redis_server import RedisServer
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_events import TaskEnd
from tests.support.spark_world import World
from tests.support.stack import Process, Stack
from tests.support.waiting import until

WAYS = {"copied": "auto", "encoded": "never"}
"""Values of `lakewright.row-group-copy`, by how rows are written then."""

EXECUTORS = (1, 2)
FILES_OF_GROUP = 4
FILE_BYTES = 2_600_000
"""Before compression, in one row group; four of the files (2.3 MB) reach the target."""

TARGET = "8mb"
OPTIONS: dict[str, Any] = {
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.executor.memory": "1g",
    **{f"spark.dynamicAllocation.{name}Executors": len(EXECUTORS) for name in ("min", "max", "initial")},
}
"""As in production, the second compiler of the JVM is in use, and all executors that there can be."""

SETTINGS = {"JDK_JAVA_OPTIONS": "", "LAKEWRIGHT_MIN_ROW_GROUP_MIB": "2"}
"""So that row groups of the files are copied, which make full ones of 8 MiB."""

LONGEST_S = 600.0


@dataclass(frozen=True, slots=True)
class JobCost:
    """What one job cost, in seconds.

    total_s: of the run. writing_s, committing_s: of that, writing the groups and committing them; the rest is planning.
    busiest: share of the groups that the executor with most of them wrote. at_once: mean number of executors that ran a
    task while any did.
    """

    total_s: float
    writing_s: float
    committing_s: float
    driver_cpu_s: float
    executors_cpu_s: float
    busiest: float
    at_once: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of rounds, of jobs of each kind in a round, of groups of a job, and of groups that are written before."""

    rounds: int = 3
    jobs: int = 3
    groups: int = 64
    warm_up: int = 16


@dataclass(frozen=True, slots=True)
class Files:
    """A table of enough files, how many of them become one, and the size at which they do."""

    source: Path
    of_group: int
    target: str


class Bench:
    """Measures jobs of one actor, on tables that share the files of `files`."""

    def __init__(self, world: World, actor: Process, files: Files, sizes: Sizes) -> None:
        self._world = world
        self._actor = actor
        self._files = files
        self._sizes = sizes
        self._tables = 0

    def round(self, executors: int) -> list[dict[str, JobCost]]:
        """Bring the cluster to this number of executors; return the costs of jobs by how their rows are written."""
        cluster = self._world.cluster
        while len(cluster.workers) > executors:
            cluster.remove_worker()
        while len(cluster.workers) < executors:
            cluster.add_worker()
        until("the executors are there", lambda: len(cluster.executors()) == executors, seconds=120)
        python = psutil.Process(self._actor.popen.pid)
        processes = [python, *python.children(recursive=True)]
        for way in WAYS:
            self._job(way, self._sizes.warm_up, processes)
        return [{way: self._job(way, self._sizes.groups, processes) for way in WAYS} for _ in range(self._sizes.jobs)]

    def _job(self, way: str, groups: int, driver: Sequence[psutil.Process]) -> JobCost:
        self._tables += 1
        path = self._world.stack.tables / f"bench-{self._tables}"
        table = linked(self._files.source, path, files=groups * self._files.of_group)
        executors = self._world.cluster.executors()
        before_s = [cpu_s(*driver), cpu_s(*executors)]
        self._world.register(table, row_group_copy=WAYS[way], target_file_size=self._files.target)
        until(f"{groups} groups are {way}", lambda: self._world.is_done(table), seconds=LONGEST_S)
        used_s = [cpu_s(*driver), cpu_s(*executors)]
        (run,) = self._world.runs(table)
        measured = run["measured"]
        done = measured.get("groups_copied" if way == "copied" else "encoded_switched_off")
        if (run["result"], done) != ("done", groups):
            raise RuntimeError(f"{groups} groups were not {way}: {run}")
        tasks = [one for one in spark_events.of_job(self._world.events, run["id"]) if one.reason == "Success"]
        httpx.delete(f"{self._world.stack.url}/v1/tables/db.{table.name}", timeout=LONGEST_S).raise_for_status()
        shutil.rmtree(table)
        cost = JobCost(
            total_s=seconds_between(run["started_at"], run["finished_at"]),
            writing_s=measured["prepare_ms"] / 1e3,
            committing_s=measured["commit_ms"] / 1e3,
            driver_cpu_s=used_s[0] - before_s[0],
            executors_cpu_s=used_s[1] - before_s[1],
            busiest=max(Counter(one.executor for one in tasks).values()) / len(tasks),
            at_once=at_once(busy_spans(tasks)),
        )
        print(f"  {len(executors)} executors, {groups} groups {way}: {cost}", flush=True)
        return cost


def seconds_between(first: str, last: str) -> float:
    """Return the seconds between two times of the API."""
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def at_once(spans: Sequence[tuple[int, int]]) -> float:
    """Return the mean number of spans that cover a moment, over all moments that one covers."""
    covered_ms = _total_ms(joined(spans))
    return _total_ms(spans) / covered_ms if covered_ms else 0.0


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same moments as spans that do not overlap."""
    found: list[tuple[int, int]] = []
    for began_ms, ended_ms in sorted(spans):
        if found and began_ms < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ended_ms))
        else:
            found.append((began_ms, ended_ms))
    return found


def busy_spans(tasks: Sequence[TaskEnd]) -> list[tuple[int, int]]:
    """Return when each executor was busy: on one core, Spark starts a task before it notes the end of the last one."""
    spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for task in tasks:
        spans[task.executor].append((task.began_ms, task.ended_ms))
    return [span for of_one in spans.values() for span in joined(of_one)]


def _total_ms(spans: Iterable[tuple[int, int]]) -> int:
    return sum(ended_ms - began_ms for began_ms, ended_ms in spans)


def figures(costs: dict[int, list[dict[str, JobCost]]]) -> dict[str, Any]:
    """Return the medians by way and number of executors, and what the second executor gains."""
    found: dict[str, Any] = {}
    for way in WAYS:
        by_executors = {
            str(executors): {
                name: round(median(asdict(one[way])[name] for one in jobs), 3) for name in JobCost.__dataclass_fields__
            }
            for executors, jobs in costs.items()
        }
        one, two = (by_executors[str(executors)] for executors in EXECUTORS)
        found[way] = {
            "executors": by_executors,
            "times_as_fast": round(one["total_s"] / two["total_s"], 3),
            "times_as_fast_writing": round(one["writing_s"] / two["writing_s"], 3),
            "total_s_of_each": {
                str(executors): [round(one[way].total_s, 3) for one in jobs] for executors, jobs in costs.items()
            },
        }
    return found


@contextmanager
def started_world(folder: Path) -> Iterator[World]:
    """Start Redis, a decider and a cluster of two workers below a folder."""
    events = folder / "events"
    events.mkdir()
    server = RedisServer(appendfsync="everysec").start()
    stack = Stack(folder, server, {"LAKEWRIGHT_LOG_LEVEL": "warning"})
    try:
        stack.tables.mkdir()
        with SparkCluster(folder / "cluster") as cluster:
            cluster.start(workers=len(EXECUTORS))
            stack.decider(LAKEWRIGHT_SWEEP_S="2")
            yield World(stack, cluster, events)
    finally:
        stack.close()
        server.close()


def measure(world: World, actor: Process, files: Files, sizes: Sizes) -> dict[int, list[dict[str, JobCost]]]:
    """Measure all rounds; the cluster has its two workers again at the end."""
    bench = Bench(world, actor, files, sizes)
    costs: dict[int, list[dict[str, JobCost]]] = {executors: [] for executors in EXECUTORS}
    for _ in range(sizes.rounds):
        for executors in EXECUTORS:
            costs[executors] += bench.round(executors)
    return costs


def main() -> None:
    """Measure, print the figures, and keep them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark_cluster")
    usual = Sizes()
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="turns of each number of executors")
    parser.add_argument("--jobs", type=int, default=usual.jobs, help="jobs of each kind in a turn")
    parser.add_argument("--groups", type=int, default=usual.groups, help="groups of a job")
    parser.add_argument("--warm-up", type=int, default=usual.warm_up, help="groups written before the clock counts")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    sizes = Sizes(asked.rounds, asked.jobs, asked.groups, asked.warm_up)
    about = {**machine(), "seed": asked.seed, **asdict(sizes)}
    print(about, flush=True)
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-spark-cluster-") as made, started_world(Path(made)) as up:
        count = max(sizes.groups, sizes.warm_up) * FILES_OF_GROUP
        source = written(Path(made) / "source", files=count, file_bytes=FILE_BYTES, seed=asked.seed)
        with up.actor("bench", options=OPTIONS, **SETTINGS) as actor:
            costs = measure(up, actor, Files(source, FILES_OF_GROUP, TARGET), sizes)
    found = {**about, **figures(costs)}
    print(json.dumps(found, indent=1))
    keep(found, asked.json)


if __name__ == "__main__":
    main()
