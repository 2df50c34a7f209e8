"""The promises under load, for a few seconds; `make load` runs the whole minute."""

from pathlib import Path

import pytest

from tests.load.run import Plan, run
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.redis, pytest.mark.e2e]


@pytest.mark.long("contracts")
def test_nothing_is_refused_and_all_is_followed_while_others_misbehave(
    own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Rates that a machine busy with other tests keeps up with: the promises are about answers and state, not speed."""
    plan = Plan(seconds=5, events_per_s=1_000, commits_per_s=100, tables=50, slow_clients=10)
    figures = run(plan, tmp_path, own_redis_server, print)
    print(figures)
    assert not figures.broken()
    assert figures.events == 5_000
    assert figures.commits == 500
