"""`python -m tests.iceberg_stress`: writers, a decider and actors on Iceberg tables; exit 1 if a row differs."""

import argparse
import json
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.bench.machine import keep
from tests.iceberg_stress.run import Stress, StressOptions
from tests.support.iceberg_rest_lake import ICEBERGS, OURS


def main() -> int:
    """Run and print; keep the folder if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.iceberg_stress")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long writers and actors go on together")
    parser.add_argument("--seed", type=int, help="repeats the choices, though not their timing")
    parser.add_argument("--server", choices=(OURS, ICEBERGS), default=OURS, help="the REST catalog")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that its services are ended, too.
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    folder = Path(tempfile.mkdtemp(prefix="lakewright-iceberg-"))
    print(f"seed {seed}, folder {folder}", flush=True)
    verdict = Stress(StressOptions(arguments.seconds, seed, folder, arguments.server)).run()
    print(json.dumps(verdict, indent=1, default=str))
    keep(verdict, arguments.json)
    if verdict["problems"]:
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
