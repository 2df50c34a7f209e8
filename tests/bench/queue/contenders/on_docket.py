"""docket (pydocket), one worker of the given concurrency; its check interval of 250 ms would bound it by itself."""

import asyncio
import logging
import sys
from datetime import timedelta

import contest
from docket import Docket, Worker


async def job() -> None:
    contest.no_op()


def enqueue(url: str, count: int) -> None:
    async def put() -> None:
        async with Docket(name="bench", url=url) as docket:
            docket.register(job)
            for _ in range(count):
                await docket.add(job)()

    asyncio.run(put())


def work(url: str, workers: int) -> None:
    logging.disable(logging.WARNING)

    async def serve() -> None:
        async with Docket(name="bench", url=url) as docket:
            docket.register(job)
            async with Worker(docket, concurrency=workers, minimum_check_interval=timedelta(milliseconds=1)) as worker:
                await worker.run_forever()

    asyncio.run(serve())


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
