"""Rewrites tables on S3 in a Spark of its own; prints what became of each as one JSON object.

Row groups are copied, but of a table whose name says that it is to be encoded.
"""

import json
import sys
from typing import Any

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.ports import RewriteRequest
from actor.proofread.proofreader import Proofreader, ProofreadSettings
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.locations import hadoop_path
from shared.paths.store_options import StoreOptions
from tests.support.delta_lab import mark
from tests.support.forced_copies import FORCED_LIMITS
from tests.support.spark_on_s3 import spark_on_s3
from tests.support.steering import Steering


def main() -> None:
    """Merge all files of each table that the command names."""
    options, *locations = json.loads(sys.argv[1])
    with spark_on_s3(options) as spark:
        proofreader = Proofreader(ProofreadSettings(stores=StoreOptions({"": options})))
        settings = EngineSettings(allow_s3=True, copy_limits=FORCED_LIMITS, proofreader=proofreader)
        engine = DeltaEngine(spark, settings)
        print(json.dumps({location: _merged(spark, engine, location) for location in locations}))


def _merged(spark: Any, engine: DeltaEngine, location: str) -> dict[str, Any]:
    group = FileGroup(WHOLE_TABLE, engine.read_partition(location, WHOLE_TABLE).files, RewriteMode.MINOR)
    may_copy = not location.endswith("encoded")
    try:
        request = RewriteRequest(location, (group,), mark("s3", 1), may_copy=may_copy)
        (end,) = engine.rewrite(request, Steering()).groups
    except LakewrightError as error:
        return {"error": str(error)}
    if end.error is not None:
        return {"error": str(end.error)}
    rows = spark.read.format("delta").load(hadoop_path(location)).orderBy("id").collect()
    return {
        "status": end.status,
        "copied": end.is_copied,
        "because": end.encoded_because,
        "proof": [end.proof.reading, end.proof.reader, end.proof.unverified_because] if end.proof else None,
        "outputs": [file.path for file in end.outputs],
        "spark": [row.asDict() for row in rows],
    }


if __name__ == "__main__":
    main()
