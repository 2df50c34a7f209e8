"""rq with its SimpleWorker: its default forks a process per job, which would be slower by far."""

import logging
import sys

import contest
from redis import Redis
from rq import Queue, SimpleWorker


def job() -> None:
    contest.no_op()


def enqueue(url: str, count: int) -> None:
    queue = Queue(connection=Redis.from_url(url))
    for _ in range(count):
        queue.enqueue("on_rq.job", result_ttl=0)


def work(url: str, _: int) -> None:
    logging.disable(logging.WARNING)
    connection = Redis.from_url(url)
    SimpleWorker([Queue(connection=connection)], connection=connection).work(logging_level="ERROR")


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
