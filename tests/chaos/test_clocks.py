"""The fault of the wrong clock must reach every clock that a worker reads."""

import ast
from pathlib import Path

from tests.chaos.skewed_worker import CLOCKS

ROOT = Path(__file__).parents[2]
UNDER_TEST = tuple(
    f"actor/{name}.py"
    for name in (
        "heartbeat", "job_run", "lease", "outage_log", "queue_executor", "report", "shared_commit", "slot_gate",
        "slot_queue", "worker",
    )
)  # fmt: skip


def test_a_worker_reads_no_clock_but_those_that_are_set_back() -> None:
    read: set[str] = set()
    for path in [*(ROOT / name for name in UNDER_TEST), *(ROOT / "shared/queue").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("time", "datetime"), f"{path} takes a clock with it"
            elif isinstance(node, ast.Import):
                assert "datetime" not in {one.name for one in node.names}, f"{path} has a clock of its own"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "time":
                read.add(node.attr)
    assert {"monotonic", "time_ns"} <= read, "the lease's clock and that of the marks in commits"
    assert read <= {*CLOCKS, "sleep"}
