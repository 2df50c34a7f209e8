"""Orders of dispatch on real tables: `python -m tests.bench.fleet.real [--tables 1000] [--cpu-s 60]`.

Each order gets its own copy of the tables, the same commits, a real decider, queue and worker; the worker is the only
slot, and commits need several of them. Only the order differs: the other ones have the job of their choice expedited
before the worker claims. The clock is the CPU time that rewriting took, so time passes only in jobs, or where none
waits. *Opened* are files that readers open: reads per second times files, over the clock.
"""

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from actor.formats.delta.engine import DeltaEngine
from shared.policy.policy import Policy
from shared.queue import admin_commands, queries
from shared.queue.model import JobId, JobState
from tests.bench.delta.playing import Meter
from tests.bench.fleet.real_lake import History, RealTable, draw
from tests.bench.fleet.simulation import ORDERS, OURS, Lake, LakeTable, Order
from tests.bench.machine import machine
from tests.bench.services import Services
from tests.bench.spark import started_spark

QUEUE = "fleet"
WARM_UP_S = 120.0
"""CPU seconds of a first run that is not reported, in which the JVM compiles."""

COMPARED = (OURS, "fair tables", "fifo", "oldest first", "Amoro quota", "Amoro balanced")
WITNESSES = 100
"""Tables whose rows deltalake counts in the end."""


class FleetServices(Services):
    """Services of many tables, of which each waits with one job at most."""

    def follow(self, table: RealTable) -> None:
        """Let the decider read a table's new commits and decide on them."""
        self.run(self.tracker.follow(table.ref))

    def waiting(self) -> dict[int, JobId]:
        """Return the job of each table that waits for a slot."""
        found: dict[int, JobId] = {}
        offset: int | None = 0
        while offset is not None:
            page = self.run(self.queue.run(queries.jobs(QUEUE, JobState.QUEUED, offset=offset)))
            found |= {int(job.key.table.removeprefix("t")): job.id for job in page.jobs}
            offset = page.next_offset
        return found

    def expedite(self, job: JobId) -> None:
        """Put a job before all others."""
        self.run(self.queue.run(admin_commands.expedite(QUEUE, job)))


@dataclass(slots=True)
class Served:
    """What was measured under one order: files opened, CPU seconds of jobs, waits in seconds of the clock."""

    name: str
    opened: float = 0.0
    opened_without: float = 0.0
    cpu_s: float = 0.0
    clock_s: float = 0.0
    jobs: int = 0
    bytes_rewritten: int = 0
    waits_s: list[float] = field(default_factory=list)
    still_waiting: int = 0
    longest_left_s: float = 0.0

    @property
    def avoided(self) -> float:
        """Share of the files that readers did not have to open."""
        return 1 - self.opened / self.opened_without


class Run:
    """One order over the whole history, until the jobs have used the CPU time."""

    def __init__(self, services: FleetServices, meter: Meter, history: History, folder: Path, name: str) -> None:
        self._services, self._meter, self._history = services, meter, history
        self._order: Order | None = ORDERS.get(name)
        self.tables = [RealTable(history, number, folder) for number in range(len(history.tables))]
        self._lake = Lake(
            [
                LakeTable(table.tenant, table.commits_per_s, table.reads_per_s, history.templates[table.file]["size"])
                for table in history.tables
            ]
        )
        self._opened_until = [0.0] * len(self.tables)
        self._waiting_since: dict[int, float] = {}
        self._next = 0
        self.served = Served(name)

    def play(self, budget_s: float, report: Callable[[Served], None]) -> Served:
        """Play until the budget of CPU seconds is used, or no commit is left."""
        served, commits = self.served, self._history.commits
        while served.cpu_s < budget_s:
            self._commit_what_is_due()
            waiting = self._services.waiting()
            self._noted(waiting)
            if waiting:
                self._run_one(waiting)
                report(served)
            elif self._next < len(commits):
                served.clock_s = commits[self._next].at_s
            else:
                break
        for number in range(len(self.tables)):
            self._integrate(number, served.clock_s)
        served.opened_without = self._history.opens(served.clock_s)
        served.bytes_rewritten = sum(table.played.bytes_rewritten for table in self.tables)
        waiting = self._services.waiting()
        served.still_waiting = len(waiting)
        served.longest_left_s = max(
            (served.clock_s - self._waiting_since.get(n, served.clock_s) for n in waiting), default=0.0
        )
        return served

    def _commit_what_is_due(self) -> None:
        touched = set()
        while self._next < len(self._history.commits):
            commit = self._history.commits[self._next]
            if commit.at_s > self.served.clock_s:
                break
            self._integrate(commit.table, commit.at_s)
            table = self.tables[commit.table]
            if not table.played.files:
                self._lake.tables[commit.table].oldest_s = commit.at_s
            table.commit(commit.files)
            touched.add(commit.table)
            self._next += 1
        for number in sorted(touched):
            self._services.follow(self.tables[number])

    def _noted(self, waiting: dict[int, JobId]) -> None:
        """Tell the lake in memory, which the other orders look at, what waits."""
        known = set(self._lake.all_waiting())
        for number in sorted(set(waiting) - known):
            self._waiting_since.setdefault(number, self.served.clock_s)
            self._lake.enqueue(number, self.served.clock_s)
        for number in known - set(waiting):
            self._lake.waiting[self._lake.tables[number].tenant].discard(number)
        for number in waiting:
            self._lake.tables[number].files = self.tables[number].played.files

    def _run_one(self, waiting: dict[int, JobId]) -> None:
        served = self.served
        if self._order is not None:
            self._services.expedite(waiting[self._order(self._lake, served.clock_s)])
        began_s = served.clock_s
        used = self._meter.cpu_s(self._services.worker.run_next)
        served.cpu_s += used
        served.clock_s += used
        before = {number: self.tables[number].played.rewrites for number in waiting}
        done = []
        for number in waiting:
            files = self.tables[number].played.files
            self.tables[number].played.follow()
            if self.tables[number].played.rewrites > before[number]:
                done.append(number)
                self._integrate(number, served.clock_s, files=files)
        for number in done:
            self._services.follow(self.tables[number])
            self._lake.take(number).optimized_s = served.clock_s
            served.waits_s.append(began_s - self._waiting_since.pop(number, began_s))
        served.jobs += len(done)

    def _integrate(self, number: int, now_s: float, files: int | None = None) -> None:
        table = self.tables[number]
        opened = table.played.files if files is None else files
        self.served.opened += opened * table.drawn.reads_per_s * max(0.0, now_s - self._opened_until[number])
        self._opened_until[number] = max(now_s, self._opened_until[number])


