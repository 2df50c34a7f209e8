"""`make bench-clustering`: MERGEs into clustered tables on real Spark, Delta and Iceberg, side by side under rules.

Seeded: a base of 32 targets with two random keys, then MERGEs of a quarter of a target each, a tenth of it updates by
deletion vectors, or merged on read. In the end all tables hold the same rows. Some minutes for each format; with
`ARGS="--merges 200"` half an hour for each.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from tests.bench.cells.picture import draw
from tests.bench.clustering.playing import AutoCompaction, Cells, Played, Rule, Scheduled, Stream, play
from tests.bench.clustering.tables import OnDelta, OnIceberg
from tests.bench.cpu_parts import PARTS
from tests.bench.machine import Limit, exit_code, keep, machine
from tests.bench.spark import started_spark

RULES: Mapping[str, Mapping[str, Callable[[SparkSession, Path, str], Rule]]] = {
    "delta": {
        "none": lambda spark, folder, name: Rule(OnDelta(spark, folder, name)),
        "optimize": lambda spark, folder, name: Scheduled(OnDelta(spark, folder, name)),
        "auto": lambda spark, folder, name: AutoCompaction(OnDelta(spark, folder, name, is_auto=True)),
        "cells": lambda spark, folder, name: Cells(OnDelta(spark, folder, name)),
    },
    "iceberg": {
        "none": lambda spark, folder, name: Rule(OnIceberg(spark, folder, name)),
        "sort": lambda spark, folder, name: Scheduled(OnIceberg(spark, folder, name, is_curve=False)),
        "zorder": lambda spark, folder, name: Scheduled(OnIceberg(spark, folder, name)),
        "cells": lambda spark, folder, name: Cells(OnIceberg(spark, folder, name)),
    },
}
COMMANDS = {"delta": ("optimize",), "iceberg": ("sort", "zorder")}
"""Rules that cells are held against."""

COLUMNS = (
    "rule", "runs", "MB rewritten", "dearest / median", "clustering CPU s", "MERGE CPU s", "wall s", "files",
    "ranges read", "files opened", "points read", "taken over MB",
)  # fmt: skip


def limits(of: str, ours: Played | None, commands: Iterable[Played]) -> list[Limit]:
    """Return what cells have to show beside schedules of a format's commands: less than the cheapest of them takes."""
    ran = [one for one in commands if one.runs]
    if ours is None or not ran:
        return []
    rewritten, cpu = min(one.rewritten_bytes for one in ran), min(one.clustering_cpu_s for one in ran)
    return [
        Limit(f"{of}: dearest run over the median", ours.dearest_over_median, 2.0),
        Limit(f"{of}: bytes rewritten, of the command's", ours.rewritten_bytes / rewritten, 1.0),
        Limit(f"{of}: CPU of clustering, of the command's", ours.clustering_cpu_s / cpu, 1.0),
        Limit(f"{of}: bytes that ranges read, over OPTIMIZE's layout", ours.reads.bytes, 1.1),
    ]


def row(one: Played) -> str:
    """Return the figures of one rule as a row in Markdown."""
    cells = (
        one.title,
        str(len(one.runs)),
        f"{one.rewritten_bytes / 1e6:.1f}",
        f"{one.dearest_over_median:.2f}",
        f"{one.clustering_cpu_s:.1f}",
        f"{one.merging_cpu_s:.1f}",
        f"{one.wall_s:.0f}",
        str(one.files),
        f"{one.reads.bytes:.2f}",
        f"{one.reads.files:.1f}",
        f"{one.reads.point_bytes:.2f}",
        f"{one.taken_over_bytes / 1e6:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Play all rules; exit code 1 if a figure is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--merges", type=int, default=40)
    parser.add_argument("--formats", nargs="*", default=[*RULES], choices=[*RULES])
    names = sorted({name for rules in RULES.values() for name in rules})
    parser.add_argument("--rules", nargs="*", choices=names, help="as far as a format has them; all without")
    parser.add_argument("--svg", type=Path, help="draw the cost of each run, and what ranges read, of the last format")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(machine())
    began_s, figures, checked = time.monotonic(), dict[str, object](), list[Limit]()
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-clustering-") as made:
        stream = Stream(Path(made), asked.merges)
        files = stream.write()
        with started_spark(Path(made) / "spark", iceberg="iceberg" in asked.formats) as spark:
            for of in asked.formats:
                rules = {name: RULES[of][name] for name in asked.rules or RULES[of] if name in RULES[of]}
                made_rules = {name: rule(spark, Path(made), f"{of}_{name}") for name, rule in rules.items()}
                played = play_format(of, made_rules, stream, files)
                checked += limits(of, played.get("cells"), [played[one] for one in COMMANDS[of] if one in played])
                figures[of] = {name: one.figures() for name, one in played.items()}
        if asked.svg:
            titled = {one.title: one for one in played.values()}
            asked.svg.write_text(draw(f"{asked.merges} MERGEs of a quarter of a target", titled, asked.merges))
    print(*checked, sep="\n")
    print(f"{time.monotonic() - began_s:.0f} s")
    kept = {**machine(), "merges": asked.merges, "rules": figures}
    keep({**kept, "limits": [{**asdict(one), "is_met": one.is_met} for one in checked]}, asked.json)
    return exit_code(checked)


def play_format(of: str, rules: Mapping[str, Rule], stream: Stream, files: list[Path]) -> dict[str, Played]:
    """Play rules on tables of a format; raises RuntimeError if their rows differ."""
    played = dict[str, Played]()
    print(f"| {of}: {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name, rule in rules.items():
        played[name] = play(rule, stream, files)
        print(row(played[name]), flush=True)
    print(f"| CPU s of clustering | {' | '.join(PARTS)} |\n|{'---|' * (len(PARTS) + 1)}")
    for one in played.values():
        print(f"| {one.title} | {' | '.join(f'{one.clustering_cpu[part]:.1f}' for part in PARTS)} |")
    if len({one.rows for one in played.values()}) != 1:
        raise RuntimeError(f"rows differ: {[(one.title, one.rows) for one in played.values()]}")
    return played


if __name__ == "__main__":
    sys.exit(main())
