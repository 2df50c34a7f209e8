"""The doctor on a real Redis: a good one has no complaint, a forgetful one has the right ones."""

import pytest

from services.cli.checks.finding import FindingLevel
from services.cli.checks.redis_server import check_redis
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.redis


def test_a_durable_redis_that_does_not_evict_is_found_well(redis_url: str) -> None:
    findings = check_redis(redis_url)
    assert [finding.check for finding in findings] == ["redis", "redis durability", "redis eviction", "clock"]
    assert all(finding.status is FindingLevel.OK for finding in findings), findings


def test_a_redis_that_forgets_is_found_out(own_redis_server: RedisServer) -> None:
    with own_redis_server.client() as client:
        client.config_set("appendonly", "no")
        client.config_set("maxmemory-policy", "allkeys-lru")
    status = {finding.check: finding.status for finding in check_redis(own_redis_server.url)}
    assert status["redis durability"] is FindingLevel.FAIL
    assert status["redis eviction"] is FindingLevel.FAIL
    assert status["redis"] is FindingLevel.OK
