"""`make bench-delta`: one trace on real Spark and Delta under Lakewright and the rules it is compared with.

The trace is seeded: late data over 24 partitions, a commit a minute, a MERGE now and then. Each rule begins with an
empty table and gets the same files in the same commits; in the end all tables hold the same rows. Each rule plays the
trace three times in one JVM, which compiles in the first round what it has not run before. Twenty minutes or so.
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from tests.bench.delta.merging import SparkTable
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.playing import Played, play_rounds
from tests.bench.delta.rules import (
    COMMITS_PER_HOUR,
    TARGET_BYTES,
    AutoCompaction,
    DeltaRs,
    DeltaRule,
    Optimize,
)
from tests.bench.delta.trace import MERGE_EVERY, Trace, make_trace
from tests.bench.machine import Limit, exit_code, keep, machine
from tests.bench.spark import started_spark
from tests.support.line_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, grid_line, legend

HOURLY = "OPTIMIZE hourly"
ROUNDS = 3
"""In the first the JVM compiles, in the third it is warm."""

MAX_COST_ERROR = 0.1
"""Share by which the core-seconds of runs may differ from what was predicted, summed over those after ten of a kind."""

MAX_FILES, MAX_WA, MAX_CPU_SHARE = 140, 1.2, 0.3
"""Limits of Lakewright on the whole trace, the last one of hourly OPTIMIZE's in a warm JVM."""


def rules(spark: SparkSession) -> dict[str, DeltaRule]:
    """Return every rule by the name that it has on the command line, in the order of playing."""
    return {
        "none": DeltaRule(spark),
        "lakewright": Lakewright(spark, DeltaEngine(spark)),
        "each": Optimize(spark, "OPTIMIZE after each commit", 1),
        "hourly": Optimize(spark, HOURLY, COMMITS_PER_HOUR),
        "auto": AutoCompaction(spark),
        "deltalake": DeltaRs(spark),
    }


def run(spark: SparkSession, folder: Path, trace: Trace, wanted: list[str], rounds: int) -> list[Played]:
    """Play every wanted rule in each round, and return what was measured in the last one; raises if rows differ."""
    known = rules(spark)
    done = []
    for name in wanted:
        tables = [_table(spark, known[name], folder / f"{name}-{number}") for number in range(rounds)]
        done.append(play_rounds(spark, known[name], trace, tables))
        print(f"{done[-1].title}: {done[-1].wall_s:.0f} s\n{_row(trace, done[-1])}", flush=True)
    if len({played.rows for played in done}) != 1 or done[0].rows[0] != trace.rows:
        raise RuntimeError(f"rows differ: {trace.rows} were written; {[(one.title, one.rows) for one in done]}")
    print(f"{trace.rows:,} rows, equal under every rule")
    return done


def _table(spark: SparkSession, rule: DeltaRule, path: Path) -> SparkTable:
    return SparkTable(spark, path, rule.configuration())


def table(trace: Trace, done: list[Played]) -> str:
    """Return the figures as a table in Markdown."""
    head = (
        "rule", "rewritten", "WA", "rewrites", "files mean / max / end", "CPU s by round, median", "JIT s", "Python s",
        "point ms", "range ms", "full ms", "MERGEs aborted",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(_row(trace, one) for one in done)])


def _row(trace: Trace, one: Played) -> str:
    cells = (
        one.title,
        f"{one.bytes_rewritten / 1e6:.1f} MB",
        f"{one.bytes_rewritten / trace.bytes:.2f}",
        str(one.rewrites),
        f"{sum(one.curve) / len(one.curve):.0f} / {max(one.curve)} / {one.files_end}",
        f"{' / '.join(f'{cpu_s:.0f}' for cpu_s in one.cpu_s_by_round)}, {statistics.median(one.cpu_s_by_round):.0f}",
        " / ".join(f"{jit_s:.1f}" for jit_s in one.jit_s_by_round),
        " / ".join(f"{python_s:.1f}" for python_s in one.python_s_by_round),
        *(f"{one.queries_ms[name]:.0f}" for name in ("point", "range", "full")),
        f"{one.merges_aborted} of {one.merges}",
    )
    return f"| {' | '.join(cells)} |"


def limits(trace: Trace, done: list[Played]) -> list[Limit]:
    """Return what Lakewright has to show: beside others, and beside an hourly OPTIMIZE where both play three rounds."""
    played = {one.title: one for one in done}
    ours, hourly = played.get(Lakewright.title), played.get(HOURLY)
    if ours is None:
        return []
    found = [
        Limit("live files at any time", max(ours.curve), MAX_FILES),
        Limit("write amplification", ours.bytes_rewritten / trace.bytes, MAX_WA),
        Limit("MERGEs aborted", ours.merges_aborted, 0),
        *cost_limits(ours),
    ]
    if hourly is not None and min(len(ours.cpu_s_by_round), len(hourly.cpu_s_by_round)) >= ROUNDS:
        first, last = (ours.cpu_s_by_round[at] / hourly.cpu_s_by_round[at] for at in (0, -1))
        found += [
            Limit("CPU of the first round, of hourly OPTIMIZE's", first, 1.0),
            Limit("CPU of the last round, of hourly OPTIMIZE's", last, MAX_CPU_SHARE),
        ]
    return found


