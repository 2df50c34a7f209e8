"""What proofreading costs beside a rewrite in one run: CPU of the readers' processes, and of this one and its JVM."""

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from tests.bench.rewrite.phases import Phases
from tests.bench.rewrite.sides import CpuMeter, Lakewright, Took
from tests.bench.rewrite.tables import OTHER_DAYS, Case, append, copied, make

ROUNDS, WARM_UPS = 5, 3
FLAT = Case("flat_16_files_of_16_MB", 16, 16_000_000, 2, ROUNDS)
NESTED = Case("nested_8_files_of_8_MB", 8, 8_000_000, 1, ROUNDS, is_nested=True)
TINY = Case("tiny_4_files_of_50_kB", 4, 50_000, 1, ROUNDS)


@dataclass(frozen=True, slots=True)
class Goal:
    """At most this much of a unit: a share of the rewrite's CPU, CPU seconds per GB of inputs, or CPU ms per group."""

    case: Case
    limit: float
    unit: str

    @property
    def is_copied(self) -> bool:
        """Whether it is one of copied groups."""
        return self.unit != "of the rewrite's CPU"

    def measured(self, took: Took) -> float:
        """Return the figure of one rewrite."""
        match self.unit:
            case "of the rewrite's CPU":
                return took.proofread_s / took.cpu_s
            case "CPU s per GB":
                return took.proofread_s * 1e9 / (self.case.files * self.case.file_bytes)
            case _:
                return took.proofread_s * 1e3 / self.case.groups


GOALS = (
    Goal(FLAT, 0.10, "of the rewrite's CPU"),
    Goal(NESTED, 0.17, "of the rewrite's CPU"),
    Goal(FLAT, 0.3, "CPU s per GB"),
    Goal(TINY, 16.0, "CPU ms per group"),
)


def compare_proofreading(spark: SparkSession, engine: DeltaEngine, folder: Path, seed: int) -> Mapping[str, Any]:
    """Rewrite copies of three tables; returns each figure with its goal, having printed whether it is met."""
    figures: dict[str, Any] = {}
    for goal in GOALS:
        took = _rewrites(spark, engine, folder, goal, seed)
        found = median(map(goal.measured, took))
        name = f"{goal.case.name}, {'copied' if goal.is_copied else 'encoded'}"
        end = "met" if found <= goal.limit else "NOT MET"
        cpu = f"{median(one.proofread_s for one in took):.3f} s beside {median(one.cpu_s for one in took):.3f} s"
        print(f"  proofreading {name}: {found:.3f} {goal.unit}, goal {goal.limit:g}: {end} ({cpu})", flush=True)
        figures[f"{name}, {goal.unit}"] = {"found": round(found, 4), "goal": goal.limit, "is_met": found <= goal.limit}
    return figures


def _rewrites(spark: SparkSession, engine: DeltaEngine, folder: Path, goal: Goal, seed: int) -> list[Took]:
    made, dice, meter = make(folder, goal.case, seed), random.Random(seed), CpuMeter(spark)
    side, took = Lakewright(engine, may_copy=goal.is_copied), []
    for number in range(WARM_UPS + goal.case.rounds):
        table = copied(made, folder / f"proofread-{number}")
        side.find(table)
        append(table, dice, dice.choice(OTHER_DAYS), rows=1_000, is_nested=goal.case.is_nested)
        took.append(meter.measured(lambda table=table: side.rewrite(table, goal.case, Phases())))
        shutil.rmtree(table)
    shutil.rmtree(made)
    if goal.is_copied and took[-1].copied != goal.case.groups:
        raise RuntimeError(f"{took[-1].copied} of {goal.case.groups} groups were copied")
    return took[WARM_UPS:]
