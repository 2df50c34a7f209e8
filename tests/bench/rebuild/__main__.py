"""`make bench-rebuild`: what a rebuild of a table of a million files costs, beside deltalake, and beside other tables.

Each side reads and counts the same log in a process of its own, in turns; medians. Then a decider rebuilds the table
while commits to other tables arrive at a steady rate, and their time to a decision is compared with that before.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from shared.table import TableId
from tests.bench.decide.house import House, house
from tests.bench.decide.latency import BUSY_TABLES, Side, quantile
from tests.bench.decide.logs import WrittenLog
from tests.bench.machine import keep, machine
from tests.bench.rebuild.sides import SIDES
from tests.bench.rebuild.table import FILES_IN_COMMIT, change_property, write_table
from tests.support.stack import ROOT


def main() -> None:
    """Run both parts, print the figures, and keep them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rebuild")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=1_001_000, help="live files of the table")
    parser.add_argument("--partitions", type=int, default=1_000, help="partitions that they lie in")
    parser.add_argument("--rounds", type=int, default=3, help="times that each side reads the table; medians count")
    parser.add_argument("--sides", nargs="+", choices=sorted(SIDES), default=list(SIDES))
    parser.add_argument("--per-s", type=float, default=50.0, help="commits a second to other tables")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a window without a rebuild; 0 skips it")
    asked = parser.parse_args()
    print(f"seed {asked.seed}; {machine()}")
    figures: dict[str, Any] = {**machine(), "seed": asked.seed, "files": asked.files, "partitions": asked.partitions}
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-rebuild-") as made:
        table = Path(made) / "table"
        write_table(table, files=asked.files, partitions=asked.partitions, seed=asked.seed)
        write_table(Path(made) / "small", files=FILES_IN_COMMIT + 10, partitions=10, seed=asked.seed)
        figures |= _sides(table, asked.sides, asked.rounds)
        if asked.seconds:
            figures |= neighbors(Path(made), table, per_s=asked.per_s, seconds=asked.seconds, seed=asked.seed)
    for name, value in figures.items():
        print(f"  {name}: {value}")
    keep(figures, asked.json)


def _sides(table: Path, sides: list[str], rounds: int) -> dict[str, Any]:
    """Measure the sides in turns. Raises RuntimeError if they do not find the same files."""
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides:
            found[side].append(_measured(side, table))
            now = found[side][-1]
            print(
                f"  round {number + 1} of {rounds}, {side}: {now['cpu_s']:.2f} s of CPU, {now['wall_s']:.2f} s, "
                f"{now['peak_mib']:.0f} MiB at most",
                flush=True,
            )
    if len({tuple(one["totals"]) for results in found.values() for one in results}) > 1:
        raise RuntimeError(f"the sides found different files: {found}")
    figures: dict[str, Any] = {}
    for side, results in found.items():
        for cost in ("cpu_s", "wall_s", "peak_mib"):
            figures[f"{side}_{cost}"] = round(median(one[cost] for one in results), 2)
    if "columns" in found and "deltalake" in found:
        figures["cpu_ratio_to_deltalake"] = round(figures["columns_cpu_s"] / figures["deltalake_cpu_s"], 2)
    return figures


def _measured(side: str, table: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.rebuild.sides", side, str(table)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{side} failed:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


WARM_UP_S = 3.0
PAUSE_S = 1.0
"""Between two rebuilds."""


def neighbors(folder: Path, table: Path, *, per_s: float, seconds: float, seed: int) -> dict[str, Any]:
    """Measure windows with and without rebuilds in turns."""
    with house(folder / "house") as home:
        logs = [WrittenLog(folder / f"busy-{n}", seed + n) for n in range(BUSY_TABLES)]
        ids = {log.path.name: home.register(log.path, log.path.name) for log in logs}
        side = Side(home, folder, list(ids), ids)
        side.window(per_s=per_s, seconds=WARM_UP_S, seed=seed)  # Imports, connections, scripts.
        began = time.monotonic()
        large = home.register(table, "large")
        print(f"  first rebuild in a decider: {time.monotonic() - began:.1f} s", flush=True)
        side.windows.clear()
        spans: list[float] = []
        for number in range(4):
            if number % 2:
                with _rebuilding(home, table, large) as some:
                    side.window(per_s=per_s, seconds=seconds, seed=seed)
                spans += some
            else:
                side.window(per_s=per_s, seconds=seconds, seed=seed)
        return _figures(side.windows[::2], side.windows[1::2], spans) | {"decider_peak_mib": _peak_mib(home)}


@contextmanager
def _rebuilding(home: House, table: Path, identity: TableId) -> Iterator[list[float]]:
    """Have the table rebuilt again and again; the list holds the seconds that each rebuild took."""
    spans: list[float] = []
    stop = threading.Event()

    def rebuild() -> None:
        while not stop.is_set():
            version = change_property(table, 8 + len(spans))
            began = time.monotonic()
            home.report(["large"])
            home.await_version(identity, version)
            spans.append(time.monotonic() - began)
            stop.wait(PAUSE_S)

    rebuilding = threading.Thread(target=rebuild)
    rebuilding.start()
    try:
        yield spans
    finally:
        stop.set()
        rebuilding.join()


def _figures(idle: list[list[float]], busy: list[list[float]], spans: list[float]) -> dict[str, Any]:
    before, during = (
        [round(1e3 * quantile([delay for window in some for delay in window], q), 1) for q in (0.5, 0.99)]
        for some in (idle, busy)
    )
    return {
        "rebuilds": len(spans),
        "rebuild_s": round(median(spans), 2),
        "others_p50_ms_idle": before[0],
        "others_p99_ms_idle": before[1],
        "others_p50_ms_meanwhile": during[0],
        "others_p99_ms_meanwhile": during[1],
        "others_p99_ratio": round(during[1] / before[1], 2),
    }


def _peak_mib(home: House) -> int:
    status = Path(f"/proc/{home.decider.popen.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main()
