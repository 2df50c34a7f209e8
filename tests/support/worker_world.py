"""A worker with a queue and a table in memory, and one job for it."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from actor.engines import EngineSet
from actor.lease import Lease
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import RetryableError
from shared.jobs.payload import JobPayload, PredictedCost
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.policy.properties import policy_digest
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import Claim
from tests.support.fake_queue import FakeQueue
from tests.support.memory_engine import MemoryEngine

POLICY = Policy(target_bytes=8 * MIB)
EIGHT = [100_000] * 8
PAYLOAD = JobPayload("memory://t", "t", POLICY, "eligible", PredictedCost(8, 7, 800_000), policy_digest({}))


def finish_args(command: Command[Any]) -> tuple[Any, ...]:
    """Return what a call reports of the end of a job; () if it ends none."""
    if command.script is ScriptName.FINISH_AND_CLAIM:
        return command.args[1 + int(command.args[0]) :]
    return command.args if command.script is ScriptName.FINISH else ()


class Heart:
    """Stands for the heartbeat: it notes what it was asked, and `may` returns whether a commit is allowed."""

    lease_ms = 2000
    is_busy = staticmethod(lambda: False)

    def __init__(self) -> None:
        self.held: list[tuple[Lease, float]] = []
        self.released: list[Lease] = []
        self.asked: list[Lease] = []
        self.may: Callable[[], None] = lambda: None

    def track(self, claim: Claim, *, sent_at_s: float) -> Lease:
        lease = Lease(claim, valid_until_s=1e9, clock=lambda: 0.0)
        self.held.append((lease, sent_at_s))
        return lease

    def release(self, lease: Lease) -> None:
        self.released.append(lease)

    def revalidate(self, *leases: Lease) -> None:
        self.asked += leases
        self.may()


class World:
    """A worker, one job for it, and what it said of its end."""

    def __init__(self, *sizes: int, payload: JobPayload = PAYLOAD, previous: str = "", extent: int = 0) -> None:
        self.engine = MemoryEngine(sizes or EIGHT)
        self.heart = Heart()
        self.queue = FakeQueue(self.answer)
        self.stopping = threading.Event()
        self.actor = ActorContext("a-1", self.heart, self.stopping)
        self.payload, self.previous, self.extent = payload, previous, extent
        self.claims = 1
        self.deaths = 0
        self.kind = "compact"
        self.partition = WHOLE_TABLE
        self.refusals = ""
        self.claimed_at = 0.0
        self.finish_fails = 0

    def answer(self, transition: Command) -> Any:
        if transition.script is ScriptName.CLAIM:
            return self.claimed()
        if self.finish_fails:
            self.finish_fails -= 1
            raise RetryableError("no answer")
        return f"deleted {self.claimed()}" if transition.script is ScriptName.FINISH_AND_CLAIM else "deleted"

    def claimed(self) -> str:
        self.claimed_at = time.monotonic()
        while time.monotonic() == self.claimed_at:
            pass
        self.claims -= 1
        job = ["j-1", "t-1", self.partition, self.kind, "default", "1", "5", "7", self.previous, "0", "1", "1"]
        rest = [str(self.extent), "0", self.payload.encode(), "0", "0", str(self.deaths), self.refusals]
        return json.dumps([[*job, *rest]] if self.claims >= 0 else [])

    def run(self, **settings: Any) -> bool:
        return Worker(
            EngineSet([self.engine]), self.queue, self.actor, WorkerSettings(idle_s=0.001, **settings)
        ).run_next()

    @property
    def lease(self) -> Lease:
        return self.heart.held[0][0]

    def ends(self) -> list[dict[str, Any]]:
        """The arguments of each `finish`, by what they mean, whether or not a claim was made with it."""
        names = ("worker", "nonce", "id", "token", "verdict", "cost", "seen", "result", "error", "refusals")
        return [dict(zip(names, args, strict=False)) for args in map(finish_args, self.queue.sent) if args]

    def end(self) -> dict[str, Any]:
        (end,) = self.ends()
        return end
