"""One Spark with Delta for all tests of a session, found the way an actor finds it."""

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from actor.jvm.java import JavaSearch, find_java
from actor.jvm.spark import SparkSettings, build_session, stop_session
from shared.errors import InvalidInput
from tests.support.time_limits import scaled

# Tests run each path a few times only: the first compiler of the JVM serves them better than the second, and Spark
# spends a fifth of their CPU seconds on compiling expressions for a handful of rows. The laboratory, the soak and the
# tests with real actors compile as in production.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn400m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",  # The tables have a handful of files.
    "spark.sql.shuffle.partitions": "1",
    "spark.buffer.pageSize": "256k",  # Else each sort and each aggregate clears tens of megabytes for its rows.
}
ROOT = Path(__file__).resolve().parents[2]


def start_spark(work_dir: Path) -> SparkSession:
    """Start Spark, or skip with the reason if this machine has no Java for it."""
    search = JavaSearch(
        work_dir=work_dir,
        choice=os.environ.get("LAKEWRIGHT_JAVA", "auto"),
        java_home=os.environ.get("JAVA_HOME", ""),
        path=os.environ.get("PATH", ""),
    )
    try:
        java = find_java(search)
    except InvalidInput as error:
        pytest.skip(f"no Java for Spark: {error}")
    ivy_dir = Path(os.environ.get("LAKEWRIGHT_IVY_DIR", ROOT / ".cache" / "ivy"))
    settings = SparkSettings(work_dir=work_dir, ivy_dir=ivy_dir, driver_memory="1400m", iceberg=True, extra=QUICK)
    return build_session(settings, java_home=java.path)


def stop_spark(spark: SparkSession) -> None:
    """Stop the application and its JVM, and wait until it has gone; another can be started then."""
    gateway = SparkContext._gateway
    try:
        if gateway.proc.poll() is None:
            stop_session(spark)
        else:
            _let_go(spark.sparkContext, gateway)
    finally:
        gateway.proc.stdin.close()
        gateway.proc.wait(scaled(60))
        # PySpark keeps all this in its classes, and would give the dead JVM to the next session.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _let_go(context: SparkContext, gateway: Any) -> None:
    """End the threads that PySpark and py4j keep for a JVM; the JVM itself is dead, and stopping it would fail."""
    context._jsc = None
    context.stop()
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
