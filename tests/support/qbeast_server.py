"""Runs in the environment of the Qbeast actor, and does with Qbeast's library what a test says: one JSON line per call.

`python -m tests.support.qbeast_server FOLDER` writes a line for each answer; what Spark prints goes to a file there.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as column

from actor.formats.qbeast.engine import QbeastEngine, QbeastEngineSettings
from actor.formats.qbeast.index_job import IndexJob, LibraryCall
from actor.formats.qbeast.library import JvmIndexLibrary
from actor.formats.qbeast.self_test import self_test
from actor.formats.qbeast.spark import QbeastSparkSettings, start_spark
from actor.jvm.java import find_java
from actor.jvm.spark import jvm_process
from actor.ports import TableJob
from services.paths import ivy_dir, java_search
from shared.errors import Conflict, LakewrightError
from shared.formats.qbeast.index import QbeastIndex
from shared.jobs.payload import INDEX
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.table import CommitOrigin

COLUMNS = "user,price"
RANGES = '{"user_min":0,"user_max":1000000,"price_min":0.0,"price_max":1000.0}'
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""Delta's own, so that tests can say SQL of tables by their path."""


class Unchecked:
    """The library as it is, with a log that it read before others changed it; nothing looks at its commit."""

    def __init__(self, library: JvmIndexLibrary, meanwhile: Any, *, is_checked: bool) -> None:
        self._library, self._meanwhile, self._is_checked = library, meanwhile, is_checked
        self.snapshot = library.snapshot
        self.commits = library.commits

    def optimize(self, call: LibraryCall) -> None:
        stale = self._library.table_read_now()
        self._meanwhile(call)
        if self._is_checked:
            self._library.optimize_with(stale, call)
            return
        scala = self._library._scala
        stale.optimize(scala.seq(call.paths), scala.map({"userMetadata": call.user_metadata}))


class Allow:
    """A worker that lets a job run to its end."""

    def may_change(self) -> None: ...

    def should_stop(self) -> bool:
        return False

    def reached(self, point: str, done: int = 0, total: int = 0) -> None: ...

    def measured(self, figures: Any) -> None: ...


