"""`make bench-decide`: what following tables costs a decider, on a real Redis, real logs on local disk and real HTTP.

Four figures: commits folded per second and core, the time from an event to its decision at 200 commits a second, the
same with a hundred thousand tables registered, and Redis bytes per partition. Some three minutes.
"""

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.decide.folding import folding, memory
from tests.bench.decide.house import house
from tests.bench.decide.iceberg import iceberg
from tests.bench.decide.latency import Load, latency, phases
from tests.bench.machine import Limit, exit_code, machine

CORE_S = "commits_per_s_per_core"


def main() -> int:
    """Run all parts, print the figures and the limits, and keep them as JSON; return 1 if a limit is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.decide")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=8_000, help="commits folded in one round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of folding; the median counts")
    parser.add_argument("--other", type=Path, help="another checkout, whose decider folds in turns with this one's")
    parser.add_argument(
        "--iceberg-commits", type=int, default=800, help="commits to Iceberg tables in a round; 0: none"
    )
    parser.add_argument("--only-iceberg", action="store_true", help="measure Iceberg tables alone")
    parser.add_argument("--only-folding", action="store_true", help="leave out memory and latency")
    parser.add_argument("--per-s", type=float, default=200.0, help="commits a second while latency is measured")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of one window of latency")
    parser.add_argument("--windows", type=int, default=5, help="windows on each side; the medians count")
    parser.add_argument("--few", type=int, default=100, help="tables registered on one side")
    parser.add_argument("--many", type=int, default=100_000, help="tables registered on the other")
    parser.add_argument(
        "--partitions", type=int, default=36_500, help="partitions that are weighed, at least one table's 365"
    )
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    figures: dict[str, Any] = {**machine(), "seed": asked.seed}
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-decide-") as made:
        folder = Path(made)
        if asked.iceberg_commits:
            print("Iceberg", flush=True)
            of_iceberg = {"commits": asked.iceberg_commits, "rounds": min(3, asked.rounds), "partitions": 3 * 365}
            figures |= iceberg(folder / "iceberg", **of_iceberg, seed=asked.seed)
        if asked.only_iceberg:
            return _show(figures, asked.json)
        with ExitStack() as stack:
            home = stack.enter_context(house(folder / "house"))
            homes = {"": home}
            if asked.other:
                homes["other_"] = stack.enter_context(house(folder / "other", root=asked.other.resolve()))
            print("folding", flush=True)
            figures |= folding(homes, folder, commits=asked.commits, rounds=asked.rounds, seed=asked.seed)
            if asked.only_folding:
                return _show(figures, asked.json)
            print("memory", flush=True)
            figures |= memory(home, folder, partitions=asked.partitions, seed=asked.seed)
        print(f"latency at {asked.per_s:g} commits/s", flush=True)
        load = Load(asked.per_s, asked.seconds, asked.windows, asked.few, asked.many)
        figures |= latency(folder, load, seed=asked.seed)
        figures |= phases(folder, load, seed=asked.seed)
    return _show(figures, asked.json)


def _show(figures: dict[str, Any], kept: Path | None) -> int:
    for name, value in figures.items():
        print(f"  {name}: {value}")
    limits = _limits(figures)
    for limit in limits:
        print(limit)
    if kept:
        kept.write_text(json.dumps(figures, indent=2) + "\n")
    return exit_code(limits)


def _limits(figures: dict[str, Any]) -> list[Limit]:
    """Return what a commit to an Iceberg table may cost, alone and beside one to a Delta table of the same run."""
    if f"iceberg_{CORE_S}" not in figures:
        return []
    each_us = 1e6 / figures[f"iceberg_{CORE_S}"]
    found = [Limit("CPU of a commit to an Iceberg table, us", each_us, 1_000)]
    if CORE_S in figures:
        found.append(Limit("the same, over that of one to a Delta table", each_us * figures[CORE_S] / 1e6, 2.5))
    return found


if __name__ == "__main__":
    sys.exit(main())
