"""`make bench-autocomp`: the trickle of AutoComp's evaluation on small TPC-H tables; real Spark and Delta.

Source: AutoComp: Automated Data Compaction for Log-Structured Tables in Data Lakes, SIGMOD 2025: tables are written in
small commits and queried in between, without compaction, with a periodic one, and with a decided one. Each strategy
gets the same files in the same commits, and its queries return the same rows. A third of the rounds is played before,
on other tables, so that the JVM has compiled what is measured.

Why files are left at the end of the trickle: the same commits replayed by the code that decides, without Spark.

The tables are written within minutes, so no table rests, and idle compaction, which merges what levels leave, never
runs. Here they rest for a day afterward as well.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from decider.whatif.simulator import SimulationResult, replay_lakewright
from decider.whatif.trace import CommitTrace
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionKey
from tests.bench.autocomp.trickle import QUERIES, TrickledTable, make_trickle
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.playing import Meter
from tests.bench.delta.rules import TARGET_BYTES, DeltaRule, Optimize
from tests.bench.delta.table import PlayedTable
from tests.bench.machine import machine
from tests.bench.spark import started_spark

REPEATS = 3

SHUFFLE: dict[str, Any] = {"spark.sql.shuffle.partitions": "4"}
"""As many as suit two cores: with Spark's 200, a query of such small tables takes seconds whatever files there are."""


@dataclass(slots=True)
class Played:
    """What was measured under one strategy; `curve`: live files after each round, `queries_s`: by phase."""

    title: str
    compaction_cpu_s: float = 0.0
    bytes_rewritten: int = 0
    rewrites: int = 0
    curve: list[int] = field(default_factory=list)
    queries_s: list[dict[str, float]] = field(default_factory=list)
    rows: tuple[Any, ...] = ()


def strategies(spark: SparkSession, period: int) -> dict[str, Callable[[], DeltaRule]]:
    """Return how to make a strategy for one table, by the name that it has on the command line.

    period: rounds between two runs of the periodic one.
    """
    engine = DeltaEngine(spark)
    return {
        "none": lambda: DeltaRule(spark),
        "periodic": lambda: Optimize(spark, f"OPTIMIZE every {period} rounds", period),
        "lakewright": lambda: Lakewright(spark, engine),
    }


def play(
    spark: SparkSession,
    make: Callable[[], DeltaRule],
    data: Sequence[TrickledTable],
    folders: tuple[Path, Path],
    phase: int,
) -> Played:
    """Play all rounds on new tables in the second folder, with queries after every `phase` rounds."""
    source, folder = folders
    rules = [make() for _ in data]
    tables = [PlayedTable(folder / one.name, {}, one.columns, one.partitioned_by) for one in data]
    played, meter = Played(rules[0].title), Meter(spark)
    names = {one.name: table.sql_name for one, table in zip(data, tables, strict=True)}
    for rule, table in zip(rules, tables, strict=True):
        rule.begin(table)
    try:
        for number in range(len(data[0].rounds)):
            for rule, table, one in zip(rules, tables, data, strict=True):
                table.bring(source / one.name, one.rounds[number])
                table.append(one.rounds[number])
                rule.look()
                played.compaction_cpu_s += meter.cpu_s(lambda rule=rule, at=number: rule.after(at + 1))  # type: ignore[misc]
                table.follow()
            played.curve.append(sum(table.files for table in tables))
            if (number + 1) % phase == 0:
                played.queries_s.append(_queries(spark, names))
    finally:
        for rule in rules:
            rule.end()
    played.bytes_rewritten = sum(table.bytes_rewritten for table in tables)
    played.rewrites = sum(table.rewrites for table in tables)
    played.rows = tuple(str(spark.sql(text.format(**names)).collect()) for text in QUERIES.values())
    print(f"{played.title}: {played.curve[-1]} files after {len(played.curve)} rounds", flush=True)
    return played


def _queries(spark: SparkSession, names: dict[str, str]) -> dict[str, float]:
    """Return the median seconds of each query."""
    medians = {}
    for name, text in QUERIES.items():
        took = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            spark.sql(text.format(**names)).collect()
            took.append(time.perf_counter() - began)
        medians[name] = statistics.median(took)
    return medians


def table(done: Sequence[Played], added: int) -> str:
    """Return the figures as a table in Markdown."""
    phases = len(done[0].queries_s)
    head = (
        *("strategy", "files mean / max / end", "rewritten", "WA", "rewrites", "compaction CPU s"),
        *(f"queries s, phase {number}" for number in range(1, phases + 1)),
    )
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for one in done:
        fields = (
            one.title,
            f"{statistics.fmean(one.curve):.0f} / {max(one.curve)} / {one.curve[-1]}",
            *(f"{one.bytes_rewritten / 1e6:.1f} MB", f"{one.bytes_rewritten / added:.2f}", str(one.rewrites)),
            f"{one.compaction_cpu_s:.1f}",
            *(f"{sum(phase.values()):.2f}" for phase in one.queries_s),
        )
        lines.append(f"| {' | '.join(fields)} |")
    return "\n".join(lines)


