"""`make bench-clustering`: MERGEs into clustered tables on real Spark and Delta, side by side under several rules.

Seeded: a base of 32 targets with two random keys, then MERGEs of a quarter of a target each, a tenth of it updates by
deletion vectors. In the end all tables hold the same rows. Some minutes; with `ARGS="--merges 200"` half an hour.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from actor.formats.delta.engine import DeltaEngine
from tests.bench.cells.picture import draw
from tests.bench.clustering.playing import AutoCompaction, Cells, Optimize, Played, Rule, Stream, play
from tests.bench.cpu_parts import PARTS
from tests.bench.machine import Limit, exit_code, keep, machine
from tests.bench.spark import started_spark

COLUMNS = (
    "rule", "runs", "MB rewritten", "dearest / median", "clustering CPU s", "MERGE CPU s", "wall s", "files",
    "ranges read", "files opened", "points read", "taken over MB",
)  # fmt: skip


def limits(found: Mapping[str, Played]) -> list[Limit]:
    """Return what cells have to show beside a schedule of OPTIMIZE."""
    ours, theirs = found.get(Cells.title), found.get(Optimize.title)
    if ours is None or theirs is None or not theirs.runs:
        return []
    return [
        Limit("dearest run over the median", ours.dearest_over_median, 2.0),
        Limit("bytes rewritten, of OPTIMIZE's", ours.rewritten_bytes / theirs.rewritten_bytes, 1.0),
        Limit("CPU of clustering, of OPTIMIZE's", ours.clustering_cpu_s / theirs.clustering_cpu_s, 1.0),
        Limit("bytes that ranges read, over OPTIMIZE's layout", ours.reads.bytes, 1.1),
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
    parser.add_argument("--rules", nargs="*", default=["none", "optimize", "auto", "cells"])
    parser.add_argument("--svg", type=Path, help="draw the cost of each run, and what ranges read")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(machine())
    began_s, played = time.monotonic(), dict[str, Played]()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-clustering-") as made:
        folder = Path(made)
        stream = Stream(folder, asked.merges)
        files = stream.write()
        with started_spark(folder / "spark") as spark:
            kinds = {"none": Rule, "optimize": Optimize, "auto": AutoCompaction}
            for name in asked.rules:
                path = folder / name
                rule = Cells(spark, path, DeltaEngine(spark)) if name == "cells" else kinds[name](spark, path)
                played[rule.title] = play(rule, stream, files)
                print(row(played[rule.title]), flush=True)
    print(f"| CPU s of clustering | {' | '.join(PARTS)} |\n|{'---|' * (len(PARTS) + 1)}")
    for one in played.values():
        print(f"| {one.title} | {' | '.join(f'{one.clustering_cpu[part]:.1f}' for part in PARTS)} |")
    if len({one.rows for one in played.values()}) != 1:
        raise RuntimeError(f"rows differ: {[(one.title, one.rows) for one in played.values()]}")
    checked = limits(played)
    for limit in checked:
        print(limit)
    print(f"{time.monotonic() - began_s:.0f} s")
    if asked.svg:
        asked.svg.write_text(draw(f"{asked.merges} MERGEs of a quarter of a target", played, asked.merges))
    figures = {**machine(), "merges": asked.merges, "rules": {name: one.figures() for name, one in played.items()}}
    keep({**figures, "limits": [{**asdict(one), "is_met": one.is_met} for one in checked]}, asked.json)
    return exit_code(checked)


if __name__ == "__main__":
    sys.exit(main())
