"""Each fault once, and that of the wrong clock reaches every clock: `make chaos` runs ten minutes."""

import ast
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import run, sentinel
from tests.chaos.faults import FAULTS
from tests.chaos.machine_faults import MACHINE_FAULTS
from tests.chaos.skewed_worker import CLOCKS
from tests.support.redis_server import find_binary

SECONDS = float(os.environ.get("LAKEWRIGHT_CHAOS_SECONDS", "20"))


@pytest.mark.long("crashes")
@pytest.mark.redis
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("harm", "faults", "events_per_s"),
    [(run.run, (*FAULTS, *MACHINE_FAULTS), 10), (sentinel.run, sentinel.FAULTS, 1)],
    ids=["one Redis", "sentinels"],
)
def test_no_event_is_lost_and_no_job_is_stuck_whatever_fails(
    harm: Callable[..., Any], faults: Sequence[Callable[..., None]], events_per_s: int
) -> None:
    """Tokens increase, too, and each fault shows what it must; duplicates are allowed: the table's own log decides."""
    seed = secrets.randbelow(2**31)
    stated: list[str] = []
    print(f"seed {seed}")
    verdict = harm(find_binary(), SECONDS, seed, stated.append)
    print("\n".join([*stated, *verdict.not_shown, f"never stopped: {verdict.labels_missed}"]))
    assert {fault.__name__ for fault in faults} <= {line.split()[0] for line in stated}, "every kind must have happened"
    assert verdict.events > events_per_s * SECONDS
    assert verdict.problems == ()


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
