"""Each fault once, beside workers and one Redis, and with sentinels that replace it: `make chaos` runs ten minutes."""

import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.chaos import run, sentinel
from tests.chaos.faults import FAULTS
from tests.chaos.machine_faults import MACHINE_FAULTS
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
