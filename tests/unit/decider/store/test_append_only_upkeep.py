"""A rewrite is requested once per start and once per failure of writes, and not in vain."""

import asyncio
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from decider.store.redis.redis_health import RETRY_AFTER_PASSES, AppendOnlyUpkeep


class Server:
    """A server whose INFO a test sets; rewrites end at once, with `outcome`."""

    def __init__(self) -> None:
        self.outcome = "ok"
        self.requests = 0
        self.info_now: dict[str, Any] = {
            "aof_enabled": 1,
            "aof_rewrite_in_progress": 0,
            "aof_rewrite_scheduled": 0,
            "rdb_bgsave_in_progress": 0,
            "aof_last_rewrite_time_sec": 0,
            "aof_last_write_status": "ok",
            "aof_last_bgrewrite_status": "ok",
        }

    async def info(self, *_sections: str) -> dict[str, Any]:
        return self.info_now

    async def bgrewriteaof(self) -> None:
        self.requests += 1
        self.info_now |= {"aof_last_rewrite_time_sec": 0, "aof_last_bgrewrite_status": self.outcome}


def passes(upkeep: AppendOnlyUpkeep, server: Server, number: int = 1) -> int:
    async def run() -> int:
        return sum([await upkeep.rewrite(cast("Redis", server)) for _ in range(number)])

    return asyncio.run(run())


def test_a_server_that_was_started_is_rewritten_once() -> None:
    server, upkeep = Server(), AppendOnlyUpkeep()
    server.info_now["aof_last_rewrite_time_sec"] = -1
    assert passes(upkeep, server, 5) == 1


def test_nothing_is_requested_while_writes_fail_and_once_when_they_work_again() -> None:
    server, upkeep = Server(), AppendOnlyUpkeep()
    server.info_now["aof_last_write_status"] = "err"
    assert passes(upkeep, server, 3) == 0
    server.info_now["aof_last_write_status"] = "ok"
    assert passes(upkeep, server, 5) == 1


def test_a_failure_between_two_passes_is_seen_by_the_writes_that_it_refused() -> None:
    server, upkeep = Server(), AppendOnlyUpkeep()
    assert passes(upkeep, server) == 0
    server.info_now["errorstat_MISCONF"] = {"count": 1}
    assert passes(upkeep, server, 5) == 1
    server.info_now["errorstat_MISCONF"] = {"count": 0}  # The counts were reset.
    assert passes(upkeep, server, 5) == 0
    server.info_now["errorstat_MISCONF"] = {"count": 1}
    assert passes(upkeep, server, 5) == 1


def test_a_rewrite_that_failed_is_tried_again_after_a_while() -> None:
    server, upkeep = Server(), AppendOnlyUpkeep()
    server.outcome = "err"
    server.info_now["errorstat_MISCONF"] = {"count": 1}
    assert passes(upkeep, server, RETRY_AFTER_PASSES) == 1
    server.outcome = "ok"
    assert passes(upkeep, server, RETRY_AFTER_PASSES) == 1
    assert passes(upkeep, server, 2 * RETRY_AFTER_PASSES) == 0


@pytest.mark.parametrize("reason", ["aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress"])
def test_a_busy_server_is_left_alone(reason: str) -> None:
    server, upkeep = Server(), AppendOnlyUpkeep()
    server.info_now |= {"aof_last_rewrite_time_sec": -1, reason: 1}
    assert passes(upkeep, server) == 0
    server.info_now[reason] = 0
    assert passes(upkeep, server) == 1
