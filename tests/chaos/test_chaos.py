"""The fault plan for a minute: `make chaos` runs it for ten."""

import os
import secrets

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.run import run
from tests.support.redis_server import find_binary

SECONDS = float(os.environ.get("LAKEWRIGHT_CHAOS_SECONDS", "60"))


@pytest.mark.redis
@pytest.mark.timeout(400)
def test_no_event_is_lost_and_no_job_is_stuck_whatever_fails() -> None:
    """Tokens increase, too; duplicates are allowed, because the table's own log makes an effect happen once."""
    binary = find_binary()
    if binary is None:
        pytest.skip("no redis-server or valkey-server >= 7 found")
    seed = secrets.randbelow(2**31)
    said: list[str] = []
    print(f"seed {seed}")
    verdict = run(binary, SECONDS, seed, said.append)
    assert len({line.split()[0] for line in said}) == len(FAULTS), "every kind of fault must have happened"
    assert verdict.events > 10 * SECONDS
    assert verdict.lost_events == ()
    assert verdict.stuck_jobs == 0
    assert verdict.tokens_reused == 0
    assert verdict.tokens_out_of_order == 0
