"""`make load`: a decider under load, with figures; exit code 1 if a limit is not met."""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from tests.load.run import ATTACKED, Plan, run
from tests.support.redis_server import RedisServer


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--attacked", action="store_true", help=f"5 minutes beside {len(ATTACKED.clients)} kinds of "
                        "hostile clients, 16 of each, and a quiet minute before and after")  # fmt: skip
    for name, kind in (("seconds", float), ("quiet-s", float), ("pause-s", float), ("events-per-s", int),
                       ("commits-per-s", int), ("tables", int)):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, default=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = vars(parser.parse_args())
    base, kept = ATTACKED if asked.pop("attacked") else Plan(), asked.pop("json")
    plan = replace(base, **asked)
    with RedisServer(appendfsync="everysec") as redis, tempfile.TemporaryDirectory(prefix="lw-load-") as folder:
        figures = run(plan, Path(folder), redis, lambda line: print(line, flush=True))
    limits = list(figures.limits())
    reported = asdict(plan) | asdict(figures) | {"limits": [asdict(limit) for limit in limits]}
    print(json.dumps(reported, indent=2))
    if kept:
        kept.write_text(json.dumps(reported, indent=2) + "\n")
    for limit in limits:
        print(limit)
    return 0 if all(limit.is_met for limit in limits) else 1


if __name__ == "__main__":
    sys.exit(main())
