"""From event to decision in other tables, while a decider rebuilds a large one over and over, and while it does not."""

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
from tests.bench.rebuild.table import change_property

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
