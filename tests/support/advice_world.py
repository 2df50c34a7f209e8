"""A decider that looks for advice, and tables whose commits are written as logs, over time that a test moves."""

import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from actor.queue_executor import SyncQueueExecutor, connect
from decider.background.auto_analyze import AGAIN_MS, LIST_EVERY_MS, AdviceSources, AnalysisOutcome, AutoAnalyze
from decider.store.tables.read_counts import SINCE
from shared.jobs.payload import SET_PROPERTIES, JobPayload
from shared.policy.policy import KIB
from shared.queue import commands, keys
from shared.queue.model import Claim, RunResult
from shared.table import Commit, TableId
from tests.support.advised_histories import AdvisedLog, Process, write
from tests.support.live_decider import LiveDecider
from tests.support.queue_bench import end_of
from tests.support.waiting import until

EVENTS = Process(2, 300 * KIB, 0.4, 20, 36, 4)
START_MS = 1_767_225_600_000
DAY_MS = 86_400_000


def report_reads(
    decider: LiveDecider, table: TableId, expression: Mapping[str, object], per_day: int, *, days: int = 4
) -> None:
    """Have reads of a table with a filter counted, as if they had been reported on each of the last days."""
    decider.run(decider.services.queue.reads.add(table, 1, {json.dumps(expression): per_day * days}))
    today = int(time.time() * 1000) // DAY_MS
    counts = {str(today - ago): per_day for ago in range(days)}
    since = {SINCE: (today - days + 1) * DAY_MS}
    decider.run(decider.services.operations.redis.hset(keys.reads(table), mapping={**counts, **since}))


class AdviceWorld:
    """A decider with an AutoAnalyze whose clock the test moves, and tables that are written as logs."""

    def __init__(self, decider: LiveDecider, folder: Path, *, share: float = 1.0) -> None:
        self.decider = decider
        self.folder = folder
        self._queue = SyncQueueExecutor(connect(decider.settings.redis_url), "default")
        self.now_ms = START_MS + 10 * DAY_MS
        self.logs: dict[str, AdvisedLog] = {}
        self.commits: dict[str, tuple[Commit, ...]] = {}
        services = decider.services
        self.analyze = AutoAnalyze(
            services.tables.advice,
            AdviceSources(
                services.tables.registry,
                services.tables.states,
                services.tables.formats,
                services.tables.defaults,
                services.queue.reads,
                services.requests.tracker.twins,
            ),
            share=share,
            has_jobs=self.has_jobs,
            is_needed=lambda: False,
            now_ms=lambda: self.now_ms,
        )

    async def has_jobs(self) -> bool:
        """Return that there are none, lest each pass take ten times as long."""
        return False

    def table(
        self,
        name: str,
        *,
        commits: int = 80,
        seed: int = 1,
        process: Process = EVENTS,
        bounds: tuple[str, str] | None = None,
        **log_options: bool,
    ) -> str:
        self.logs[name] = log = AdvisedLog(self.folder / name, START_MS, bounds=bounds, **log_options)
        self.commits[name] = write(process, seed, 500)
        log.write(self.commits[name][:commits])
        return self.decider.register(log.path, name)

    def go_on(self, name: str, commits: int) -> None:
        """Write further commits, and have them read."""
        log = self.logs[name]
        log.write(self.commits[name][log.version : log.version + commits])
        self.decider.sweep()

    def report_reads(self, name: str, expression: Mapping[str, object], per_day: int, *, days: int = 4) -> None:
        """Have reads with a filter counted, as if they had been reported on each of the last days."""
        report_reads(self.decider, self.decider.get(f"/v1/tables/{name}")["id"], expression, per_day, days=days)

    def run_once(self) -> AnalysisOutcome:
        return self.decider.run(self.analyze.run_once()).outcome

    def later(self) -> AnalysisOutcome:
        """Analyze a day later."""
        self.now_ms += AGAIN_MS + LIST_EVERY_MS
        return self.run_once()

    def apply(self, name: str, **asked: bool) -> httpx.Response:
        """Apply the advice for a table; from here on, the ends of runs are noted."""
        self.decider.run(self.decider.task("applied_advice").run_once())
        return self.decider.post(f"/v1/tables/{name}/advice/{self.advice(name)['id']}/apply", asked)

    def claim(self) -> Claim:
        """Claim the job that is to alter a table, as an actor does."""
        claims = self._queue.run(
            commands.claim(
                "default",
                worker="w",
                nonce=secrets.token_hex(8),
                slots=1,
                lease_ms=60_000,
                abilities=["delta/set_properties"],
            )
        )
        (claim,) = claims
        assert claim.key.kind == SET_PROPERTIES
        return claim

    def finish(self, claim: Claim, result: RunResult, report: Mapping[str, object], error: str = "") -> None:
        self._queue.run(end_of(claim, result, cost_bytes=0, seen_version=-1, result=json.dumps(report), error=error))

    def alter(self, name: str) -> int:
        """Run the job as an actor does, without Spark; return the version that it made."""
        claim, log = self.claim(), self.logs[name]
        values = JobPayload.decode(claim.payload).options["values"]
        version = log.alter(values, self.commits[name][log.version - 1].timestamp_ms)
        report = {"versions": [version], "seen_version": version - 1, "measured": {"changed": len(values)}}
        self.finish(claim, RunResult.DONE, report)
        until("the advice is applied", lambda: self.advice(name)["status"] != "applying")
        self.decider.drain()
        return version

    def advice(self, name: str) -> dict:
        return self.decider.get(f"/v1/tables/{name}/advice")["advice"]

    def cli(self, *arguments: str) -> str:
        ran = self.decider.command(*arguments)
        assert ran.exit_code == 0, ran.output
        return ran.output
