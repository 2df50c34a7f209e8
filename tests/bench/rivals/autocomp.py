"""autocomp: the trickle of AutoComp's evaluation on small TPC-H tables, on Spark and Delta, and replayed for longer.

Source: AutoComp: Automated Data Compaction for Log-Structured Tables in Data Lakes, SIGMOD 2025: tables are written in
small commits and queried in between, without compaction, with a periodic one, and with a decided one. Each strategy
gets the same files in the same commits, and its queries return the same rows. A third of the rounds is played before,
on other tables, so that the JVM has compiled what is measured.

Spark's tables are written within minutes, so that no table rests. How many files are left at equal freshness, once each
rule has done what it decided, a replay of the same commits by the code that decides says: two commits late, at once,
after a day of rest, and over ten times the rounds.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from decider.whatif.baselines import PEERS
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_peer
from decider.whatif.trace import CommitTrace
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionKey
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.playing import Meter
from tests.bench.delta.rules import TARGET_BYTES, DeltaRule, Optimize
from tests.bench.delta.table import PlayedTable
from tests.bench.machine import Limit
from tests.bench.rivals.page import Result, markdown
from tests.bench.rivals.trickle import QUERIES, TrickledTable, make_trickle
from tests.bench.spark import started_spark
from tests.support import line_chart

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


def play_strategy(
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
    if not done:
        return ""
    head = (
        *("strategy", "files mean / max / end", "rewritten", "WA", "rewrites", "compaction CPU s"),
        *(f"queries s, phase {number}" for number in range(1, len(done[0].queries_s) + 1)),
    )
    rows = [
        (
            one.title,
            f"{statistics.fmean(one.curve):.0f} / {max(one.curve)} / {one.curve[-1]}",
            *(f"{one.bytes_rewritten / 1e6:.1f} MB", f"{one.bytes_rewritten / added:.2f}", one.rewrites),
            f"{one.compaction_cpu_s:.1f}",
            *(f"{sum(phase.values()):.2f}" for phase in one.queries_s),
        )
        for one in done
    ]
    return f"{markdown(head, rows)}\n\n"


MINUTE_MS, DAY_MS = 60_000, 86_400_000
OPTIMIZE, RESTED = "OPTIMIZE", "Lakewright, and a day of rest"

REPLAYS: Mapping[str, Mapping[str, Any]] = {
    "Lakewright, two commits late, as measured": {"lag_commits": 2},
    "Lakewright": {},
    RESTED: {"tail_ms": DAY_MS},
    "Lakewright, `compact-every-commits` 12": {"compact_every_commits": 12},
    "Lakewright, `min-input-files` 4, `fan-in` 4": {"min_input_files": 4, "fan_in": 4, "fits_levels": False},
}
"""How each is replayed, at once unless a lag is named: a lag, a time at rest, or values of the policy."""


def commits(one: TrickledTable, times: int = 1) -> CommitTrace:
    """Return a table's rounds, so many times over, as commits: one a minute, the first a minute after its creation."""
    written = (
        Commit(number, number * MINUTE_MS, "WRITE", tuple(_file(number, add) for add in adds))
        for number, adds in enumerate(times * one.rounds, 1)
    )
    return CommitTrace((), (Commit(0, 0, "CREATE TABLE", ()), *written))


def replayed(traces: Sequence[CommitTrace], how: Mapping[str, Any]) -> list[SimulationResult]:
    """Replay all tables in one of the ways."""
    terms = {name: value for name, value in how.items() if name in ("lag_commits", "tail_ms")}
    values = {name: value for name, value in how.items() if name not in terms}
    policy = Policy(target_bytes=TARGET_BYTES, **values)
    return [replay_lakewright(one, policy, **terms) for one in traces]


def optimized(traces: Sequence[CommitTrace], period: int) -> list[SimulationResult]:
    """Replay all tables under OPTIMIZE after every so many rounds, at once."""
    rule = next(one for one in PEERS if one.name == "delta_optimize_hourly")
    policy, rule = Policy(target_bytes=TARGET_BYTES), replace(rule, every_ms=period * MINUTE_MS)
    return [replay_peer(one, policy, rule) for one in traces]


@dataclass(frozen=True, slots=True)
class Replay:
    """What one way of replaying leaves of so many rounds, over all tables."""

    title: str
    rounds: int
    files_mean: float
    files_end: int
    bytes_rewritten: int
    jobs: int


def replays(data: Sequence[TrickledTable], asked: Any) -> Iterator[Replay]:
    """Replay the rounds, once and so many times over, in all ways; Spark has no part in it."""
    for times in dict.fromkeys((1, asked.times)):
        traces = [commits(one, times) for one in data]
        ways = {f"{OPTIMIZE} every {asked.period} rounds": optimized(traces, asked.period)}
        for title, done in (ways | {title: replayed(traces, how) for title, how in REPLAYS.items()}).items():
            yield Replay(
                title,
                times * asked.rounds,
                sum(one.file_ms / one.span_ms for one in done),
                sum(one.files_at_end for one in done),
                sum(one.bytes_rewritten for one in done),
                sum(one.jobs for one in done),
            )


