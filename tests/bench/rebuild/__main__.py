"""`make bench-rebuild`: what a rebuild of a table of a million files costs, beside deltalake, and beside other tables.

Each side reads and counts the same log in a process of its own, in turns; medians. Then a decider rebuilds the table
while commits to other tables arrive at a steady rate, and their time to a decision is compared with that before.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.machine import keep, machine
from tests.bench.rebuild.neighbors import neighbors
from tests.bench.rebuild.sides import SIDES
from tests.bench.rebuild.table import FILES_IN_COMMIT, write_table
from tests.support.stack import ROOT


def main() -> None:
    """Run both parts, print the figures, and keep them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rebuild")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=1_001_000, help="live files of the table")
    parser.add_argument("--partitions", type=int, default=1_000, help="partitions that they lie in")
    parser.add_argument("--rounds", type=int, default=3, help="times that each side reads the table; medians count")
    parser.add_argument("--sides", nargs="+", choices=sorted(SIDES), default=list(SIDES))
    parser.add_argument("--per-s", type=float, default=50.0, help="commits a second to other tables")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a window without a rebuild; 0 skips it")
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    figures: dict[str, Any] = {**machine(), "seed": asked.seed, "files": asked.files, "partitions": asked.partitions}
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-rebuild-") as made:
        table = Path(made) / "table"
        write_table(table, files=asked.files, partitions=asked.partitions, seed=asked.seed)
        write_table(Path(made) / "small", files=FILES_IN_COMMIT + 10, partitions=10, seed=asked.seed)
        figures |= _sides(table, asked.sides, asked.rounds)
        if asked.seconds:
            figures |= neighbors(Path(made), table, per_s=asked.per_s, seconds=asked.seconds, seed=asked.seed)
    for name, value in figures.items():
        print(f"  {name}: {value}")
    keep(figures, asked.json)


def _sides(table: Path, sides: list[str], rounds: int) -> dict[str, Any]:
    """Measure the sides in turns. Raises RuntimeError if they do not find the same files."""
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides:
            found[side].append(_measured(side, table))
            now = found[side][-1]
            print(
                f"  round {number + 1} of {rounds}, {side}: {now['cpu_s']:.2f} s of CPU, {now['wall_s']:.2f} s, "
                f"{now['peak_mib']:.0f} MiB at most",
                flush=True,
            )
    if len({tuple(one["totals"]) for results in found.values() for one in results}) > 1:
        raise RuntimeError(f"the sides found different files: {found}")
    figures: dict[str, Any] = {}
    for side, results in found.items():
        for cost in ("cpu_s", "wall_s", "peak_mib"):
            figures[f"{side}_{cost}"] = round(median(one[cost] for one in results), 2)
    if "columns" in found and "deltalake" in found:
        figures["cpu_ratio_to_deltalake"] = round(figures["columns_cpu_s"] / figures["deltalake_cpu_s"], 2)
    return figures


def _measured(side: str, table: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.rebuild.sides", side, str(table)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{side} failed:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    main()
