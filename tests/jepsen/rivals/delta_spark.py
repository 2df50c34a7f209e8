"""Delta's own compaction in Spark: OPTIMIZE, and auto compaction, which runs inside the writer.

Sessions commit through the log store that an actor uses, too: Delta's own for local files is not exclusive between
processes, as its documentation says.
"""

import atexit
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.jepsen.rival import BY_SPARK, TARGET_BYTES, AbsentError, Looping, Place, Rival

CONF = "spark.databricks.delta"
SMALL_FILES = 2
"""Files from which on auto compaction runs: as few as Lakewright merges here, not 50."""


def _version() -> str:
    try:
        return f"{metadata.version('delta-spark')}, Spark {metadata.version('pyspark')}"
    except metadata.PackageNotFoundError:
        raise AbsentError("Spark is in the extra `actor`") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimize(Looping):
    """Two threads of one session's process, as a process has a JVM."""

    module: str = __name__
    processes: int = 1
    threads: int = 2

    def version(self) -> str:
        return _version()


@dataclass(frozen=True, slots=True)
class AutoCompaction(Rival):
    """No worker of its own: the writer compacts after its commits."""

    def version(self) -> str:
        return _version()

    def begin(self, place: Place, seed: int) -> Sequence[str]:
        return ()

    def failures(self, log: str) -> Counter[str]:
        return Counter()


RIVALS = (
    Optimize("optimize", "Spark `OPTIMIZE`"),
    AutoCompaction(
        "auto-compaction",
        "Spark auto compaction",
        writers=BY_SPARK,
        spark_conf=(
            f"{CONF}.autoCompact.enabled=true",
            f"{CONF}.autoCompact.maxFileSize={TARGET_BYTES}",
            f"{CONF}.autoCompact.minNumFiles={SMALL_FILES}",
        ),
    ),
)


def compactor(work: Path) -> Callable[[str], Any]:
    """Return what compacts a table; Spark ends with this process."""
    from tests.bench.spark import started_spark

    limits = {f"{CONF}.optimize.{name}": str(TARGET_BYTES) for name in ("minFileSize", "maxFileSize")}
    more = {f"{CONF}.snapshotPartitions": "1", "spark.sql.shuffle.partitions": "1"}
    work.mkdir(exist_ok=True)
    held = ExitStack()
    spark = held.enter_context(started_spark(work, driver_memory="768m", iceberg=False, **limits, **more))
    atexit.register(held.close)
    return lambda table: spark.sql(f"OPTIMIZE delta.`{table}`").collect()
