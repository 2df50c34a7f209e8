"""A queue on a real server with a clock turned by hand, and calls with all filled in that does not matter."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

import redis

from actor import queue_executor as for_threads
from decider.store.redis import queue_executor as for_asyncio
from shared.queue import audit, commands, keys, queries
from shared.queue.command import Command
from shared.queue.lua_library import ScriptLibrary
from shared.queue.model import (
    ALONE,
    Band,
    Claim,
    Enqueued,
    Finished,
    FinishOutcome,
    HeartbeatEntry,
    HeartbeatReply,
    Ingested,
    JobId,
    JobKey,
    JobRequest,
    RunResult,
    Share,
)
from shared.queue.records import JobView
from shared.queue.settings import QueueSettings
from shared.retry import RetryPolicy
from tests.support.queue_state import State, TestClock, read_state
from tests.support.time_limits import scaled

R = TypeVar("R")


class Executor(Protocol):
    """Runs transitions of one queue."""

    def run(self, transition: Command[R]) -> R:
        """Carry out one transition."""


class _Asyncio:
    def __init__(self, queue: for_asyncio.AsyncQueueExecutor, runner: asyncio.Runner) -> None:
        self._queue = queue
        self._runner = runner

    def run(self, transition: Command[Any]) -> Any:
        return self._runner.run(self._queue.run(transition))


@contextmanager
def sync_executor(url: str, queue: str, library: ScriptLibrary | None, tries: RetryPolicy) -> Iterator[Executor]:
    with closing(for_threads.connect(url, timeout_s=scaled(2.0))) as client:
        yield for_threads.SyncQueueExecutor(client, queue, library=library, retry_policy=tries)


@contextmanager
def async_executor(url: str, queue: str, library: ScriptLibrary | None, tries: RetryPolicy) -> Iterator[Executor]:
    with asyncio.Runner() as runner:
        client = for_asyncio.connect(url, timeout_s=scaled(2.0))
        try:
            yield _Asyncio(for_asyncio.AsyncQueueExecutor(client, queue, library=library, retry_policy=tries), runner)
        finally:
            runner.run(client.aclose())


EXECUTORS = {"sync": sync_executor, "async": async_executor}


def repaired(queue: Any, client: redis.Redis) -> Iterator[int]:
    """Yield the number of things that each call repaired."""
    yield from repaired_by(queue, queue.name, client)


def repaired_by(executor: Executor, queue: str, client: redis.Redis) -> Iterator[int]:
    """The same by an executor that does not say which queue it serves."""
    found = [one for key in client.scan_iter(match=keys.all_keys(queue)) if (one := audit.parse_key(queue, key))]
    for asked in (*audit.steps(queue, found), *audit.final_steps(queue, found)):
        yield from _pages(executor, asked)


def _pages(queue: Executor, asked: Command[Any]) -> Iterator[int]:
    call: Command[Any] | None = asked
    while call is not None:
        reply = queue.run(call)
        if isinstance(reply, int):
            yield reply
            return
        yield reply.repaired
        call = audit.next_page(call, reply)


QUEUE = "default"
LEASE_MS = 60_000
SETTINGS = QueueSettings(max_attempts=3)


def spec(
    version: int = 1, *, partition: str = "{}", table: str = "t-1", band: Band = Band.NORMAL, **more: Any
) -> JobRequest:
    values = {"tenant": "acme", "priority": 5, "cost_bytes": 1 << 20, "payload": f'{{"v":{version}}}', **more}
    return JobRequest(JobKey(table, partition, "compact"), band=band, version=version, **values)


def end_of(claim: Claim, run_result: RunResult = RunResult.DONE, **more: Any) -> Command[Finished]:
    """Return the end of a run by the worker `w`, as it was foreseen but for what is given."""
    foreseen = {"nonce": f"end-{claim.token}", "cost_bytes": claim.cost_bytes, "seen_version": claim.version}
    values = {"worker": "w", **foreseen, **more}
    return commands.finish(QUEUE, id=claim.id, token=claim.token, run_result=run_result, **values)


class Bench:
    """An executor, its clock, and calls with what does not matter filled in."""

    def __init__(self, executor: Executor, client: redis.Redis) -> None:
        self.executor = executor
        self.client = client
        self.clock = TestClock(client, QUEUE)
        self._nonces = (f"n{number}" for number in itertools.count())
        self.run = executor.run
        self.run(commands.configure(QUEUE, asdict(SETTINGS)))

    def nonce(self) -> str:
        """A name for a call that none before had."""
        return next(self._nonces)

    def enqueue(self, request: JobRequest) -> Enqueued:
        return self.run(commands.enqueue(QUEUE, request))

    def claim(
        self, slots: int = 1, *, worker: str = "w-1", nonce: str = "", share: Share = ALONE, is_busy: bool = False
    ) -> tuple[Claim, ...]:
        call = {"worker": worker, "nonce": nonce or next(self._nonces), "is_busy": is_busy}
        return self.run(commands.claim(QUEUE, **call, slots=slots, lease_ms=LEASE_MS, share=share))

    def beat(self, claim: Claim, progress: str = "", *, is_busy: bool = False) -> HeartbeatReply:
        beats = [HeartbeatEntry(claim.id, claim.token, progress)]
        return self.run(commands.heartbeat(QUEUE, worker="w-1", beats=beats, lease_ms=LEASE_MS, is_busy=is_busy))[0]

    def finish(
        self, claim: Claim, verdict: RunResult = RunResult.DONE, *, seen: int | None = None, **more: Any
    ) -> FinishOutcome:
        values = {"worker": "w-1", "nonce": next(self._nonces), **more}
        values |= {} if seen is None else {"seen_version": seen}
        return self.run(end_of(claim, verdict, **values)).outcome

    def finish_and_claim(
        self, claim: Claim, verdict: RunResult = RunResult.DONE, *, nonce: str = "", share: Share = ALONE
    ) -> tuple[FinishOutcome, tuple[Claim, ...]]:
        end = end_of(claim, verdict, worker="w-1", nonce=nonce or next(self._nonces))
        call = {"worker": "w-1", "nonce": next(self._nonces)}
        take = commands.claim(QUEUE, **call, slots=1, lease_ms=LEASE_MS, share=share)
        finished, claims = self.run(commands.finish_and_claim(end, take))
        return finished.outcome, claims

    def ingest(self, expected: int, version: int, **more: Any) -> Ingested:
        values = {"table": "t-1", "state_fields": {"version": str(version)}, "partitions": {}, **more}
        return self.run(commands.ingest(QUEUE, expected_version=expected, **values))

    def find(self, request: JobRequest | None = None) -> JobView | None:
        return self.run(queries.job(QUEUE, (request or spec()).id))

    def find_id(self, job: JobId) -> JobView:
        """The job of this id, which is there."""
        found = self.run(queries.job(QUEUE, job))
        assert found is not None, "the job is gone"
        return found

    def job(self, request: JobRequest | None = None) -> JobView:
        found = self.find(request)
        assert found is not None, "the job is gone"
        return found

    def wait_ms(self) -> int:
        """How long the job has to wait until it is ready."""
        ready_at_ms = self.job().ready_at_ms
        assert ready_at_ms is not None
        return ready_at_ms - self.clock.now_ms

    def state(self) -> State:
        return read_state(self.client, QUEUE)
