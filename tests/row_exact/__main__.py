"""`python -m tests.row_exact --seeds 50`: random schedules of rewrites beside others, on real tables."""

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from time import monotonic

from pyspark.sql import SparkSession

from actor.proofread.proofreader import Proofreader
from tests.bench.spark import started_spark
from tests.interop.engines.kernel import compile_kernel
from tests.row_exact import on_delta, on_iceberg
from tests.row_exact.playing import Model, Player, World


def worlds(spark: SparkSession, proofreader: Proofreader, folder: Path) -> dict[str, object]:
    """Return what makes the world of each kind of table from a name and a model."""
    engines = on_delta.DeltaEngines(spark, proofreader, compile_kernel(spark))
    ice = on_iceberg.IcebergEngines(spark, proofreader, folder / "ice")
    found = {
        f"delta, {name}": lambda at, model, kind=kind: on_delta.OnDelta(engines, folder / at, model, kind)
        for name, kind in on_delta.KINDS.items()
    }
    found |= {
        f"iceberg, {name}": lambda at, model, kind=kind: on_iceberg.OnIceberg(ice, at, model, kind)
        for name, kind in on_iceberg.KINDS.items()
    }
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.row_exact")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kinds", default="", help="kinds of tables that begin with this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--after", type=int, default=2)
    asked, ends, failed = parser.parse_args(), Counter[str](), list[int]()
    with tempfile.TemporaryDirectory(prefix="lakewright-row-exact-") as made, started_spark(
        Path(made) / "spark", driver_memory="1500m", iceberg=True
    ) as spark:
        proofreader = Proofreader()
        kinds = {name: make for name, make in worlds(spark, proofreader, Path(made)).items() if name.startswith(asked.kinds)}
        for seed in range(asked.first, asked.first + asked.seeds):
            name = list(kinds)[seed % len(kinds)]
            began = monotonic()
            player = Player(kinds[name](f"t{seed}", Model(Random(seed))))
            try:
                player.play(asked.rounds, asked.after)
            except Exception as error:
                failed.append(seed)
                traceback.print_exc()
                print(f"FAILED {type(error).__name__}")
            print(f"seed {seed} ({name}, {monotonic() - began:.1f} s): {'; '.join(player.done)} {dict(player.ends)}", flush=True)
            ends += player.ends
        proofreader.close()
    print(f"{dict(ends)}; failed seeds: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
