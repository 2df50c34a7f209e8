"""What a simulation cannot say: bytes in storage and the time of real queries, on a small real table.

The trace of `make bench-delta` is played on real Spark and Delta, left alone and under Lakewright. Then both tables are
queried in turn, so that what else the machine does slows both alike; the CPU seconds of Spark and this process, which
hardly depend on that, are reported beside the time.
"""

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from tests.bench.delta.merging import SparkTable
from tests.bench.delta.ours import Lakewright
from tests.bench.delta.playing import Meter, play, query_texts
from tests.bench.delta.rules import DeltaRule
from tests.bench.delta.trace import Trace, make_trace
from tests.bench.netflix.figures import UNTOUCHED, Figure
from tests.bench.spark import started_spark

ROUNDS, WARM_UPS = 11, 3
"""Rounds in which each query is run once on each table; the first ones do not count."""


def measure(commits: int, seed: int) -> list[Figure]:
    """Return storage and query time as measured; raises RuntimeError if rows differ."""
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-netflix-") as made:
        folder = Path(made)
        trace = make_trace(folder / "trace", commits=commits, seed=seed)
        with started_spark(folder / "spark") as spark:
            done, tables = [], []
            for rule in (DeltaRule(spark), Lakewright(spark, DeltaEngine(spark))):
                tables.append(SparkTable(spark, folder / f"t{len(done)}", rule.configuration()))
                done.append(play(spark, rule, trace, tables[-1]))
            nothing, ours = done
            if nothing.rows != ours.rows:
                raise RuntimeError(f"rows differ: {nothing.rows} left alone, {ours.rows} under Lakewright")
            before, after = _queried(spark, [table.sql_name for table in tables], trace)
    how = f"measured, {nothing.files_end} and {ours.files_end} files"
    three = "of a point, a range and a full query"
    return [
        Figure("query time", f"ms {three}", UNTOUCHED, before[0], after[0], -60, how),
        Figure("query time", f"CPU ms {three}", UNTOUCHED, before[1], after[1], -60, how),
        Figure("storage", "bytes of live files", UNTOUCHED, nothing.bytes_end, ours.bytes_end, -1, how),
    ]


def _queried(spark: SparkSession, tables: Sequence[str], trace: Trace) -> list[tuple[float, float]]:
    """Return for each table the sum over the queries of the median milliseconds, and of the median CPU milliseconds."""
    meter = Meter(spark)
    took: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for _ in range(ROUNDS):
        for table in tables:
            for name, text in query_texts(table, trace).items():
                began = time.perf_counter()
                cpu_s = meter.cpu_s(spark.sql(text).collect)
                took[table, name].append((1e3 * (time.perf_counter() - began), 1e3 * cpu_s))
    sums = []
    for table in tables:
        counted = [took[table, name][WARM_UPS:] for name in query_texts(table, trace)]
        sums.append(tuple(sum(statistics.median(one[at] for one in runs) for runs in counted) for at in (0, 1)))
    return [(wall, cpu) for wall, cpu in sums]