def replay_table(done: Sequence[Replay]) -> str:
    """Return what each way leaves of each number of rounds, as a table in Markdown."""
    rounds = list(dict.fromkeys(one.rounds for one in done))
    head = ["replayed", *(f"{text}, {count} rounds" for count in rounds for text in ("files mean / end", "rewritten"))]
    by_title: dict[str, list[str]] = {}
    for one in done:
        figures = (f"{one.files_mean:.0f} / {one.files_end}", f"{one.bytes_rewritten / 1e6:.1f} MB")
        by_title.setdefault(one.title, []).extend(figures)
    return markdown(head, [(title, *figures) for title, figures in by_title.items()])


def goals(done: Sequence[Played], replayed: Sequence[Replay]) -> list[Limit]:
    """Return what Lakewright has to show beside OPTIMIZE: files at rest, and CPU where both were played."""
    limits = [
        Limit(
            f"files after a day of rest by those after OPTIMIZE, {ours.rounds} rounds",
            ours.files_end / theirs.files_end,
            1.0,
        )
        for ours in replayed
        for theirs in replayed
        if ours.rounds == theirs.rounds and ours.title == RESTED and theirs.title.startswith(OPTIMIZE)
    ]
    cpu_s = {one.title.partition(" ")[0]: one.compaction_cpu_s for one in done}
    if {OPTIMIZE, "Lakewright"} <= {*cpu_s}:
        limits.append(Limit("compaction CPU by that of OPTIMIZE", cpu_s["Lakewright"] / cpu_s[OPTIMIZE], 1.0))
    return limits


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked for."""
    parser.add_argument("--scale", type=float, default=0.02, help="TPC-H's scale factor")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--times", type=int, default=10, help="times that the rounds are replayed, beside once")
    parser.add_argument("--phases", type=int, default=3, help="how often the tables are queried")
    parser.add_argument("--period", type=int, default=6, help="rounds between two runs of the periodic strategy")
    parser.add_argument("--strategies", nargs="*", default=["none", "periodic", "lakewright"])
    parser.add_argument("--only-replayed", action="store_true", help="no Spark")


def play(folder: Path, asked: Any) -> Result:
    """Replay, and play all strategies; raises RuntimeError if their queries' rows differ."""
    data = make_trickle(folder / "data", scale=asked.scale, rounds=asked.rounds)
    again, added, done = list(replays(data, asked)), sum(one.bytes for one in data), list[Played]()
    print(f"{sum(one.files for one in data)} files, {added / 1e6:.1f} MB\n{replay_table(again)}", flush=True)
    if not asked.only_replayed:
        done = _measured(folder, asked, data)
    curves = [
        line_chart.Line(one.title, [(60.0 * number, files) for number, files in enumerate(one.curve, 1)])
        for one in done
    ]
    versions = {name: metadata.version(name) for name in ("pyspark", "delta-spark", "lakewright")}
    return Result(
        table(done, added) + replay_table(again),
        line_chart.draw("Files over time, a round a minute", curves, unit="files") if done else "",
        f"Scale {asked.scale}, {asked.rounds} rounds, target {TARGET_BYTES:,} bytes",
        versions,
        goals(done, again),
        {"scale": asked.scale, "rounds": asked.rounds, "period": asked.period, "bytes_added": added,
         "strategies": {one.title: asdict(one) for one in done},
         "replays": [asdict(one) for one in again]},
    )  # fmt: skip


def _measured(folder: Path, asked: Any, data: Sequence[TrickledTable]) -> list[Played]:
    short = [_first(one, asked.rounds // 3) for one in data]
    with started_spark(folder / "spark", **SHUFFLE) as spark:
        known, done = strategies(spark, asked.period), list[Played]()
        for name in asked.strategies:
            play_strategy(spark, known[name], short, (folder / "data", folder / f"{name}-before"), asked.rounds // 3)
            phase = asked.rounds // asked.phases
            done.append(play_strategy(spark, known[name], data, (folder / "data", folder / name), phase))
    if len({one.rows for one in done}) != 1:
        raise RuntimeError(f"the queries' rows differ between {[one.title for one in done]}")
    return done


def _first(one: TrickledTable, rounds: int) -> TrickledTable:
    return TrickledTable(one.name, one.columns, one.partitioned_by, one.rounds[:rounds])


def _file(number: int, add: Mapping[str, Any]) -> DataFile:
    return DataFile(f"{number}/{add['path']}", add["size"], PartitionKey(json.dumps(add["partitionValues"])))