def main() -> None:
    """Play, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.autocomp")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--scale", type=float, default=0.02, help="TPC-H's scale factor")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--phases", type=int, default=3, help="how often the tables are queried")
    parser.add_argument("--period", type=int, default=6, help="rounds between two runs of the periodic strategy")
    parser.add_argument("--strategies", nargs="*", default=["none", "periodic", "lakewright"])
    parser.add_argument("--only-simulated", action="store_true", help="replay Lakewright's decisions alone, no Spark")
    asked = parser.parse_args()
    print(f"{machine()}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-autocomp-") as made:
        folder = Path(made)
        data = make_trickle(folder / "data", scale=asked.scale, rounds=asked.rounds)
        added = sum(one.bytes for one in data)
        print(f"{sum(one.files for one in data)} files, {added / 1e6:.1f} MB, target {TARGET_BYTES} bytes", flush=True)
        print(f"{simulated_table(data)}\n", flush=True)
        if asked.only_simulated:
            return
        short = [_first(one, asked.rounds // 3) for one in data]
        with started_spark(folder / "spark", **SHUFFLE) as spark:
            known, done = strategies(spark, asked.period), []
            for name in asked.strategies:
                play(spark, known[name], short, (folder / "data", folder / f"{name}-before"), asked.rounds // 3)
                phase = asked.rounds // asked.phases
                done.append(play(spark, known[name], data, (folder / "data", folder / name), phase))
                print(f"{done[-1].title}: {time.monotonic() - began:.0f} s", flush=True)
    if len({one.rows for one in done}) != 1:
        raise RuntimeError(f"the queries' rows differ between {[one.title for one in done]}")
    print(table(done, added))
    seconds = round(time.monotonic() - began)
    print(f"{seconds} s; every query returned the same rows under every strategy")
    if asked.json:
        figures: dict[str, Any] = {
            **machine(),
            "scale": asked.scale,
            "rounds": asked.rounds,
            "period": asked.period,
            "bytes_added": added,
        }
        figures |= {"seconds": seconds, "strategies": {one.title: asdict(one) for one in done}}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


def _first(one: TrickledTable, rounds: int) -> TrickledTable:
    return TrickledTable(one.name, one.columns, one.partitioned_by, one.rounds[:rounds])


MINUTE_MS, DAY_MS = 60_000, 86_400_000

REPLAYS: Mapping[str, Mapping[str, Any]] = {
    "two commits late, as measured": {"lag_commits": 2},
    "at once": {},
    "at once, and a day of rest": {"tail_ms": DAY_MS},
    "at once, compact-every-commits 12": {"compact_every_commits": 12},
    "at once, min-input-files 4, fan-in 4": {"min_input_files": 4, "fan_in": 4, "fits_levels": False},
}
"""How each is replayed: a lag, a time at rest, or values of the policy."""


def commits(one: TrickledTable) -> CommitTrace:
    """Return a table's rounds as commits, one a minute."""
    return CommitTrace(
        (),
        tuple(
            Commit(number, number * MINUTE_MS, "WRITE", tuple(map(_file, adds)))
            for number, adds in enumerate(one.rounds)
        ),
    )


def replayed(data: Sequence[TrickledTable], how: Mapping[str, Any]) -> list[SimulationResult]:
    """Replay all tables in one of the ways."""
    terms = {name: value for name, value in how.items() if name in ("lag_commits", "tail_ms")}
    values = {name: value for name, value in how.items() if name not in terms}
    policy = Policy(target_bytes=TARGET_BYTES, **values)
    return [replay_lakewright(commits(one), policy, **terms) for one in data]


def simulated_table(data: Sequence[TrickledTable]) -> str:
    """Return what is left at the end, and what was rewritten for it, as a table in Markdown."""
    lines = ["| replay | files at the end | rewritten | jobs |", "|---|---|---|---|"]
    for title, how in REPLAYS.items():
        done = replayed(data, how)
        left, jobs = sum(one.files_at_end for one in done), sum(one.jobs for one in done)
        rewritten = sum(one.bytes_rewritten for one in done)
        lines.append(f"| {title} | {left} | {rewritten / 1e6:.1f} MB | {jobs} |")
    return "\n".join(lines)


def _file(add: Mapping[str, Any]) -> DataFile:
    return DataFile(add["path"], add["size"], PartitionKey(json.dumps(add["partitionValues"])))


if __name__ == "__main__":
    main()
