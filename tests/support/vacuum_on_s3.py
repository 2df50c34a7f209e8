"""Vacuums a table on S3 in a Spark of its own; prints figures and the ids that Spark reads then as a JSON object."""

import json
import sys

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.ports import TableJob
from shared.jobs.payload import VACUUM
from shared.jobs.vacuum_options import VacuumOptions
from shared.paths.locations import hadoop_path
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.local_vacuum import Control
from tests.support.spark_on_s3 import spark_on_s3


def main() -> None:
    """Delete all history of a table."""
    options, location = json.loads(sys.argv[1])
    with spark_on_s3(options) as spark:
        engine = DeltaEngine(spark, EngineSettings(allow_s3=True))
        all_of_it = VacuumOptions(with_orphans=True, force=True, retain_s=0)
        job = TableJob(VACUUM, location, Policy(), CommitOrigin("job", 7), options=all_of_it.encode())
        first, second = (dict(engine.run_table_job(job, Control()).figures) for _ in range(2))
        rows = spark.read.format("delta").load(hadoop_path(location)).orderBy("id").collect()
        print(json.dumps({"first": first, "second": second, "ids": [row.id for row in rows]}))


if __name__ == "__main__":
    main()
