"""A Spark for tables on S3, in a process of its own: the jars of a session are chosen when its JVM starts."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actor.jvm.java import find_java
from actor.jvm.s3a import hadoop_settings
from actor.jvm.spark import SparkSettings, build_session, stop_session
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search
from shared.paths.store_options import StoreOptions


@contextmanager
def spark_on_s3(options: Mapping[str, str]) -> Iterator[Any]:
    """Start a session for the store with these options, and stop it at the end."""
    prepare({**os.environ, ALLOW_S3: "true"})  # Fetches the jars where no actor has done so before.
    with tempfile.TemporaryDirectory(prefix="lw-spark-s3-") as folder:
        settings = SparkSettings(
            work_dir=Path(folder),
            ivy_dir=ivy_dir(os.environ),
            s3=hadoop_settings(StoreOptions({"": options})),
            extra={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )
        spark = build_session(settings, java_home=find_java(java_search(os.environ)).path)
        try:
            yield spark
        finally:
            stop_session(spark)
