"""The fault plan for forty seconds: `make chaos` runs it for ten minutes."""

import os
import secrets

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.run import run
from tests.support.redis_server import find_binary

SECONDS = float(os.environ.get("LAKEWRIGHT_CHAOS_SECONDS", "40"))


@pytest.mark.long("crashes")
@pytest.mark.redis
@pytest.mark.timeout(400)
def test_no_event_is_lost_and_no_job_is_stuck_whatever_fails() -> None:
    """Tokens increase, too, and each fault shows what it must; duplicates are allowed: the table's own log decides."""
    binary = find_binary()
    if binary is None:
        pytest.skip("no redis-server or valkey-server >= 7 found")
    seed = secrets.randbelow(2**31)
    stated: list[str] = []
    print(f"seed {seed}")
    verdict = run(binary, SECONDS, seed, stated.append)
    print("\n".join([*stated, *verdict.not_shown, f"never stopped: {verdict.labels_missed}"]))
    assert {fault.__name__ for fault in FAULTS} <= {line.split()[0] for line in stated}, "every kind must have happened"
    assert verdict.events > 10 * SECONDS
    assert verdict.problems == ()
