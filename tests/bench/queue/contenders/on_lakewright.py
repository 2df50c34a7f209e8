"""Lakewright's queue as its actors use it: a thread per slot, each with claims of one job and a finish for each.

It is the only contender here that shares fairly, fences with tokens, keeps a history and survives a lost reply.
"""

import sys
import threading
import uuid

import contest

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands
from shared.queue.model import Band, JobKey, JobRequest, RunResult

QUEUE = "bench"


def enqueue(url: str, count: int) -> None:
    queue = SyncQueueExecutor(connect(url), QUEUE)
    for number in range(count):
        key = JobKey(f"table-{number % 100}", str(number), "compact")
        spec = JobRequest(key, f"tenant-{number % 10}", Band.NORMAL, 5, 1 << 20, 1)
        queue.run(commands.enqueue(QUEUE, spec))


def slot(url: str, name: str) -> None:
    queue = SyncQueueExecutor(connect(url), QUEUE)
    while True:
        claim = commands.claim(QUEUE, worker=name, nonce=uuid.uuid4().hex, slots=1, lease_ms=60_000)
        for job in queue.run(claim):
            contest.no_op()
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
            queue.run(end)


def work(url: str, workers: int) -> None:
    threads = [threading.Thread(target=slot, args=(url, f"w-{number}"), daemon=True) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(contest.run(enqueue, work))
