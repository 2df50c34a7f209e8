"""`make load`: a decider under load, with figures; exit code 1 if a promise was broken."""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.load.run import Plan, run
from tests.support.redis_server import RedisServer, find_binary


def main() -> int:
    """Run, print, keep."""
    plan = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=plan.seconds)
    parser.add_argument("--events-per-s", type=int, default=plan.events_per_s)
    parser.add_argument("--commits-per-s", type=int, default=plan.commits_per_s)
    parser.add_argument("--tables", type=int, default=plan.tables)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args()
    binary = find_binary()
    if binary is None:
        sys.exit("no redis-server or valkey-server >= 7 found")
    plan = Plan(asked.seconds, asked.events_per_s, asked.commits_per_s, asked.tables)
    redis = RedisServer(binary, appendfsync="everysec").start()
    try:
        with tempfile.TemporaryDirectory(prefix="lw-load-") as folder:
            figures = run(plan, Path(folder), redis, lambda line: print(line, flush=True))
    finally:
        redis.close()
    reported = asdict(plan) | asdict(figures) | {"broken": figures.broken()}
    print(json.dumps(reported, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(reported, indent=2) + "\n")
    return 1 if figures.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
