"""`make bench-delta`: one trace on real Spark and Delta under Lakewright and the rules it is compared with.

The trace is seeded: late data over 24 partitions, a commit a minute, a MERGE now and then. Each rule begins with an
empty table and gets the same files in the same commits; in the end all tables hold the same rows. Each rule plays the
trace three times in one JVM, which compiles in the first round what it has not run before. Twenty minutes or so.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from tests.bench.delta.merging import SparkTable
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.picture import draw
from tests.bench.delta.playing import Played, play_rounds
from tests.bench.delta.rules import (
    COMMITS_PER_HOUR,
    TARGET_BYTES,
    AutoCompaction,
    DeltaRs,
    LeaveAlone,
    Optimize,
    Rule,
)
from tests.bench.delta.trace import Trace, make_trace
from tests.bench.machine import machine
from tests.bench.spark import started_spark


def rules(spark: SparkSession) -> dict[str, Rule]:
    """Return every rule by the name that it has on the command line, in the order of playing."""
    return {
        "none": LeaveAlone(spark),
        "lakewright": Lakewright(spark, DeltaEngine(spark)),
        "each": Optimize(spark, "OPTIMIZE after each commit", 1),
        "hourly": Optimize(spark, "OPTIMIZE hourly", COMMITS_PER_HOUR),
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


def _table(spark: SparkSession, rule: Rule, path: Path) -> SparkTable:
    return SparkTable(spark, path, rule.configuration())


def table(trace: Trace, done: list[Played]) -> str:
    """Return the figures as a table in Markdown."""
    head = (
        "rule", "rewritten", "WA", "rewrites", "files mean / max / end", "CPU s by round, median",
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
        *(f"{one.queries_ms[name]:.0f}" for name in ("point", "range", "full")),
        f"{one.merges_aborted} of {one.merges}",
    )
    return f"| {' | '.join(cells)} |"


def picture(done: list[Played]) -> str:
    """Return the curves of live files as SVG."""
    curves = [(one.title, one.curve) for one in done]
    return draw("Live files, by hours of the trace (logarithmic)", curves, per_hour=COMMITS_PER_HOUR)


def main() -> None:
    """Play, print the table, and keep figures and picture."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.delta")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--picture", type=Path, help="write the curves to this SVG file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3, help="how often each rule plays the trace, in one JVM")
    parser.add_argument("--rules", nargs="*", default=["none", "lakewright", "each", "hourly", "auto", "deltalake"])
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-delta-") as made:
        folder = Path(made)
        trace = make_trace(folder / "trace", commits=asked.commits, seed=asked.seed)
        print(f"{trace.files} files, {trace.bytes / 1e6:.1f} MB, target {TARGET_BYTES} bytes", flush=True)
        with started_spark(folder / "spark") as spark:
            done = run(spark, folder, trace, asked.rules, asked.rounds)
    print(table(trace, done))
    figures: dict[str, Any] = {**machine(), "seed": asked.seed, "commits": asked.commits, "bytes_added": trace.bytes}
    figures["seconds"] = round(time.monotonic() - began)
    figures["rules"] = {one.title: {**asdict(one), "rows": [str(value) for value in one.rows]} for one in done}
    print(f"{figures['seconds']} s")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    if asked.picture:
        asked.picture.write_text(picture(done))


if __name__ == "__main__":
    main()
