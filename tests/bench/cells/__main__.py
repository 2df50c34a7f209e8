"""`make bench-cells`: what it costs to keep rows in an order of several columns, by rule; simulated, no Spark.

Seeded streams of commits of a sixteenth of T, a tenth of their rows updates, under the planner of cells, which is the
product's code, under OPTIMIZE at intervals, sort levels on a curve, and a rule that lays out again where most boxes
overlap. What ranges read is compared with OPTIMIZE's layout of the same rows, made at the moment of the measurement.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from math import log2
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.cells.picture import draw
from tests.bench.cells.playing import TARGET_ROWS, Case, Played, play
from tests.bench.cells.policies import RULES, SEARCHED
from tests.bench.machine import Limit, exit_code

CASES = (
    Case("uniform"),
    Case("a commit late", lag=1),
    Case("four commits late", lag=4),
    Case("zipf", "zipf"),
    Case("ascending", "ascending"),
    Case("ascending together", "together"),
    Case("drifting", "drifting"),
    Case("one column", columns=1),
    Case("three columns", columns=3),
    Case("copy-on-write", updated=3, is_copied=True),
    Case("appended", updated=0),
    Case("small commits", commits=4000, commit_rows=4, updated=1),
)
LONG = Case("20,000 commits", commits=20_000)

PROMISED = {
    "uniform": (5.4, 0.92),
    "zipf": (5.6, 0.81),
    "ascending": (4.9, 1.01),
    "one column": (5.4, 1.25),
    "three columns": (5.4, 0.99),
    "20,000 commits": (10.4, 0.93),
}
"""What is promised: bytes rewritten per byte written, and bytes that ranges read, each within a tenth."""

COLUMNS = ("rule", "rewritten", "ranges read", "files opened", "points read", "runs", "dearest", "/ median", "files")


def rules_of(case: Case, *, is_searched: bool) -> list[str]:
    """Return the rules to play a case under: all on the plain stream, elsewhere those that are cheap to play."""
    if replace(case, title=CASES[0].title, lag=0) == CASES[0]:
        return [*(SEARCHED if is_searched else RULES)]
    return ["OPTIMIZE each 20", "cells"] if case.commits == LONG.commits else ["sort levels on a curve", "cells"]


def played(case: Case, names: list[str]) -> dict[str, Played]:
    """Play one case in a process of its own."""
    return play(
        case, {name: (SEARCHED | RULES)[name] for name in names}, points=2 if case.commits == LONG.commits else 16
    )


def show(console: Console, case: Case, found: Mapping[str, Played]) -> None:
    """Print the table of one case."""
    table = Table(title=f"{case.title}: {case.commits:,} commits", title_justify="left", box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "rule" else "right")
    for name, one in found.items():
        reads = one.reads
        table.add_row(
            name,
            f"{one.amplification:.2f}",
            f"{reads.bytes:.2f}",
            f"{reads.files:.1f}",
            f"{reads.point_bytes:.2f}",
            f"{len(one.runs):,}",
            f"{one.dearest_targets:.1f} T",
            f"{one.dearest_over_median:.2f}",
            f"{one.files:,}",
        )
    console.print(table)


def limits(case: Case, found: Mapping[str, Played]) -> list[Limit]:
    """Return what has to be shown of a case."""
    ours = found["cells"]
    shown = [
        Limit(
            f"{case.title}: dearest run, in targets", ours.dearest_targets, max(2, 8 * case.written_rows / TARGET_ROWS)
        ),
        Limit(f"{case.title}: bytes rewritten", ours.amplification, 2 + log2(max(2, ours.cells))),
    ]
    if case.title in PROMISED:
        rewritten, reads = PROMISED[case.title]
        shown += [
            Limit(f"{case.title}: bytes rewritten over what is promised", ours.amplification / rewritten, 1.1),
            Limit(f"{case.title}: bytes read over what is promised", ours.reads.bytes / reads, 1.1),
            Limit(f"{case.title}: dearest run over the median", ours.dearest_over_median, 2.0),
        ]
    return shown


def main() -> int:
    """Play all cases; exit code 1 if a figure is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="play the cases whose title has this text")
    parser.add_argument("--search", action="store_true", help="play each rule with other parameters, too")
    parser.add_argument("--svg", type=Path, help="draw the first case that is played")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    began = time.monotonic()
    cases = [case for case in (*CASES, LONG) if asked.only in case.title]
    checked: list[Limit] = []
    document: dict[str, object] = {}
    with ProcessPoolExecutor() as pool:
        # The longest first.
        futures = {
            case.title: pool.submit(played, case, rules_of(case, is_searched=asked.search))
            for case in sorted(cases, key=lambda case: -case.commits)
        }
        for case in cases:
            found = futures[case.title].result()
            show(console, case, found)
            checked += limits(case, found)
            document[case.title] = {name: one.figures() for name, one in found.items()}
            if asked.svg and case is cases[0]:
                asked.svg.write_text(draw(f"{case.title}: {case.commits:,} commits of T/16", found, case.commits))
    for limit in checked:
        console.print(str(limit))
    console.print(f"{time.monotonic() - began:.0f} s")
    if asked.json:
        document["limits"] = [{**asdict(limit), "is_met": limit.is_met} for limit in checked]
        asked.json.write_text(json.dumps(document, indent=2) + "\n")
    return exit_code(checked)


if __name__ == "__main__":
    sys.exit(main())
