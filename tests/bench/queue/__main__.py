"""`make bench-queue`: server time per script at 100 k and 1 M jobs, and five other queues beside ours on one Redis.

Times of scripts are the server's own; jobs per second are what a client sees. Both depend on the machine and on what
else it does, so only figures of one run should be compared.
"""

import argparse
import os
import platform
from pathlib import Path
from typing import Any

from tests.bench.machine import keep
from tests.bench.queue.contest_run import OURS, PEERS, SETTINGS, jobs_per_s
from tests.bench.queue.scripts import EMBEDDED, Bench
from tests.support.redis_server import RedisServer, find_binary

BUDGETS_US = {"enqueue": 30, "claim": 60, "heartbeat": 15, "finish": 35}
MEASURED_AS = {"enqueue": "enqueue new", "claim": "claim 1", "heartbeat": "heartbeat of 1", "finish": "finish done"}


def main() -> None:
    """Run what was requested and print it; --json keeps it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.queue")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000], help="jobs in the queue")
    parser.add_argument("--jobs", type=int, default=20_000, help="no-op jobs of the contest")
    parser.add_argument("--window-s", type=float, default=30.0, help="longest time of one contender in one setting")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    arguments = parser.parse_args()
    binary = find_binary()
    figures: dict[str, Any] = {"machine": machine(), "server": binary.name, "load_average": os.getloadavg()[0]}
    figures |= scripts(binary, arguments.sizes)
    figures |= contest(binary, arguments.peers, jobs=arguments.jobs, window_s=arguments.window_s)
    keep(figures, arguments.json)


def machine() -> str:
    """Return what kind of machine this is, not which one."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


def scripts(binary: Path, sizes: list[int]) -> dict[str, Any]:
    """Measure each script on queues of these sizes."""
    figures: dict[str, Any] = {"server_us": {}, "bytes_per_job": None, "all_scripts_us": {}, "least_us": {}}
    for size in sizes:
        print(f"\nserver time per script, {size} jobs")
        with RedisServer(binary, appendfsync="everysec", extra=EMBEDDED) as server:
            bench = Bench(server)
            bench.run(size)
        short = {name: bench.server_us[long] for name, long in MEASURED_AS.items()}
        figures["server_us"][str(size)] = short
        figures["all_scripts_us"][str(size)] = bench.server_us
        figures["least_us"][str(size)] = bench.least_us
        figures["bytes_per_job"] = figures["bytes_per_job"] or bench.bytes_per_job
        for name, budget in BUDGETS_US.items():
            verdict = "within" if short[name] <= budget else "OVER"
            print(f"  {name:10s} {short[name]:6.1f} us, {verdict} its budget of {budget} us")
    return figures


def contest(binary: Path, peers: list[str], *, jobs: int, window_s: float) -> dict[str, Any]:
    """Let ours and the others work off the same jobs, in each setting."""
    rows: dict[str, dict[str, float]] = {}
    with RedisServer(binary, appendfsync="everysec") as server:
        for setting in SETTINGS:
            print(f"\n{setting.name}: jobs per second, {jobs} no-op jobs or {window_s:g} s")
            rows[setting.name] = {}
            for name in (OURS, *peers):
                rate = round(jobs_per_s(name, server, setting, jobs=jobs, window_s=window_s), 1)
                rows[setting.name][name] = rate
                print(f"  {name:12s} {rate:10.1f}", flush=True)
    first = rows[SETTINGS[0].name]
    return {
        "lakewright_jobs_per_s": first[OURS],
        "peers_jobs_per_s": {name: rate for name, rate in first.items() if name != OURS},
        "jobs_per_s": rows,
    }


if __name__ == "__main__":
    main()
