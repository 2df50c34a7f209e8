"""`make bench-netflix`: Netflix's seven figures, ours beside theirs, on a warehouse-like mix of tables.

Six of them are simulated by the code that decides and plans in production; storage and, once more, query time are
measured on a small real table. Ten minutes or so, most of them simulated; `--without-spark` leaves out the real table.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench.machine import machine
from tests.bench.netflix.figures import OURS, Figure, Totals, figures, periodic, replay_all
from tests.bench.netflix.warehouse import warehouse

HOURS_BETWEEN = (0, 1, 6)
"""Hours between two runs of the baseline; the first of them after each commit."""


def table(rows: Sequence[Figure]) -> str:
    """Return figures as a table in Markdown."""
    head = ("figure", "unit", "baseline", "before", "ours", "change", "Netflix", "reached", "how")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for one in rows:
        fields = (
            *(one.name, one.unit, one.baseline, f"{one.before:,.0f}", f"{one.ours:,.0f}", f"{one.change:+.1f}%"),
            *(f"{one.published:+d}%", "yes" if one.is_reached else "**no**", one.how),
        )
        lines.append(f"| {' | '.join(fields)} |")
    return "\n".join(lines)


def sums(totals: dict[str, Totals]) -> str:
    """Return what every rule did as a table in Markdown."""
    head = ("rule", "scans", "merges", "files replaced", "TiB rewritten", "files at the end", "query core-hours")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for title, one in totals.items():
        fields = (
            *(title, f"{one.scans:,}", f"{one.merges:,}", f"{one.files_replaced:,}"),
            *(f"{one.bytes_rewritten / 2**40:.2f}", f"{one.end_files:,}", f"{one.query_s / 3600:,.0f}"),
        )
        lines.append(f"| {' | '.join(fields)} |")
    return "\n".join(lines)


def main() -> None:
    """Replay, measure, print the tables, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.netflix")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--hours", type=int, default=72)
    parser.add_argument("--commits", type=int, default=60, help="commits on the real table")
    parser.add_argument("--without-spark", action="store_true", help="leave out the real table")
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    began = time.monotonic()
    tables = warehouse(asked.tables, asked.hours, asked.seed)
    commits = sum(len(one.history.commits) for one in tables)
    written = sum(one.history.bytes_added for one in tables)
    print(f"{asked.tables} tables, {commits:,} commits in {asked.hours} hours, {written / 2**40:.2f} TiB", flush=True)
    rules = [periodic(hours) for hours in HOURS_BETWEEN]
    totals = replay_all(tables, asked.hours, rules)
    print(sums(totals), flush=True)
    found = {rule.title: figures(totals, rule.title) for rule in rules}
    for rows in found.values():
        print(f"\n{table(rows)}", flush=True)
    measured: list[Figure] = []
    if not asked.without_spark:
        from tests.bench.netflix.figures import measure

        measured = measure(asked.commits, asked.seed)
        print(f"\n{table(measured)}")
    seconds = round(time.monotonic() - began)
    print(f"{seconds} s")
    if asked.json:
        document = {
            **machine(),
            "seed": asked.seed,
            "tables": asked.tables,
            "hours": asked.hours,
            "commits": commits,
            "seconds": seconds,
            "totals": {title: asdict(one) for title, one in totals.items()},
            "ours": OURS,
            "figures": {title: [_described(one) for one in rows] for title, rows in found.items()},
            "measured": [_described(one) for one in measured],
        }
        asked.json.write_text(json.dumps(document, indent=2) + "\n")


def _described(one: Figure) -> dict[str, object]:
    return {**asdict(one), "change_percent": round(one.change, 2), "is_reached": one.is_reached}


if __name__ == "__main__":
    main()
