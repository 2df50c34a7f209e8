"""One Spark with Delta for all tests of a session, found the way an actor finds it."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from actor.delta.java import JavaSearch, find_java
from actor.delta.spark import SparkSettings, build_session, stop_session
from shared.errors import InvalidInput

# Tests run each path a few times only: the first compiler of the JVM serves them better than the second.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.databricks.delta.snapshotPartitions": "1",  # The tables have a handful of files.
    "spark.sql.shuffle.partitions": "1",
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
    settings = SparkSettings(work_dir=work_dir, ivy_dir=ivy_dir, driver_memory="1g", extra=QUICK)
    return build_session(settings, java_home=java.path)


def stop_spark(spark: SparkSession) -> None:
    """Stop the application and its JVM, and wait until it has gone."""
    process = spark.sparkContext._gateway.proc
    stop_session(spark)
    process.wait(60)
