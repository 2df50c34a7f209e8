"""Failovers by sentinels, with the primary killed and paused, while workers are killed and paused."""

import os
import secrets

import pytest

from tests.chaos.sentinel import FAULTS, run
from tests.support.redis_server import find_binary

SECONDS = float(os.environ.get("LAKEWRIGHT_CHAOS_SECONDS", "40"))


@pytest.mark.long("crashes")
@pytest.mark.redis
@pytest.mark.timeout(600)
def test_no_event_is_lost_and_no_job_is_stuck_when_sentinels_choose_another_primary() -> None:
    binary = find_binary()
    if binary is None:
        pytest.skip("no redis-server or valkey-server >= 7 found")
    seed = secrets.randbelow(2**31)
    stated: list[str] = []
    print(f"seed {seed}")
    verdict = run(binary, SECONDS, seed, stated.append)
    print("\n".join([*stated, *verdict.not_shown]))
    assert {fault.__name__ for fault in FAULTS} <= {line.split()[0] for line in stated}, "every kind must have happened"
    assert verdict.events > SECONDS
    assert verdict.problems == ()
