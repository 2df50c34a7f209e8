"""What a simulation cannot say: bytes in storage and the time of real queries, on a small real table.

The trace of `make bench-delta` is played on real Spark and Delta, left alone and under Lakewright.
"""

import tempfile
from pathlib import Path

from actor.formats.delta.engine import DeltaEngine
from tests.bench.delta.merging import SparkTable
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.playing import play
from tests.bench.delta.rules import LeaveAlone
from tests.bench.delta.trace import make_trace
from tests.bench.netflix.figures import UNTOUCHED, Figure
from tests.bench.spark import started_spark


def measure(commits: int, seed: int) -> list[Figure]:
    """Return storage and query time as measured; raises RuntimeError if rows differ."""
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-netflix-") as made:
        folder = Path(made)
        trace = make_trace(folder / "trace", commits=commits, seed=seed)
        with started_spark(folder / "spark") as spark:
            done = []
            for rule in (LeaveAlone(spark), Lakewright(spark, DeltaEngine(spark))):
                table = SparkTable(spark, folder / f"t{len(done)}", rule.configuration())
                done.append(play(spark, rule, trace, table))
        nothing, ours = done
        if nothing.rows != ours.rows:
            raise RuntimeError(f"rows differ: {nothing.rows} left alone, {ours.rows} under Lakewright")
    how = "measured"
    before_ms, after_ms = (sum(one.queries_ms.values()) for one in done)
    return [
        Figure("query time", "ms of a point, a range and a full query", UNTOUCHED, before_ms, after_ms, -60, how),
        Figure("storage", "bytes of live files", UNTOUCHED, nothing.bytes_end, ours.bytes_end, -1, how),
    ]
