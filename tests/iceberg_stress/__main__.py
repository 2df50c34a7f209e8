"""`python -m tests.iceberg_stress`: writers and actors on Iceberg tables of a catalog; exit 1 if a row differs."""

import argparse
import json
import secrets
import sys
import tempfile
from pathlib import Path

from tests.iceberg_stress.run import Stress, StressOptions


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.iceberg_stress")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long writers and actors go on together")
    parser.add_argument("--seed", type=int, help="repeats the choices, though not their timing")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    folder = Path(tempfile.mkdtemp(prefix="lakewright-iceberg-"))
    print(f"seed {seed}, folder {folder}", flush=True)
    verdict = Stress(StressOptions(arguments.seconds, seed, folder)).run()
    print(json.dumps(verdict, indent=1, default=str))
    if arguments.json:
        arguments.json.write_text(json.dumps(verdict, indent=1, default=str) + "\n")
    return 1 if verdict["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
