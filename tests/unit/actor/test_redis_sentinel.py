"""An actor's connections to a primary that sentinels name, and what is logged of outages."""

import pytest
from structlog.testing import capture_logs

from actor.outage_log import OutageLog
from actor.queue_executor import TIMEOUT_S, SyncSentinelPool, connect

URL = "ann:p%40ss@one:1,two/lakewright/5?sentinel_password=other"


def pool_of(url: str, *, connections: int = 3) -> SyncSentinelPool:
    pool = connect(url, connections=connections).connection_pool
    assert isinstance(pool, SyncSentinelPool)
    return pool


def test_the_primary_is_asked_for_from_sentinels_and_gets_what_the_url_says() -> None:
    pool = pool_of(f"redis+sentinel://{URL}")
    assert (pool.service_name, pool.max_connections, pool.timeout) == ("lakewright", 3, TIMEOUT_S)
    primary = pool.connection_kwargs
    assert (primary["username"], primary["password"], primary["db"]) == ("ann", "p@ss", 5)
    assert (primary["retry"].get_retries(), primary["socket_timeout"]) == (0, TIMEOUT_S)
    assert not {"host", "port"} & primary.keys()


def test_sentinels_get_credentials_and_limits_of_their_own() -> None:
    found = [
        one.connection_pool.connection_kwargs for one in pool_of(f"redis+sentinel://{URL}").sentinel_manager.sentinels
    ]
    assert [(one["host"], one["port"]) for one in found] == [("one", 1), ("two", 26379)]
    for one in found:
        assert (one["password"], one["socket_timeout"], one["retry"].get_retries()) == ("other", TIMEOUT_S, 0)
        assert one["username"] is None


@pytest.mark.parametrize(("scheme", "is_encrypted"), [("redis+sentinel", False), ("rediss+sentinel", True)])
def test_the_scheme_says_whether_connections_are_encrypted(scheme: str, is_encrypted: bool) -> None:
    pool = pool_of(f"{scheme}://{URL}")
    assert ("SSL" in pool.connection_class.__name__) == is_encrypted
    classes = [one.connection_pool.connection_class.__name__ for one in pool.sentinel_manager.sentinels]
    assert ["SSL" in name for name in classes] == [is_encrypted] * 2


@pytest.mark.parametrize("in_use", [True, False])
def test_connections_to_the_sentinels_are_closed_with_all_others(in_use: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, closed = pool_of(f"redis+sentinel://{URL}"), []
    for sentinel in pool.sentinel_manager.sentinels:
        monkeypatch.setattr(sentinel, "close", lambda: closed.append(1))
    pool.disconnect(inuse_connections=in_use)
    assert len(closed) == (2 if in_use else 0)


def test_an_outage_is_logged_at_its_begin_every_half_minute_and_at_its_end() -> None:
    now_s = 0.0
    outage = OutageLog(every_s=30.0, clock_s=lambda: now_s)
    with capture_logs() as logs:
        for _ in range(61 * 3):
            outage.failed(error="refused")
            now_s += 1 / 3
        outage.succeeded()
        outage.succeeded()
    assert [(one["event"], one.get("for_s")) for one in logs] == [
        ("queue_unavailable", 0), ("queue_unavailable", 30), ("queue_unavailable", 60), ("queue_available", None),
    ]  # fmt: skip
    assert logs[-1]["failures"] == 183


def test_the_next_outage_is_logged_at_once() -> None:
    outage = OutageLog(clock_s=lambda: 0.0)
    with capture_logs() as logs:
        for _ in range(2):
            outage.failed(error="refused")
            outage.succeeded()
    assert [one["event"] for one in logs] == ["queue_unavailable", "queue_available"] * 2
