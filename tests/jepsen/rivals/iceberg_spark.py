"""Iceberg's own compaction in Spark: `rewrite_data_files`."""

import atexit
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jepsen.rival import BY_PYICEBERG, CATALOG, TARGET_BYTES, Looping


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteDataFiles(Looping):
    """Two threads of one session's process, as a process has a JVM."""

    module: str = __name__
    processes: int = 1
    threads: int = 2

    def version(self) -> str:
        from actor.jvm.jars import ICEBERG

        return ICEBERG.packages[0].rpartition(":")[2]


RIVALS = (RewriteDataFiles("rewrite-data-files", "Iceberg `rewrite_data_files`", writers=BY_PYICEBERG),)


def compactor(work: Path) -> Callable[[str], Any]:
    """Return what compacts a table; Spark ends with this process."""
    from tests.bench.spark import started_spark
    from tests.support.iceberg_rest_lake import spark_conf

    conf = spark_conf(json.loads(os.environ[CATALOG]))
    work.mkdir(exist_ok=True)
    held = ExitStack()
    spark = held.enter_context(started_spark(work, driver_memory="768m", iceberg=True, **conf))
    atexit.register(held.close)
    sizes = f"map('min-input-files', '2', 'target-file-size-bytes', '{TARGET_BYTES}')"
    call = "CALL lake.system.rewrite_data_files(table => '{table}', options => {sizes})"
    return lambda table: spark.sql(call.format(table=table, sizes=sizes)).collect()
