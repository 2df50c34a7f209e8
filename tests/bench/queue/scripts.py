"""Server time per script: `python -m tests.bench.queue.scripts [jobs] [setting=value …]`, on a queue of that many jobs.

The time is the server's own of each call (INFO commandstats). Calls are sent fifty at a time, so that the server is at
work and not woken for each: that is how it stands at its limit, where its time counts. The median of the batches is the
figure, because other work spoils some of them; the least is beside it. Settings are those of the embedded server.
"""

import itertools
import sys
from collections.abc import Iterable
from statistics import median
from typing import Any

import redis

from services.standalone.redis_server import LISTPACK_VALUE_BYTES
from shared.queue import commands, queries
from shared.queue.command import Command
from shared.queue.lua_library import ScriptLibrary
from shared.queue.model import Band, Claim, HeartbeatEntry, JobKey, JobRequest, JobState, RunResult
from tests.support.redis_server import RedisServer

QUEUE = "bench"
BATCH = 50
EMBEDDED = (("hash-max-listpack-value", str(LISTPACK_VALUE_BYTES)),)
"""What the embedded server is told beyond its defaults, as far as it costs or saves time or memory."""

TABLES = 2_000
TENANTS = 50
LEASE_MS = 3_600_000
PAYLOAD = (
    '{"location":"s3://bucket/warehouse/db/table","reason":"eligible","policy":{"target_bytes":134217728},"pad":"%s"}'
)


def spec(number: int, version: int = 1) -> JobRequest:
    table = number % TABLES
    key = JobKey(f"db-table-{table:05d}-abcdef12", f'{{"day":"{number:06d}"}}', "compact")
    cost = (number * 7_919 % 4_096 + 1) << 20
    return JobRequest(
        key, f"tenant-{table % TENANTS}", Band(number % 4), number % 10, cost, version, PAYLOAD % ("x" * 100)
    )


def finish(number: int, claim: Claim, verdict: RunResult, factor: float = 1.0) -> Command[Any]:
    return commands.finish(
        QUEUE,
        worker="w",
        nonce=f"f{number}",
        id=claim.id,
        token=claim.token,
        run_result=verdict,
        cost_bytes=int(claim.cost_bytes * factor),
        seen_version=9,
        result='{"versions":[1],"measured":{}}',
        counters={"runs": 1, "bytes": claim.cost_bytes, "files": 40},
    )


