"""Rewrites tables on S3 by copying row groups, in a Spark of its own; prints what became of each as one JSON object."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.formats.delta.transaction import TransactionSettings
from actor.jvm.java import find_java
from actor.jvm.s3a import hadoop_settings
from actor.jvm.spark import SparkSettings, build_session, stop_session
from actor.ports import RewriteRequest
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup, RewriteMode
from shared.locations import hadoop_path
from shared.partitions import WHOLE_TABLE
from shared.store_options import StoreOptions
from tests.support.delta_lab import mark
from tests.support.forced_copies import FORCED_LIMITS
from tests.support.steering import Steering

FORCED = TransactionSettings(copy_limits=FORCED_LIMITS)


def main() -> None:
    """Merge all files of each table that the command names."""
    options, *locations = json.loads(sys.argv[1])
    prepare({**os.environ, ALLOW_S3: "true"})  # Fetches the jars where no actor has done so before.
    with tempfile.TemporaryDirectory(prefix="lw-copy-s3-") as folder:
        settings = SparkSettings(
            work_dir=Path(folder),
            ivy_dir=ivy_dir(os.environ),
            s3=hadoop_settings(StoreOptions({"": options})),
            extra={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )
        spark = build_session(settings, java_home=find_java(java_search(os.environ)).path)
        try:
            engine = DeltaEngine(spark, EngineSettings(allow_s3=True, transaction=FORCED))
            print(json.dumps({location: _merged(spark, engine, location) for location in locations}))
        finally:
            stop_session(spark)


def _merged(spark: Any, engine: DeltaEngine, location: str) -> dict[str, Any]:
    group = FileGroup(WHOLE_TABLE, engine.read_partition(location, WHOLE_TABLE).files, RewriteMode.MINOR)
    try:
        (end,) = engine.rewrite(RewriteRequest(location, (group,), mark("s3", 1)), Steering()).groups
    except LakewrightError as error:
        return {"error": str(error)}
    rows = spark.read.format("delta").load(hadoop_path(location)).orderBy("id").collect()
    return {
        "status": end.status,
        "copied": end.is_copied,
        "because": end.encoded_because,
        "outputs": [file.path for file in end.outputs],
        "spark": [row.asDict() for row in rows],
    }


if __name__ == "__main__":
    main()
