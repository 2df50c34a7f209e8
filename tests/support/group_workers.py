"""Actors of one group of the queue, with slots that claim jobs and end them without running anything."""

from typing import Any

from actor import queue_executor as for_threads
from actor.presence import ActorInfo, Presence
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.model import Band, Claim, Finished, JobKey, JobRequest, RunResult

QUEUE, ETL = "default", "default/etl"
ACTORS, SLOTS = 2, 5
LEASE_MS = 600_000


class Workers:
    """The actors of one group, each with slots that claim jobs and end them without running anything."""

    def __init__(self, url: str, queue: str) -> None:
        self.queue = queue
        self._client = for_threads.connect(url)
        self.executor = for_threads.SyncQueueExecutor(self._client, queue)
        self.names = [f"{queue.replace('/', '-')}-{number}" for number in range(ACTORS)]
        self.running: list[Claim] = []
        self._nonces = 0
        for name in self.names:
            about = ActorInfo(slots=SLOTS, started_ms=1, host="h", versions={})
            Presence(self.executor, name, about, ttl_ms=LEASE_MS).announce([], busy_slots=0)

    def wait(self, table: str, partition: str) -> None:
        request = JobRequest(JobKey(table, partition, "compact"), "t", Band.NORMAL, 5, 1 << 20, 1)
        self.executor.run(commands.enqueue(QUEUE, request))

    def claim(self, slots: int = 1) -> tuple[Claim, ...]:
        return self.executor.run(self._claim(slots))

    def finish(self, claim: Claim, result: RunResult = RunResult.DONE) -> None:
        self.executor.run(self._finish(claim, result))

    def go_on(self, claim: Claim) -> tuple[Claim, ...]:
        """End a job and claim the next one, in one call."""
        return self.executor.run(commands.finish_and_claim(self._finish(claim, RunResult.DONE), self._claim(1)))[1]

    def _claim(self, slots: int) -> Command[tuple[Claim, ...]]:
        call: dict[str, Any] = {"worker": self._nonce(), "nonce": self._nonce(), "lease_ms": LEASE_MS}
        return commands.claim(self.queue, **call, slots=slots)

    def _finish(self, claim: Claim, result: RunResult) -> Command[Finished]:
        how: dict[str, Any] = {"worker": self._nonce(), "nonce": self._nonce(), "cost_bytes": 1 << 20}
        ended = {"id": claim.id, "token": claim.token, "run_result": result, "seen_version": claim.version}
        return commands.finish(self.queue, **how, **ended)

    def close(self) -> None:
        self._client.close()

    def _nonce(self) -> str:
        self._nonces += 1
        return f"{self.names[0]}-{self._nonces}"
