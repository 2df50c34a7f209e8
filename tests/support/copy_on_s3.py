"""Rewrites tables on S3 by copying row groups, in a Spark of its own; prints what became of each as one JSON object."""

import json
import sys
from typing import Any

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.formats.delta.transaction import TransactionSettings
from actor.ports import RewriteRequest
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup, RewriteMode
from shared.locations import hadoop_path
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import mark
from tests.support.forced_copies import FORCED_LIMITS
from tests.support.spark_on_s3 import spark_on_s3
from tests.support.steering import Steering

FORCED = TransactionSettings(copy_limits=FORCED_LIMITS)


def main() -> None:
    """Merge all files of each table that the command names."""
    options, *locations = json.loads(sys.argv[1])
    with spark_on_s3(options) as spark:
        engine = DeltaEngine(spark, EngineSettings(allow_s3=True, transaction=FORCED))
        print(json.dumps({location: _merged(spark, engine, location) for location in locations}))


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
