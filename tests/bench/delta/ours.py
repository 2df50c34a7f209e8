"""Lakewright under the trace: the real follower and the real worker, with a real Redis between them, in this process.

Each commit is followed when two more commits have come, and the jobs that are ready are done: a run is the same every
time, and lags behind as an actor with other work to do does. Clocks go by the trace, a minute for each commit. In
production both are processes of their own.
"""

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from actor.ports import TableEngine
from decider.formats.registry import TableFormats
from shared.policy.policy import Policy
from shared.queue import keys
from shared.table import TableId, TableRef
from tests.bench.delta.predictions import Predictions, Rates, decode_rates
from tests.bench.delta.rules import TARGET_BYTES, DeltaRule
from tests.bench.delta.table import MINUTE_MS, PlayedTable
from tests.bench.rewrite.phases import Phases
from tests.bench.services import Services

QUEUE = "default"
LAG_COMMITS = 2
FOLLOWING, WORKING = "decider: follow the log and decide", "worker: claims and jobs, all below"


class Lakewright(DeltaRule):
    """Follow each commit, decide, and do the jobs."""

    title = "Lakewright"

    def __init__(self, spark: SparkSession, engine: TableEngine, formats: TableFormats | None = None) -> None:
        super().__init__(spark)
        self._engine = engine
        self._formats = formats

    def begin(self, table: PlayedTable) -> None:
        super().begin(table)
        policy = Policy(target_bytes=TARGET_BYTES)
        self.services = Services(self._engine, QUEUE, policy, self._formats, begins_ms=table.begins_ms)
        self._reader = self.services.redis.client()
        self._ref = TableRef(TableId("bench"), "bench", table.path.as_uri())
        self._versions: list[int] = []
        self._phases, self._looks, self._costs = Phases(), 0, Predictions()
        self.services.run(self.services.tracker.follow(self._ref))

    def look(self) -> None:
        self._versions.append(self.newest_version())

    def after(self, number: int) -> None:
        self.services.pass_time(MINUTE_MS)
        if len(self._versions) > LAG_COMMITS:
            with self._phases.measured():
                self._looks += 1
                self._timed(FOLLOWING, self._follow)
                self._timed(WORKING, self._work)

    def _follow(self) -> None:
        self.services.run(self.services.tracker.follow(self._ref, self._versions[-1 - LAG_COMMITS]))

    def _work(self) -> None:
        known = self._rates()
        while self.services.worker.run_next():
            before, known = known, self._rates()
            self._costs.learn(before, known)

    def _rates(self) -> Rates:
        """Return what the queue has learned of the table's runs; by a client beside those that are measured."""
        return decode_rates(self._reader.hgetall(keys.rates(QUEUE, self._ref.id)))

    def _timed(self, phase: str, work: Callable[[], None]) -> None:
        began_s = time.perf_counter()
        work()
        self._phases.ms[phase] += 1e3 * (time.perf_counter() - began_s)

    def parts(self) -> list[str]:
        """Return what each part took, as lines: wall milliseconds for each rewrite; some are within others."""
        rewrites = max(1, self.table.rewrites)
        lines = [f"    {ms / rewrites:6.1f} ms  {phase}" for phase, ms in self._phases.ms.most_common()]
        return [f"  {rewrites} rewrites, {self._looks} looks of the decider; for each rewrite:", *lines]

    def newest_version(self) -> int:
        """Return the version of the newest commit."""
        return self.table.follow() - 1

    def end(self) -> None:
        print("\n".join([*self.parts(), str(self._costs)]), flush=True)
        self._reader.close()
        self.services.close()

    def cost_error(self) -> float | None:
        return self._costs.error