def cost_limits(played: Played) -> list[Limit]:
    """Return the limit of predicted costs, none where nothing was predicted or the JVM still compiled."""
    is_warm = len(played.cpu_s_by_round) > 1 and played.cost_error is not None
    return [Limit("error of the mean predicted cost", played.cost_error or 0.0, MAX_COST_ERROR)] if is_warm else []


def picture(done: list[Played]) -> str:
    """Return the curves of live files as SVG."""
    curves = [(one.title, one.curve) for one in done]
    return draw("Live files, by hours of the trace (logarithmic)", curves, per_hour=COMMITS_PER_HOUR)


def measure(
    bench: str,
    names: Sequence[str],
    play: Callable[[Path, Any], tuple[Trace, list[Played], dict[str, Any]]],
    rounds: int,
    limits: Callable[[Trace, list[Played]], list[Limit]] = lambda _trace, _done: [],
) -> int:
    """Read the arguments, play, print the table, and keep figures and picture; returns 1 if a limit is not met."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.bench.{bench}")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--picture", type=Path, help="write the curves to this SVG file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=rounds, help="how often each rule plays the trace, in one JVM")
    parser.add_argument("--merge-every", type=int, default=MERGE_EVERY, help="commits from one MERGE to the next")
    parser.add_argument("--rules", nargs="*", default=names, choices=names)
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"lakewright-bench-{bench}-") as made:
        trace, done, more = play(Path(made), asked)
    print(table(trace, done))
    checked = limits(trace, done)
    for limit in checked:
        print(limit)
    figures: dict[str, Any] = {**machine(), "seed": asked.seed, "commits": asked.commits, "bytes_added": trace.bytes}
    figures |= {"seconds": round(time.monotonic() - began), **more}
    figures["rules"] = {one.title: {**asdict(one), "rows": [str(value) for value in one.rows]} for one in done}
    print(f"{figures['seconds']} s")
    keep(figures, asked.json)
    if asked.picture:
        asked.picture.write_text(picture(done))
    return exit_code(checked)


def make(folder: Path, asked: Any, *, for_iceberg: bool = False) -> Trace:
    """Return the trace that is played."""
    given = {"commits": asked.commits, "seed": asked.seed, "merge_every": asked.merge_every}
    trace = make_trace(folder / "trace", **given, for_iceberg=for_iceberg)
    print(f"{trace.files} files, {trace.bytes / 1e6:.1f} MB, target {TARGET_BYTES} bytes", flush=True)
    return trace


def _played(folder: Path, asked: Any) -> tuple[Trace, list[Played], dict[str, Any]]:
    trace = make(folder, asked)
    with started_spark(folder / "spark") as spark:
        return trace, run(spark, folder, trace, asked.rules, asked.rounds), {}


COLOURS = ("#8a8f98", "#d9480f", "#1864ab", "#4dabf7", "#2b8a3e", "#e6a100", "#7048e8")
"""Grey for the table left alone, the strong one for Lakewright, then the others in their order."""

DASHED_FROM = 5
"""The last curves are dashed: rules that keep the same hours lie on one another, and both shall be seen."""


def draw(title: str, curves: Sequence[tuple[str, Sequence[int]]], *, per_hour: int) -> str:
    """Return SVG text; each curve is a label and the files after each commit, `per_hour` of them an hour."""
    commits = max(len(curve) for _, curve in curves)
    top = max(10, *(max(curve) for _, curve in curves))
    # Logarithmic: rules differ by a factor of fifty, and the lowest are the interesting ones.
    decades = math.log10(top)

    def x(commit: float) -> float:
        return LEFT + commit / commits * (WIDTH - LEFT - RIGHT)

    def y(files: float) -> float:
        return HEIGHT - BOTTOM - math.log10(max(1.0, files)) / decades * (HEIGHT - TOP - BOTTOM)

    ticks = (n * 10**power for power in range(5) for n in (1, 3))
    parts = [grid_line(y(files), f"{files:,}") for files in ticks if files <= top]
    for hour in range(commits // per_hour + 1):
        at = x(hour * per_hour)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{hour} h</text>')
    for index, (label, curve) in enumerate(curves):
        width = 3 if label == "Lakewright" else 1.5
        dashes = ' stroke-dasharray="7 6"' if index >= DASHED_FROM else ""
        style = f'stroke="{COLOURS[index % len(COLOURS)]}" stroke-width="{width}"{dashes}'
        path = " ".join(f"{x(commit):.1f},{y(files):.1f}" for commit, files in enumerate(curve, 1))
        parts += [f'<polyline points="{path}" fill="none" {style}/>', legend(TOP + 8 + index * 22, label, style)]
    return frame(title, parts)


if __name__ == "__main__":
    names = ("none", "lakewright", "each", "hourly", "auto", "deltalake")
    sys.exit(measure("delta", names, _played, ROUNDS, limits))
