"""`make chaos`: nineteen kinds of faults against processes of queue and decider; exit code 1 if one broke a promise."""

import argparse
import json
import secrets
import sys
from pathlib import Path

from tests.bench.machine import keep
from tests.chaos.run import run
from tests.support.redis_server import find_binary


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long commits and faults go on")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run's choices, though not its timing")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    verdict = run(find_binary(), arguments.seconds, seed, lambda line: print(line, flush=True))
    figures = verdict.figures() | {"seed": seed}
    print(json.dumps(figures, indent=2))
    keep(figures, arguments.json)
    return 0 if figures["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
