"""`make bench-capacity`: what a fleet costs that one decider and one Redis follow, by the number of its tables.

Each size has a decider and a Redis of its own and real logs on local disk. The tables are declared in a file, so that
the time until all are registered and read is measured, too. Then the fleet is swept, first without commits and then
with some. Actors are not run: what they would have to do is the decider's own prediction of the jobs that the commits
led to.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from shared.paths.locations import table_id
from shared.queue import keys
from tests.bench.decide.house import QUEUE, Cost, House, house
from tests.bench.decide.logs import DAYS, WrittenLog
from tests.bench.machine import keep, machine

FILES = 5
"""Files of a table before the measurement: more add to its log and nothing to what is kept of it."""

SWEEP_S, SWEEP_S_PER_TABLE = 100.0, 0.01
"""Interval between two reads of a table without events: long enough that a window lies within one sweep, and a fifth of
a core for large fleets, as a read takes some 2 ms."""

REFRESHES = "lakewright_table_refreshes_total"

POST = 500
"""Tables that one event names."""

READ_S = 3_600.0
"""Longest wait until all tables are read."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one size costs.

    sweep_s: interval of the sweep. first_read_s: until all tables were registered and read; settled_s: and the timers
    that were due taken; first_cpu_ms_per_table: of the decider for both. swept_per_s: tables. decider_share,
    redis_share: cores, while the fleet is swept; busy_*: with commits as well. lag_s: wait of the oldest table after
    these. jobs: what they led to; busy_slots: how many slots of actors that would keep busy, predicted before a run is
    measured.
    """

    tables: int
    sweep_s: float
    first_read_s: float
    settled_s: float
    first_cpu_ms_per_table: float
    decider_mib: float
    redis_mib: float
    redis_bytes_per_table: float
    swept_per_s: float
    decider_share: float
    redis_share: float
    commits_per_s: float
    busy_decider_share: float
    busy_redis_share: float
    lag_s: float
    jobs: int
    busy_slots: float


def main() -> None:
    """Measure each size, print the table, and keep the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capacity")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of tables")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each of the two windows")
    parser.add_argument("--per-s", type=float, default=20.0, help="commits a second in the second one")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}", flush=True)
    found: list[Capacity] = []
    for tables in asked.sizes:
        with tempfile.TemporaryDirectory(prefix="lakewright-bench-capacity-") as made:
            found.append(measure(Path(made), tables, seconds=asked.seconds, per_s=asked.per_s, seed=asked.seed))
        print(json.dumps(asdict(found[-1])), flush=True)
    figures: dict[str, Any] = {**machine(), "seed": asked.seed, "sizes": [asdict(one) for one in found]}
    if len(found) > 1:
        figures["million"] = million(found)
    print(json.dumps(figures.get("million", {}), indent=1))
    keep(figures, asked.json)


def measure(folder: Path, tables: int, *, seconds: float, per_s: float, seed: int) -> Capacity:
    """Measure one size below a folder."""
    dice = random.Random(seed)
    logs = [_log(folder / "lake" / f"t{number:06d}", dice.random()) for number in range(tables)]
    print(f"  {tables:,} tables written", flush=True)
    declared = folder / "tables.yaml"
    declared.write_text("tables: []")
    environment: dict[str, Any] = {
        "LAKEWRIGHT_TABLES_FILE": str(declared),
        "LAKEWRIGHT_SWEEP_S": str(sweep_s(tables)),
        "LAKEWRIGHT_LOG_LEVEL": "error",
        "LAKEWRIGHT_CALLS_PER_S": "10000",
    }
    with house(folder / "house", **environment) as home:
        empty_bytes = _redis_bytes(home)
        with home.metered() as first:
            began_s = time.monotonic()
            declared.write_text(_declaring(logs))
            _await_all_read(home, logs)
            read_s = time.monotonic() - began_s
            _await_timers(home)
        print(f"  all read after {read_s:.0f} s, and their timers taken after {first[0].wall_s:.0f} s", flush=True)
        swept, swept_tables = _while_swept(home, tables, seconds, lambda: time.sleep(seconds))
        before = _backlog(home)
        writers = _Writers(home, logs, per_s=per_s, seconds=seconds, dice=dice)
        busy, _ = _while_swept(home, tables, seconds, writers.commit)
        after = _backlog(home)
        memory = psutil.Process(home.decider.popen.pid).memory_info().rss
        used_bytes = _redis_bytes(home)
    return Capacity(
        tables=tables,
        sweep_s=sweep_s(tables),
        first_read_s=round(read_s, 1),
        settled_s=round(first[0].wall_s, 1),
        first_cpu_ms_per_table=round(1e3 * first[0].decider_s / tables, 3),
        decider_mib=round(memory / 2**20, 1),
        redis_mib=round(used_bytes / 2**20, 1),
        redis_bytes_per_table=round((used_bytes - empty_bytes) / tables, 1),
        swept_per_s=round(swept_tables / swept.wall_s, 2),
        decider_share=round(swept.decider_s / swept.wall_s, 4),
        redis_share=round(swept.redis_s / swept.wall_s, 4),
        commits_per_s=round(writers.done / busy.wall_s, 2),
        busy_decider_share=round(busy.decider_s / busy.wall_s, 4),
        busy_redis_share=round(busy.redis_s / busy.wall_s, 4),
        lag_s=round(writers.lag_s, 2),
        jobs=int(after["jobs"] - before["jobs"]),
        busy_slots=round((after["work_s"] - before["work_s"]) / busy.wall_s, 2),
    )


