"""`make bench-iceberg`: one trace on real Spark and Iceberg under Lakewright and the rules it is compared with.

The trace is that of `make bench-delta`: late data over 24 partitions, a commit a minute, a MERGE now and then. Each
rule begins with an empty table and gets the same files in the same commits; in the end all tables hold the same rows.
"""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.delta.__main__ import cost_limits, make, measure, table
from tests.bench.delta.playing import Played
from tests.bench.delta.trace import Trace
from tests.bench.iceberg.rules import RULES, play_alone
from tests.bench.machine import Limit
from tests.bench.spark import called_alone


def run(folder: Path, trace: Trace, wanted: list[str], rounds: int) -> tuple[list[Played], dict[str, int]]:
    """Play every wanted rule in a process and a JVM of its own, so that none pays for what another had compiled.

    Returns what was measured, and the manifests of the final tables; raises if rows differ.
    """
    done: list[Played] = []
    manifests: dict[str, int] = {}
    for name in wanted:
        one, manifests[name] = called_alone(play_alone, folder, trace, name, rounds)
        done.append(one)
        row = table(trace, [one]).rpartition("\n")[2]
        print(f"{one.title}: {one.wall_s:.0f} s, {manifests[name]} manifests\n{row}", flush=True)
    if len({played.rows for played in done}) != 1 or done[0].rows[0] != trace.rows:
        raise RuntimeError(f"rows differ: {trace.rows} were written; {[(one.title, one.rows) for one in done]}")
    print(f"{trace.rows:,} rows, equal under every rule")
    return done, manifests


def limits(_: Trace | None, done: Sequence[Played]) -> list[Limit]:
    """Return what Lakewright has to show beside hourly rewrites; nothing unless both were played."""
    by_title = {one.title: one for one in done}
    ours, hourly = by_title.get("Lakewright"), by_title.get("rewrite_data_files hourly")
    if ours is None or hourly is None:
        return []
    cpu = ours.cpu_s_by_round[-1] / hourly.cpu_s_by_round[-1]
    files = statistics.mean(ours.curve) / statistics.mean(hourly.curve)
    return [
        Limit("CPU of Lakewright by that of hourly rewrite_data_files, last round", cpu, 1.0),
        Limit("mean number of files, likewise", files, 0.5),
        Limit("aborted MERGEs", ours.merges_aborted, 0.0),
        *cost_limits(ours),
    ]


def _played(folder: Path, asked: Any) -> tuple[Trace, list[Played], dict[str, Any]]:
    trace = make(folder, asked, for_iceberg=True)
    done, manifests = run(folder, trace, asked.rules, asked.rounds)
    return trace, done, {"manifests_end": manifests}


if __name__ == "__main__":
    sys.exit(measure("iceberg", RULES, _played, rounds=2, limits=limits))
