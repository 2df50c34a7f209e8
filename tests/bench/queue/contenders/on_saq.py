"""SAQ with its defaults."""

import asyncio
import logging
import sys
from typing import Any

import contest
from saq import Queue, Worker


async def job(_: dict[str, Any]) -> None:
    contest.no_op()


def enqueue(url: str, count: int) -> None:
    async def put() -> None:
        queue = Queue.from_url(url)
        for _ in range(count):
            await queue.enqueue("job")

    asyncio.run(put())


def work(url: str, workers: int) -> None:
    logging.disable(logging.WARNING)

    async def serve() -> None:
        await Worker(Queue.from_url(url), functions=[("job", job)], concurrency=workers).start()

    asyncio.run(serve())


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
