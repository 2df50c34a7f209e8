"""`make bench-rewrite`: the time of one rewrite, against Delta's OPTIMIZE on copies of the same files; ten minutes.

First what proofreading costs beside a rewrite, and whether its goals are met. Beside OPTIMIZE the same rewrite with its
rows encoded, deltalake's `compact`, and the copy of the bare bytes as the limit. All run warm in one Spark, in turns,
each on a copy of its own. The application has seen each table before, and one commit by a foreign writer has come
since: what a job finds. The medians count.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine, EngineSettings, start_engine
from tests.bench.machine import keep, machine
from tests.bench.rewrite.phases import Phases
from tests.bench.rewrite.proofreading import compare_proofreading
from tests.bench.rewrite.sides import (
    COPIED,
    DELTALAKE,
    OPTIMIZE,
    Bytes,
    CpuMeter,
    Deltalake,
    Lakewright,
    Optimize,
    Side,
    Took,
)
from tests.bench.rewrite.tables import OTHER_DAYS, Case, append, copied, make
from tests.bench.spark import started_spark

WARM_UPS = 3
PROOFREADING = "proofreading"
CASES = (Case("10_files_of_1_MB", 10, 1_000_000, 1, 9, 0.3), Case("1_GB_in_64_files", 64, 16_000_000, 8, 3, 0.15))


def compare(
    spark: SparkSession, engine: DeltaEngine, folder: Path, case: Case, *, warm_ups: int, seed: int
) -> dict[str, Any]:
    """Rewrite copies of one table in turns; returns medians and, for ours, where the time goes."""
    made, dice = make(folder, case, seed), random.Random(seed)
    took: dict[str, list[Took]] = defaultdict(list)
    phases: list[Phases] = []
    meter = CpuMeter(spark)
    sides: tuple[Side, ...] = (
        Lakewright(engine, may_copy=True),
        Lakewright(engine, may_copy=False),
        Optimize(spark),
        Deltalake(),
        Bytes(),
    )
    for number in range(warm_ups + case.rounds):
        for side in sides:
            table = copied(made, folder / f"{case.name}-{side.name}-{number}")
            side.find(table)
            append(table, dice, dice.choice(OTHER_DAYS), rows=1_000)
            seen = Phases()
            done = meter.measured(lambda side=side, table=table, seen=seen: side.rewrite(table, case, seen))
            shutil.rmtree(table)
            if number >= warm_ups:
                took[side.name].append(done)
                phases += [seen] if side.name == COPIED else []
            figures = f"{done.total_s:6.2f} s, {done.cpu_s:6.2f} CPU s, {done.files} files, {done.copied} copied"
            print(f"  {side.name:10s} {figures}{_note(number, warm_ups)}", flush=True)
    shutil.rmtree(made)
    return _figures(case, took, phases)


def _note(number: int, warm_ups: int) -> str:
    return " (warming up)" if number < warm_ups else ""


def _figures(case: Case, took: dict[str, list[Took]], phases: list[Phases]) -> dict[str, Any]:
    names = dict.fromkeys(name for seen in phases for name in seen.ms)
    total_s = {side: median(one.total_s for one in done) for side, done in took.items()}
    cpu_s = {side: median(one.cpu_s for one in done) for side, done in took.items()}
    figures: dict[str, Any] = {
        **{f"{side}_s": round(seconds, 3) for side, seconds in total_s.items()},
        **{f"{side}_cpu_s": round(seconds, 3) for side, seconds in cpu_s.items()},
        "ratio": round(total_s[COPIED] / total_s[OPTIMIZE], 3),
        "ratio_to_deltalake": round(total_s[COPIED] / total_s[DELTALAKE], 3),
        "groups_copied": f"{took[COPIED][-1].copied} of {case.groups}",
        "of_that_read_partition_s": round(median(one.read_s for one in took[COPIED]), 3),
        "rounds": case.rounds,
        "phases_ms": {name: round(median(seen.ms[name] for seen in phases), 1) for name in names},
    }
    print(f"  {case.name}: {figures['ratio']} x OPTIMIZE's time, goal {case.goal}; {figures['groups_copied']} copied")
    for side, seconds in total_s.items():
        print(f"    {seconds:8.2f} s, {cpu_s[side]:8.2f} CPU s  {side}")
    for name, ms in figures["phases_ms"].items():
        print(f"    {ms:8.1f} ms  {name}")
    return figures


def main() -> None:
    """Run both cases, print the figures, and keep them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rewrite")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", nargs="*", default=[*(case.name for case in CASES), PROOFREADING])
    parser.add_argument("--rounds", type=int, help="rewrites of each kind that the clock counts")
    parser.add_argument("--warm-ups", type=int, default=WARM_UPS, help="rewrites of each kind before the clock counts")
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    figures: dict[str, Any] = {**machine(), "seed": asked.seed}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-rewrite-") as made, started_spark(Path(made)) as spark:
        engine, _ = start_engine(spark, EngineSettings(), scratch=(Path(made) / "scratch").as_uri())
        if PROOFREADING in asked.cases:
            figures[PROOFREADING] = compare_proofreading(spark, engine, Path(made), asked.seed)
        for case in (replace(case, rounds=asked.rounds or case.rounds) for case in CASES):
            if case.name in asked.cases:
                print(case.name, flush=True)
                given = {"warm_ups": asked.warm_ups, "seed": asked.seed}
                figures[case.name] = compare(spark, engine, Path(made), case, **given)
    print(f"{time.monotonic() - began:.0f} s")
    keep(figures, asked.json)


if __name__ == "__main__":
    main()