class Server:
    """Each method is a call."""

    def __init__(self, folder: Path) -> None:
        java = find_java(java_search(os.environ))
        jar = Path(os.environ["LAKEWRIGHT_QBEAST_JAR"])
        settings = QbeastSparkSettings(folder, ivy_dir(os.environ), jar, catalog=DELTA_CATALOG)
        self.spark: SparkSession = start_spark(settings, java_home=java.path)
        self.spark.conf.set("spark.sql.adaptive.enabled", "false")
        self.boundary = Boundary(roots=(folder.parent.as_uri(), folder.as_uri()), real_path=os.path.realpath)
        self._runs = 1
        self.engine = QbeastEngine(self.spark, QbeastEngineSettings(boundary=self.boundary))

    def self_test(self, folder: str) -> int:
        return self_test(self.spark, self.engine, folder)

    def append(self, path: str, first: int, rows: int, cube_size: int, *, late: bool = False) -> None:
        frame = self._rows(first, rows)
        if late:
            frame = frame.withColumn("late", column.col("user").cast("string"))
        write = frame.write.format("qbeast").mode("append").option("columnsToIndex", COLUMNS)
        write.option("cubeSize", cube_size).option("columnStats", RANGES).option("mergeSchema", str(late)).save(path)

    def append_plainly(self, path: str, first: int, rows: int) -> None:
        self._rows(first, rows).write.format("delta").mode("append").save(path)

    def sql(self, text: str) -> None:
        self.spark.sql(text).collect()

    def optimize(self, path: str) -> None:
        """Everything at once, by the library alone."""
        library = JvmIndexLibrary(self.engine._scala, self.spark, path)
        table = library.table()
        table.optimize(table.latestRevisionID(), 1.0, library._scala.map({}))

    def users(self, path: str) -> list[int]:
        return sorted(row[0] for row in self._read(path).select("user").collect())

    def checksum(self, path: str) -> list[str]:
        """Number of rows, and a sum over all values of each."""
        frame = self._read(path)
        values = column.xxhash64(*sorted(frame.columns)).cast("decimal(38,0)")
        found = frame.agg(column.count("*"), column.sum(values)).collect()[0]
        return [str(value) for value in found]

    def late(self, path: str) -> int:
        return self._read(path).where("late IS NOT NULL").count()

    def sample(self, path: str, fraction: float) -> dict[str, int]:
        """Rows of a sample, and the bytes of the files that the query reads for it."""
        frame = self.spark.read.format("qbeast").load(path).sample(fraction)
        rows = len(frame.select("user").collect())
        scan = frame.select("user")
        scan.collect()
        leaves = scan._jdf.queryExecution().executedPlan().collectLeaves()
        size = sum(int(leaves.apply(at).metrics().apply("filesSize").value()) for at in range(leaves.size()))
        return {"rows": rows, "bytes": size}

    def provoke(self, path: str, is_checked: bool) -> str:
        """Let another optimizer rewrite the chosen files after the library has read the log; return what is noticed."""

        def rewritten(_call: LibraryCall) -> None:
            self.optimize(path)

        with self.engine.library(path, tag=INDEX, key="test/1") as library:
            seen = Unchecked(library, rewritten, is_checked=is_checked)
            job = TableJob(INDEX, path, Policy(index=True).with_traits(is_indexed=True), CommitOrigin("test", 1))
            try:
                done = IndexJob(seen, self.boundary, job, Allow()).run()
            except LakewrightError as problem:
                return f"{type(problem).__name__}: {problem}"
        return f"complete={done.is_complete} commits={list(done.commits)}"

    def cancelled(self, path: str) -> str:
        """Cancel a job after the library was called, and before it commits; return what becomes of it."""
        with self.engine.library(path, tag="other-tag", key="test/1") as library:
            seen = Unchecked(library, lambda _call: self.engine.cancel("test"), is_checked=True)
            job = TableJob(INDEX, path, Policy(index=True).with_traits(is_indexed=True), CommitOrigin("test", 1))
            try:
                done = IndexJob(seen, self.boundary, job, Allow()).run()
            except LakewrightError as problem:
                return f"{type(problem).__name__}: {problem}"
        return f"complete={done.is_complete} commits={list(done.commits)}"

    def checked(self, path: str, stats: str) -> str:
        """Show the check a commit that replaces a file by one with these statistics; return what it says."""
        scala = self.engine._scala
        actions = scala.module("org.apache.spark.sql.delta.actions.Action")
        with self.engine.library(path, tag=INDEX, key="check/1") as library:
            snapshot = library.snapshot()
            gone = snapshot.files[0]
            library.check.expect("check/1", library._log, snapshot.version, scala.java_list([gone.path]), gone.rows)
            remove = {"path": gone.path, "deletionTimestamp": 1, "dataChange": False}
            add = {"path": "new", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": False}
            add |= {"stats": stats.replace("ROWS", str(gone.rows))} if stats else {}
            lines = [{"remove": remove}, {"add": add}]
            try:
                library.check("check/1").run(scala.seq([actions.fromJson(json.dumps(line)) for line in lines]))
            except Exception as problem:  # noqa: BLE001 - what the JVM throws
                refused = library._translated(problem)
                return f"{type(refused).__name__}: {refused}"
            finally:
                library.check.forget("check/1")
        return "accepted"

    def run(self, path: str, *, may_conflict: bool = False) -> dict[str, Any]:
        """One job, as the actor runs it, without a lease."""
        self._runs += 1
        job = TableJob(INDEX, path, Policy(index=True).with_traits(is_indexed=True), CommitOrigin("test", self._runs))
        try:
            done = self.engine.run_table_job(job, Allow())
        except Conflict as others:
            if not may_conflict:
                raise
            return {"conflict": str(others)}
        return {"commits": list(done.commits), "reason": done.reason, "figures": dict(done.figures)}

    def index(self, path: str) -> dict[str, int]:
        with self.engine.library(path, tag="read", key="read/1") as library:
            found = QbeastIndex.of_snapshot(library.snapshot()).of_revision(1)
        return {"files": len(found), "blocks": sum(len(file.blocks) for file in found)}

    def pid(self) -> int:
        return int(jvm_process(self.spark).process.pid)

    def _read(self, path: str) -> DataFrame:
        return self.spark.read.format("delta").load(path)

    def _rows(self, first: int, rows: int) -> DataFrame:
        user = ((column.col("id") * 7919) % 1_000_003).alias("at")
        frame = self.spark.range(first, first + rows, numPartitions=1).select("id", user)
        return frame.select(
            column.col("id").alias("user"),
            (column.col("at") % 1000).cast("double").alias("price"),
            column.sha2(column.col("at").cast("string"), 256).alias("pad"),
        )


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What else writes to standard output must not stand between the answers.
    server = Server(Path(sys.argv[1]))
    print(json.dumps({"answer": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {"answer": getattr(server, call["do"])(**call["with"])}
        except Exception as problem:  # noqa: BLE001 - the test that called is told
            answer = {"error": f"{type(problem).__name__}: {problem}"[:4000]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
