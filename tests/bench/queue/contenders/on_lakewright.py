"""Lakewright's queue as its actors use it: a thread per slot, each of which ends a job and claims the next in one call.

It is the only contender here that shares fairly, fences with tokens, keeps a history and survives a lost reply.
"""

import sys
import threading
import uuid

import contest

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.model import Band, Claim, JobKey, JobRequest, RunResult

QUEUE = "bench"


def enqueue(url: str, count: int) -> None:
    queue = SyncQueueExecutor(connect(url), QUEUE)
    for number in range(count):
        key = JobKey(f"table-{number % 100}", str(number), "compact")
        spec = JobRequest(key, f"tenant-{number % 10}", Band.NORMAL, 5, 1 << 20, 1)
        queue.run(commands.enqueue(QUEUE, spec))


def slot(url: str, name: str) -> None:
    queue = SyncQueueExecutor(connect(url), QUEUE)

    def claim() -> Command[tuple[Claim, ...]]:
        return commands.claim(QUEUE, worker=name, nonce=uuid.uuid4().hex, slots=1, lease_ms=60_000)

    while True:
        jobs = queue.run(claim())
        while jobs:
            contest.no_op()
            (job,) = jobs
            end = commands.finish(
                QUEUE,
                worker=name,
                nonce=uuid.uuid4().hex,
                id=job.id,
                token=job.token,
                run_result=RunResult.DONE,
                cost_bytes=job.cost_bytes,
                seen_version=1,
            )
            _, jobs = queue.run(commands.finish_and_claim(end, claim()))


def work(url: str, workers: int) -> None:
    threads = [threading.Thread(target=slot, args=(url, f"w-{number}"), daemon=True) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