def sweep_s(tables: int) -> float:
    """Return the interval of the sweep for so many tables, in seconds."""
    return max(SWEEP_S, tables * SWEEP_S_PER_TABLE)


def million(found: Sequence[Capacity]) -> dict[str, float]:
    """Extend what grows with the tables to a million of them, by the two largest sizes; and how often to sweep."""
    less, more = sorted(found, key=lambda one: one.tables)[-2:]

    def at(field: str) -> float:
        low, high = getattr(less, field), getattr(more, field)
        return float(round(high + (high - low) / (more.tables - less.tables) * (MILLION - more.tables), 2))

    grown = {field: at(field) for field in ("decider_mib", "redis_mib", "first_read_s")}
    return {**grown, "sweep_s": sweep_s(MILLION)}


def _log(path: Path, seed: float) -> WrittenLog:
    log = WrittenLog(path, str(seed), days=DAYS[:3])
    log.write(log.body([DAYS[number % 3] for number in range(FILES)]))
    return log


def _declaring(logs: Sequence[WrittenLog]) -> str:
    return json.dumps({"tables": [{"location": str(log.path), "name": log.path.name} for log in logs]})


def _await_all_read(home: House, logs: Sequence[WrittenLog]) -> None:
    states = [keys.table_state(QUEUE, table_id(log.path.as_uri())) for log in logs]
    deadline_s = time.monotonic() + READ_S
    while states:
        if not home.decider.alive or time.monotonic() > deadline_s:
            raise RuntimeError(f"{len(states)} tables are not read:\n{home.decider.log.read_text()[-2000:]}")
        pipe = home.client.pipeline(transaction=False)
        for key in states[:1_000]:
            pipe.exists(key)
        there = pipe.execute()
        states = [key for key, is_read in zip(states, there, strict=False) if not is_read] + states[1_000:]
        if not all(there):
            time.sleep(1.0)


def _await_timers(home: House) -> None:
    """Wait until no timer is due: a table whose commits are old has some at once."""
    deadline_s = time.monotonic() + READ_S
    while home.client.zcount(keys.due_tables(QUEUE), "-inf", time.time() * 1_000):
        if not home.decider.alive or time.monotonic() > deadline_s:
            raise RuntimeError(f"timers are still due:\n{home.decider.log.read_text()[-2000:]}")
        time.sleep(1.0)


def _while_swept(home: House, tables: int, seconds: float, work: Callable[[], None]) -> tuple[Cost, int]:
    """Work while a sweep is under way; return what it cost, and how often tables were read."""
    _await_sweep(home, seconds, sweep_s(tables))
    before = _refreshes(home)
    with home.metered() as cost:
        work()
    return cost[0], _refreshes(home) - before


def _await_sweep(home: House, seconds: float, interval_s: float) -> None:
    """Wait until a sweep begins; one that is under way will do where it takes much longer than a window."""
    may_be_under_way = interval_s > 5 * seconds
    before, was_idle = _refreshes(home), may_be_under_way
    deadline_s = time.monotonic() + 2 * interval_s
    while True:
        time.sleep(1.0)
        now = _refreshes(home)
        if now > before and was_idle:
            return
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"no sweep began within {2 * interval_s:.0f} s")
        before, was_idle = now, may_be_under_way or now == before


def _refreshes(home: House) -> int:
    """Return how often the decider has refreshed a table, for events and for sweeps."""
    found = httpx.get(f"{home.url}/metrics", timeout=60).raise_for_status().text.splitlines()
    return int(sum(float(line.rpartition(" ")[2]) for line in found if line.startswith(REFRESHES)))


class _Writers:
    """Commits to random tables at a steady rate, and tells of them; `lag_s` is the wait that was left at the end."""

    def __init__(
        self, home: House, logs: Sequence[WrittenLog], *, per_s: float, seconds: float, dice: random.Random
    ) -> None:
        self._home = home
        self._logs = logs
        self._per_s = per_s
        self._seconds = seconds
        self._dice = dice
        self.done = 0
        self.lag_s = 0.0

    def commit(self) -> None:
        """Commit for so many seconds."""
        home, began_s = self._home, time.monotonic()
        self.done = 0
        while (passed_s := time.monotonic() - began_s) < self._seconds:
            due = min(POST, int(passed_s * self._per_s) - self.done)
            if due <= 0:
                time.sleep(0.05)
                continue
            chosen = [self._dice.choice(self._logs) for _ in range(due)]
            for log in chosen:
                log.write(log.body())
            home.report([log.path.name for log in chosen])
            self.done += due
        status = httpx.get(f"{home.url}/v1/status", timeout=60).raise_for_status().json()
        self.lag_s = float(status["backlog"]["oldest_wait_s"])


def _backlog(home: House) -> dict[str, float]:
    found: dict[str, float] = httpx.get(f"{home.url}/v1/backlog", timeout=60).raise_for_status().json()
    return found


def _redis_bytes(home: House) -> int:
    info: Any = home.client.info("memory")
    return int(info["used_memory"])


if __name__ == "__main__":
    main()