def check_rows(run: Run, seed: int) -> int:
    """Let deltalake count the rows of some rewritten tables; returns how many, raises where one is lost or doubled."""
    rewritten = [table for table in run.tables if table.played.rewrites]
    chosen = random.Random(seed).sample(rewritten, min(WITNESSES, len(rewritten)))
    for table in chosen:
        counted = DeltaTable(str(table.played.path)).to_pyarrow_table(columns=["id"]).num_rows
        if counted != table.rows:
            raise RuntimeError(f"{table.played.path}: {counted} rows of {table.rows}")
    return len(chosen)


def measure(spark: SparkSession, folder: Path, asked: argparse.Namespace, console: Console) -> list[Served]:
    """Play every order, after a first one in which the JVM compiles."""
    engine, meter = DeltaEngine(spark), Meter(spark)
    seconds = 20 * asked.cpu_s
    history = draw(folder, tables=asked.tables, seed=asked.seed, commits_per_s=asked.commits_per_s, seconds=seconds)
    done = []
    warm_up_s = min(WARM_UP_S, 2 * asked.cpu_s)
    for number, name in enumerate([OURS, *asked.orders]):
        budget_s = asked.cpu_s if number else warm_up_s
        place = folder / f"tables-{number}"
        place.mkdir()
        with closing(FleetServices(engine, QUEUE, Policy())) as services, console.status(name) as status:
            run = Run(services, meter, history, place, name)

            def report(served: Served, status=status, budget_s: float = budget_s) -> None:  # type: ignore[no-untyped-def]
                status.update(f"{served.name}: {served.jobs} jobs, {served.cpu_s:.0f} of {budget_s:.0f} CPU s")

            served = run.play(budget_s, report)
        checked = check_rows(run, asked.seed)
        shutil.rmtree(place)
        if number:
            done.append(served)
        console.print(f"{name}: {served.jobs} jobs, {served.avoided:.1%} avoided; rows of {checked} tables counted")
    return done


def table(done: list[Served]) -> Table:
    """Return one row for each order."""
    shown = Table(box=None, pad_edge=False)
    columns = (
        "order", "opens avoided", "per CPU s", "jobs", "CPU s", "MB rewritten",
        "wait p50 s", "p99 s", "worst s", "left waiting", "longest s",
    )  # fmt: skip
    for column in columns:
        shown.add_column(column, justify="left" if column == "order" else "right")
    for one in done:
        cuts = quantiles(one.waits_s, n=100)
        shown.add_row(
            one.name,
            f"{one.avoided:.1%}",
            f"{(one.opened_without - one.opened) / one.cpu_s:,.0f}",
            str(one.jobs),
            f"{one.cpu_s:.0f}",
            f"{one.bytes_rewritten / 1e6:.0f}",
            *(f"{cuts[at]:.1f}" for at in (49, 98)),
            f"{max(one.waits_s):.1f}",
            str(one.still_waiting),
            f"{one.longest_left_s:.1f}",
        )
    return shown


def main() -> None:
    """Play, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet.real")
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--cpu-s", type=float, default=60.0, help="CPU seconds of jobs under each order")
    parser.add_argument("--commits-per-s", type=float, default=25.0, help="of all tables, per second of the clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", nargs="+", default=list(COMPARED), choices=[OURS, *ORDERS], metavar="ORDER")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args()
    console = Console(width=160, highlight=False)
    console.print(f"seed {asked.seed}; {machine()}")
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-fleet-") as made:
        folder = Path(made)
        with started_spark(folder / "spark") as spark:
            done = measure(spark, folder, asked, console)
    console.print(table(done))
    if asked.json:
        figures = {**machine(), "seed": asked.seed, "tables": asked.tables, "orders": [asdict(one) for one in done]}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
