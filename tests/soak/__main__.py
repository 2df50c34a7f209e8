"""`make soak`: three deltalake writers and Spark on ten tables, with faults; exit code 1 if one row differs.

`--without-lakewright` is the control: the same writers alone. What differs there, too, is not ours.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.bench.machine import keep
from tests.soak.disk import enter_namespace
from tests.soak.run import Soak, SoakOptions
from tests.support.redis_server import RedisServer


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=1200.0, help="how long writers and faults go on")
    parser.add_argument(
        "--seed", type=int, help="repeats the writers' and the faults' choices, though not their timing"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--picture", type=Path, help="write the memory of the services over time to this SVG file")
    parser.add_argument(
        "--older", type=Path, help="checkout of an earlier version: services begin with it and change when replaced"
    )
    parser.add_argument("--pause-s", type=float, default=0.4, help="of a writer between two operations")
    parser.add_argument("--without-lakewright", action="store_true", help="the writers alone")
    parser.add_argument("--without-faults", action="store_true", help="nothing is killed, paused or filled")
    parser.add_argument(
        "--spark-writes-everywhere", action="store_true", help="also where deltalake cannot remove what Spark writes"
    )
    arguments = parser.parse_args()
    no_namespace = enter_namespace()
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    folder = Path(tempfile.mkdtemp(prefix="lakewright-soak-"))
    print(f"seed {seed}, folder {folder}", flush=True)
    writer_options = ["--pause-s", str(arguments.pause_s)]
    writer_options += ["--spark-writes-everywhere"] if arguments.spark_writes_everywhere else []
    options = SoakOptions(
        seconds=arguments.seconds,
        seed=seed,
        folder=folder,
        with_lakewright=not arguments.without_lakewright,
        with_faults=not arguments.without_faults,
        no_namespace=no_namespace,
        writer_options=tuple(writer_options),
        older=arguments.older.resolve() if arguments.older else None,
    )
    with RedisServer() as redis:
        verdict = Soak(options, redis, lambda line: print(line, flush=True)).run()
    verdict.print(Console(width=140))
    keep(verdict.figures(), arguments.json)
    if arguments.picture:
        arguments.picture.write_text(verdict.memory.picture())
    print(f"{'good' if verdict.good else 'NOT GOOD'}; everything is kept in {folder}", flush=True)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
