"""Rewrites on a Spark whose executors are processes of their own: row groups are copied there, whatever befalls them.

A program of its own, because a process can have one Spark only. Prints one JSON object: what each case led to.
"""

import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.jvm.java import find_java
from actor.jvm.spark import SparkSettings, build_session, jvm_process, stop_session
from actor.rewrite.run import RewriteSettings
from services.paths import ivy_dir, java_search
from shared.errors import RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.forced_copies import FORCED_LIMITS
from tests.support.large_files import everything, large_table
from tests.support.waiting import until

CLUSTER = "local-cluster[2,1,1024]"
FORCED = EngineSettings(rewrite=RewriteSettings(reserved_disk_bytes=0), copy_limits=FORCED_LIMITS)


def spark_home(folder: Path) -> Path:
    """Return a Spark whose workers write below `folder`: they write beside their programs."""
    home = folder / "home"
    home.mkdir()
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


@contextmanager
def cluster(folder: Path) -> Iterator[Any]:
    """Two executors with one core each."""
    os.environ |= {"SPARK_HOME": str(spark_home(folder)), "SPARK_LOCAL_IP": "127.0.0.1"}
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    extra = {
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.dynamicAllocation.enabled": "false",  # Both are there from the start.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
    }
    settings = SparkSettings(
        work_dir=folder / "spark", ivy_dir=ivy_dir(os.environ), master=CLUSTER, driver_memory="1g", extra=extra
    )
    spark = build_session(settings, java_home=find_java(java_search(os.environ)).path)
    try:
        yield spark
    finally:
        stop_session(spark)


def executors(spark: Any) -> list[psutil.Process]:
    """The processes of the executors."""
    children = psutil.Process(jvm_process(spark).process.pid).children(recursive=True)
    return [one for one in children if any("CoarseGrainedExecutorBackend" in word for word in one.cmdline())]


def merged(lab: DeltaLab, table: tables.HandTable) -> dict[str, Any]:
    """Merge all files of a table; say how, and what is on disk afterwards."""
    before = everything(table.path)
    group = FileGroup(WHOLE_TABLE, lab.files(table.location), RewriteMode.MINOR)
    (end,) = lab.rewrite(table.location, [group], job="job-x").groups
    outputs = {file.path for file in end.outputs}
    rows = lab.spark.read.format("delta").load(str(table.path)).count()
    return {
        "status": end.status,
        "copied": end.is_copied,
        "because": end.encoded_because,
        "rows": [end.rows, rows],
        "left": sorted(file for file in everything(table.path) - before - outputs if not file.endswith(".crc")),
        "outputs": sorted(outputs),
    }


def killed(lab: DeltaLab, table: tables.HandTable) -> dict[str, Any]:
    """The executors are killed while one of them writes the output."""
    on_disk, seen = everything(table.path), []

    def kill() -> None:
        until("the copy writes", lambda: everything(table.path) - on_disk, seconds=60)
        for process in executors(lab.spark):
            process.kill()
        seen.extend(everything(table.path) - on_disk)

    thread = threading.Thread(target=kill)
    thread.start()
    found = merged(lab, table)
    thread.join()
    return found | {"partial": seen}


def cancelled(lab: DeltaLab, table: tables.HandTable) -> dict[str, Any]:
    """The job is cancelled while an executor writes the output."""
    on_disk = everything(table.path)

    def cancel() -> None:
        until("the copy writes", lambda: everything(table.path) - on_disk, seconds=60)
        lab.engine.cancel("job-x")

    thread = threading.Thread(target=cancel)
    thread.start()
    error = ""
    try:
        merged(lab, table)
    except RetryableError as failure:
        error = str(failure)
    thread.join()
    tracker = lab.spark.sparkContext.statusTracker()
    until("no job runs", lambda: not list(tracker.getActiveJobsIds()), seconds=60)
    until("its file is gone", lambda: everything(table.path) == on_disk, seconds=60)
    return {"error": error, "versions": [table.version, tables.newest(table.path)]}


def main() -> None:
    """Run all cases on one cluster."""
    folder = Path(tempfile.mkdtemp(prefix="lw-cluster-", dir=sys.argv[1]))
    try:
        with cluster(folder) as spark:
            lab = DeltaLab(spark, DeltaEngine(spark, FORCED), folder)
            small = merged(lab, tables.table(folder / "small", files=3))
            table = large_table(folder / "large", files=20)
            ended = cancelled(lab, table)
            lost = killed(lab, table)
        print(json.dumps({"small": small, "cancelled": ended, "killed": lost}, default=str))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
