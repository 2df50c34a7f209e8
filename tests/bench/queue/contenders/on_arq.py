"""arq; its poll delay is set far below its default of 0.5 s, which would bound it to 200 jobs/s."""

import asyncio
import sys
from typing import Any

import contest
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker


async def job(_: dict[str, Any]) -> None:
    contest.no_op()


def enqueue(url: str, count: int) -> None:
    async def put() -> None:
        pool = await create_pool(RedisSettings.from_dsn(url))
        for _ in range(count):
            await pool.enqueue_job("job")

    asyncio.run(put())


def work(url: str, workers: int) -> None:
    asyncio.set_event_loop(asyncio.new_event_loop())
    settings = RedisSettings.from_dsn(url)
    Worker(
        [job], redis_settings=settings, max_jobs=workers, poll_delay=0.001, keep_result=0, handle_signals=False
    ).run()


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