def ingest(number: int) -> Command[Any]:
    request = spec(number)
    return commands.ingest(
        QUEUE,
        table=request.key.table,
        expected_version=number // TABLES,
        state_fields={"version": str(number // TABLES + 1), "metadata": "x" * 300},
        partitions={f"day={day}": "s" * 200 for day in range(3)},
        jobs=[request],
        ledger=[("r" * 300, 0), ("r" * 300, -1)],
        counters={"commits": 1},
    )


def first_sight(number: int) -> Command[Any]:
    """Give a table the cursor without which it is none, and nothing is counted for it."""
    cursor = {"version": "0", "metadata": "x" * 300}
    return commands.ingest(QUEUE, table=spec(number).key.table, expected_version=-1, state_fields=cursor, partitions={})


class Bench:
    """Runs batches of transitions and prints what the server says of each."""

    def __init__(self, server: RedisServer) -> None:
        self.client: redis.Redis = server.client()
        self.library = ScriptLibrary()
        self.client.function_load(self.library.text, replace=True)
        self.server_us: dict[str, float] = {}
        self.least_us: dict[str, float] = {}
        self.bytes_per_job = 0

    def measure(self, name: str, calls: Iterable[Command[Any]]) -> list[Any]:
        replies: list[Any] = []
        per_call_us: list[float] = []
        waiting = iter(calls)
        while batch := list(itertools.islice(waiting, BATCH)):
            self.client.config_resetstat()
            replies += self.send(batch)
            stats: Any = self.client.info("commandstats")
            per_call_us.append(stats["cmdstat_fcall"]["usec"] / len(batch))
        self.server_us[name] = round(median(per_call_us), 1)
        self.least_us[name] = round(min(per_call_us), 1)
        print(f"{name:28s} {self.server_us[name]:8.1f} us, least {self.least_us[name]:8.1f}  ({len(replies)} calls)")
        sys.stdout.flush()
        return replies

    def send(self, batch: list[Command[Any]]) -> list[Any]:
        pipeline = self.client.pipeline(transaction=False)
        for call in batch:
            pipeline.fcall(self.library.function(call.script), len(call.keys), *call.keys, *call.args)
        return [call.decode(raw) for call, raw in zip(batch, pipeline.execute(), strict=True)]

    def memory(self) -> int:
        info: Any = self.client.info("memory")
        return int(info["used_memory"])

    def run(self, jobs: int) -> None:
        self.send([first_sight(number) for number in range(TABLES)])
        before = self.memory()
        self.measure("enqueue new", (commands.enqueue(QUEUE, spec(number)) for number in range(jobs)))
        self.bytes_per_job = round((self.memory() - before) / jobs)
        print(f"{'memory per queued job':28s} {self.bytes_per_job:8d} B")
        again = range(0, jobs, max(1, jobs // 20_000))
        self.measure("enqueue again", (commands.enqueue(QUEUE, spec(number)) for number in again))
        held = [claim for batch in self.measure("claim 1", self.claims("a", 4_000, 1)) for claim in batch]
        self.measure("claim 8", self.claims("b", 200, 8))
        self.measure("heartbeat of 1", (self.beat([claim]) for claim in held))
        self.measure("heartbeat of 10", (self.beat(held[first : first + 10]) for first in range(0, 2_000, 10)))
        self.measure("finish done", (finish(n, held[n], RunResult.DONE) for n in range(1_000)))
        self.measure(
            "finish done, cost corrected", (finish(n, held[n], RunResult.DONE, 1.3) for n in range(1_000, 2_000))
        )
        self.measure("finish done and claim 1", self.ends_and_claims(held[3_000:]))
        self.measure("finish fail", (finish(n, held[n], RunResult.FAIL) for n in range(2_000, 2_500)))
        self.measure("finish yield", (finish(n, held[n], RunResult.YIELD) for n in range(2_500, 3_000)))
        self.measure("ingest 3 partitions, 1 job", (ingest(number) for number in range(2 * TABLES)))
        self.measure("view", (queries.job(QUEUE, spec(number).id) for number in range(1_000)))
        self.measure("list of 50", (queries.jobs(QUEUE, JobState.QUEUED, offset=50 * page) for page in range(20)))
        self.measure("depth", [queries.depth(QUEUE)] * 500)
        self.measure("order of the next 20", [queries.order(QUEUE, claims=20)] * 100)

    def claims(self, series: str, count: int, slots: int) -> Iterable[Command[Any]]:
        for number in range(count):
            nonce = f"{series}{number}"
            yield commands.claim(QUEUE, worker="w", nonce=nonce, slots=slots, lease_ms=LEASE_MS)

    def ends_and_claims(self, held: list[Claim]) -> Iterable[Command[Any]]:
        for number, (claimed, claim) in enumerate(zip(held, self.claims("c", len(held), 1), strict=True), 3_000):
            yield commands.finish_and_claim(finish(number, claimed, RunResult.DONE), claim)

    def beat(self, claims: list[Claim]) -> Command[Any]:
        beats = [HeartbeatEntry(claim.id, claim.token, '{"groups":3}') for claim in claims]
        return commands.heartbeat(QUEUE, worker="w", beats=beats, lease_ms=LEASE_MS)


def main() -> None:
    settings = tuple(argument.split("=", 1) for argument in sys.argv[2:])
    extra = (*EMBEDDED, *((name, value) for name, value in settings))
    with RedisServer(appendfsync="everysec", extra=extra) as server:
        Bench(server).run(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)


if __name__ == "__main__":
    main()
