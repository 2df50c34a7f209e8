"""Vacuums a table on S3 in a Spark of its own; prints figures and the ids that Spark reads then as a JSON object."""

import json
import os
import sys
import tempfile
from pathlib import Path

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.jvm.java import find_java
from actor.jvm.s3a import hadoop_settings
from actor.jvm.spark import SparkSettings, build_session, stop_session
from actor.ports import TableJob
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search
from shared.job_payload import VACUUM
from shared.locations import hadoop_path
from shared.policy import Policy
from shared.store_options import StoreOptions
from shared.table import CommitOrigin
from shared.vacuum_options import VacuumOptions
from tests.support.local_vacuum import Control


def main() -> None:
    """Delete all history of a table."""
    options, location = json.loads(sys.argv[1])
    prepare({**os.environ, ALLOW_S3: "true"})  # Fetches the jars where no actor has done so before.
    with tempfile.TemporaryDirectory(prefix="lw-vacuum-s3-") as folder:
        settings = SparkSettings(
            work_dir=Path(folder),
            ivy_dir=ivy_dir(os.environ),
            s3=hadoop_settings(StoreOptions({"": options})),
            extra={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )
        spark = build_session(settings, java_home=find_java(java_search(os.environ)).path)
        try:
            engine = DeltaEngine(spark, EngineSettings(allow_s3=True))
            all_of_it = VacuumOptions(with_orphans=True, force=True, retain_s=0)
            job = TableJob(VACUUM, location, Policy(), CommitOrigin("job", 7), options=all_of_it.encode())
            first, second = (dict(engine.run_table_job(job, Control()).figures) for _ in range(2))
            rows = spark.read.format("delta").load(hadoop_path(location)).orderBy("id").collect()
            print(json.dumps({"first": first, "second": second, "ids": [row.id for row in rows]}))
        finally:
            stop_session(spark)


if __name__ == "__main__":
    main()
