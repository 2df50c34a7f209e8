"""dramatiq with its Redis broker: one process, a thread per worker."""

import logging
import sys
import threading

import contest
import dramatiq
from dramatiq.brokers.redis import RedisBroker


def actor(url: str) -> tuple[RedisBroker, "dramatiq.Actor[[], None]"]:
    broker = RedisBroker(url=url)
    dramatiq.set_broker(broker)
    return broker, dramatiq.actor(contest.no_op, actor_name="job")


def enqueue(url: str, count: int) -> None:
    _, job = actor(url)
    for _ in range(count):
        job.send()


def work(url: str, workers: int) -> None:
    logging.disable(logging.WARNING)
    broker, _ = actor(url)
    dramatiq.Worker(broker, worker_threads=workers).start()
    threading.Event().wait()


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
