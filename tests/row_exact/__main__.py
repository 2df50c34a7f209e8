"""`python -m tests.row_exact`: random schedules of rewrites beside others on real tables, one after the other."""

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from pyspark.sql import SparkSession

from actor.proofread.proofreader import Proofreader
from tests.bench.spark import started_spark
from tests.interop.engines.kernel import compile_kernel
from tests.row_exact import on_delta, on_iceberg
from tests.row_exact.on_delta import HIDDEN, play_afterwards
from tests.row_exact.playing import WAYS, Model, Player
from tests.support.spark_session import QUICK


def worlds(spark: SparkSession, proofreader: Proofreader, folder: Path) -> Mapping[str, Callable[[str, Model], Any]]:
    """Return what makes the world of each kind of table from a name and a model."""
    of_delta = on_delta.DeltaEngines(spark, proofreader, compile_kernel(spark))
    of_iceberg = on_iceberg.IcebergEngines(spark, proofreader, folder / "ice")
    found: dict[str, Callable[[str, Model], Any]] = {}
    for name, kind in on_delta.KINDS.items():
        found[f"delta, {name}"] = lambda at, model, kind=kind: on_delta.OnDelta(of_delta, folder / at, model, kind)
    for name, of in on_iceberg.KINDS.items():
        found[f"iceberg, {name}"] = lambda at, model, kind=of: on_iceberg.OnIceberg(of_iceberg, at, model, kind)
    return found


def play(spark: SparkSession, folder: Path, asked: argparse.Namespace) -> list[int]:
    """Play a schedule for each seed, and print what was done and how it ended; return the seeds that failed."""
    ends, failed, proofreader = Counter[str](), list[int](), Proofreader()
    made = worlds(spark, proofreader, folder)
    kinds = {name: make for name, make in made.items() if name.startswith(asked.kinds)}
    for seed in range(asked.first, asked.first + asked.seeds):
        name, began = list(kinds)[seed % len(kinds)], monotonic()
        player = Player(kinds[name](f"t{seed}", Model(Random(seed))))
        try:
            if asked.afterwards:
                play_afterwards(player, how="late" if "iceberg" in name else asked.afterwards, way=asked.way)
            else:
                player.play(asked.rounds, asked.after)
        except Exception:  # noqa: BLE001 - the other seeds are played, too
            failed.append(seed)
            traceback.print_exc(file=sys.stdout)
            print("FAILED", end=" ")
        done = f"{'; '.join(player.done)} {dict(player.ends)}"
        print(f"seed {seed} ({name}, {monotonic() - began:.1f} s): {done}", flush=True)
        ends += player.ends
    proofreader.close()
    print(f"{dict(ends)}; failed seeds: {failed}", flush=True)
    return failed


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.row_exact")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--seeds", type=int, default=28, help="how many of them")
    parser.add_argument("--kinds", default="", help="tables whose kind begins with this")
    parser.add_argument("--rounds", type=int, default=3, help="rewrites of each schedule")
    parser.add_argument("--after", type=int, default=2, help="changes after the last rewrite")
    parser.add_argument(
        "--afterwards", choices=HIDDEN, help="instead, hide rows so, and let others go on with the table"
    )
    parser.add_argument("--way", choices=WAYS, default="copied", help="how the output with hidden rows is written")
    return parser.parse_args(given)


def main() -> int:
    """Play, and return 1 if a schedule failed."""
    asked = arguments()
    with (
        tempfile.TemporaryDirectory(prefix="lakewright-row-exact-") as made,
        started_spark(Path(made) / "spark", driver_memory="1500m", iceberg=True, **QUICK) as spark,
    ):
        return 1 if play(spark, Path(made), asked) else 0


if __name__ == "__main__":
    sys.exit(main())
