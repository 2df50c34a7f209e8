"""Programs with a Spark of their own for tables on S3; each takes values as JSON, and answers with one JSON value.

A process can have one Spark only, whose jars are chosen when its JVM starts, and the one of other tests has none for
S3: tests call `run_on_s3`, which starts `python -m tests.support.programs_on_s3 PROGRAM VALUES`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store
from py4j.protocol import Py4JJavaError

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.jvm.java import find_java
from actor.jvm.s3a import hadoop_settings
from actor.jvm.scala import Scala
from actor.jvm.spark import CONDITIONAL_PUT, SparkSettings, build_session, stop_session
from actor.ports import RewriteRequest, TableJob
from actor.proofread.proofreader import Proofreader, ProofreadSettings
from services.actor.settings import ALLOW_S3
from services.bootstrap import prepare
from services.paths import ivy_dir, java_search
from shared.errors import LakewrightError
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.locations import hadoop_path
from shared.paths.store_options import StoreOptions
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import mark
from tests.support.forced_copies import FORCED_LIMITS
from tests.support.local_vacuum import Control
from tests.support.spark_session import QUICK
from tests.support.stack import ROOT
from tests.support.steering import Steering
from tests.support.time_limits import scaled

Options = Mapping[str, Any]
"""Options of stores by place, as `LAKEWRIGHT_STORE_OPTIONS` has them."""


def run_on_s3(program: str, options: Options, *values: Any) -> Any:
    """Run a program in a process of its own, and return its answer."""
    command = [sys.executable, "-m", "tests.support.programs_on_s3", program, json.dumps([options, *values])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=scaled(300), check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def _spark(options: Options) -> Iterator[Any]:
    prepare({**os.environ, ALLOW_S3: "true"})  # Fetches the jars where no actor has done so before.
    with tempfile.TemporaryDirectory(prefix="lw-spark-s3-") as folder:
        settings = SparkSettings(
            work_dir=Path(folder),
            ivy_dir=ivy_dir(os.environ),
            s3=hadoop_settings(StoreOptions(options)),
            extra=QUICK,
        )
        spark = build_session(settings, java_home=find_java(java_search(os.environ)).path)
        try:
            yield spark
        finally:
            stop_session(spark)


def merge(options: Options, *locations: str) -> dict[str, Any]:
    """Merge all files of each table: copied, but of a table whose name says that it is to be encoded."""
    with _spark(options) as spark:
        proofreader = Proofreader(ProofreadSettings(stores=StoreOptions(options)))
        settings = EngineSettings(allow_s3=True, copy_limits=FORCED_LIMITS, proofreader=proofreader)
        engine = DeltaEngine(spark, settings)
        return {location: _merged(spark, engine, location) for location in locations}


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
    return {
        "status": end.status,
        "copied": end.is_copied,
        "because": end.encoded_because,
        "proof": [end.proof.reading, end.proof.reader, end.proof.unverified_because] if end.proof else None,
        "outputs": [file.path for file in end.outputs],
        "spark": _rows(spark, location),
    }


def count_requests(options: Options, *locations: str) -> dict[str, dict[str, dict[str, int]]]:
    """Look at each table again where nothing has come, then merge its files; returns the requests of each by kind."""
    with _spark(options) as spark:
        proofreader = Proofreader(ProofreadSettings(stores=StoreOptions(options)))
        engine = DeltaEngine(spark, EngineSettings(allow_s3=True, copy_limits=FORCED_LIMITS, proofreader=proofreader))
        counted = {}
        for location in locations:
            engine.read_partition(location, WHOLE_TABLE)
            counted[location] = {
                "look": _requests(spark, location, lambda at=location: engine.read_partition(at, WHOLE_TABLE)),  # type: ignore[misc]
                "rewrite": _requests(spark, location, lambda at=location: _merged(spark, engine, at)),  # type: ignore[misc]
            }
        return counted


def _requests(spark: Any, location: str, work: Callable[[], object]) -> dict[str, int]:
    """Do something, and return the requests that Hadoop's store sent meanwhile."""
    scala = Scala(spark)
    store = scala.path(hadoop_path(location)).getFileSystem(spark._jsc.hadoopConfiguration())

    def counters() -> dict[str, int]:
        found: dict[str, int] = json.loads(scala.to_json(store.getIOStatistics().counters()))
        return {name: count for name, count in found.items() if name.startswith(("object_", "action_http_"))}

    before = counters()
    work()
    return {name: count - before.get(name, 0) for name, count in counters().items() if count > before.get(name, 0)}


def _rows(spark: Any, location: str) -> list[dict[str, Any]]:
    found = spark.read.format("delta").load(hadoop_path(location)).orderBy("id").collect()
    return [row.asDict() for row in found]


def vacuum(options: Options, location: str) -> dict[str, Any]:
    """Delete all history of a table, twice; returns figures of both, and the ids that Spark reads then."""
    with _spark(options) as spark:
        engine = DeltaEngine(spark, EngineSettings(allow_s3=True))
        all_of_it = VacuumOptions(with_orphans=True, force=True, retain_s=0)
        job = TableJob(VACUUM, location, Policy(), CommitOrigin("job", 7), options=all_of_it.encode())
        first, second = (dict(engine.run_table_job(job, Control()).figures) for _ in range(2))
        return {"first": first, "second": second, "ids": [row["id"] for row in _rows(spark, location)]}


def ask(options: Options, *locations: str) -> dict[str, list[str]]:
    """Have an engine ask each bucket whether its server refuses what exists; returns what was said of locations.

    Nothing is to be rewritten there, so that only the question is put.
    """
    stated: dict[str, list[str]] = {}
    with _spark(options) as spark:
        engine = DeltaEngine(spark, EngineSettings(allow_s3=True))
        for location in locations:
            try:
                engine.rewrite(RewriteRequest(location, (), mark("job", 1)), Steering())
            except LakewrightError as error:
                stated.setdefault(location, []).append(f"{type(error).__name__}: {error}")
    return stated


class LogStore:
    """The actor's log store for S3 inside a Spark."""

    def __init__(self, spark: Any) -> None:
        self._scala = Scala(spark)
        self._conf = spark._jsc.hadoopConfiguration()
        loader = self._scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
        found = self._scala.resolve("java.lang.Class").forName(
            CONDITIONAL_PUT["spark.delta.logStore.s3a.impl"], True, loader
        )
        arguments = spark.sparkContext._gateway.new_array(self._scala.resolve("java.lang.Object"), 1)
        arguments[0] = self._conf
        self._store: Any = found.getConstructors()[0].newInstance(arguments)

    def write(self, uri: str, lines: list[object], *, overwrite: bool = False) -> str:
        """Write a commit; return `""`, or the name of the Java exception."""
        try:
            path = self._scala.path(uri)
            self._store.write(path, self._scala.java_list(lines).iterator(), overwrite, self._conf)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return ""


def commit(options: Options, commits: Mapping[str, list[object]]) -> dict[str, str]:
    """Write commits one after another, lines by URI, whatever the server does to each; returns how each ended."""
    with _spark(options) as spark:
        store = LogStore(spark)
        return {uri: store.write(uri, lines) for uri, lines in commits.items()}


def race(options: Options, versions: int, seed: int) -> dict[str, Any]:
    """Let the log store and another client commit the same versions; then overwrite, then fail within a commit.

    Returns the versions that each believes it won, and how the others ended.
    """
    http: Any = {"allow_http": True}
    config: Any = {name: value for name, value in options[""].items() if name != "allow_http"}
    with _spark(options) as spark:
        store = LogStore(spark)
        ours, theirs = _race(store, S3Store("lake", config=config, client_options=http), versions, seed)
        again = store.write(f"s3a://lake/race/_delta_log/{0:020d}.json", ["late"])
        overwritten = store.write("s3a://lake/race/_delta_log/_last_checkpoint", ["1"], overwrite=True)
        # A number is no line: the store fails after it took the first one.
        cut = store.write(f"s3a://lake/cut/_delta_log/{0:020d}.json", ["first", 5])
    return {"ours": ours, "theirs": theirs, "again": again, "overwritten": overwritten, "cut": cut}


def _race(store: LogStore, rival: S3Store, versions: int, seed: int) -> tuple[list[int], list[int]]:
    """Let both commit every version at about the same time; return the versions that each won."""
    rng, start = random.Random(seed), threading.Barrier(2)
    ours: list[int] = []
    theirs: list[int] = []
    pause_s = [0.004]

    def rival_commits() -> None:
        for version in range(versions):
            start.wait()
            # Whoever is first too often waits longer, so that both stay close together.
            threading.Event().wait(rng.random() * 2 * pause_s[0])
            try:
                obstore.put(rival, f"race/_delta_log/{version:020d}.json", b"theirs", mode="create")
                theirs.append(version)
                pause_s[0] *= 1.25
            except AlreadyExistsError:
                pause_s[0] *= 0.8

    other = threading.Thread(target=rival_commits)
    other.start()
    for version in range(versions):
        start.wait()
        stated = store.write(f"s3://lake/race/_delta_log/{version:020d}.json", ["ours"])
        assert stated in ("", "FileAlreadyExistsException"), stated
        if not stated:
            ours.append(version)
    other.join()
    return ours, theirs


if __name__ == "__main__":
    programs = (merge, vacuum, ask, commit, race, count_requests)
    chosen: Any = {program.__name__: program for program in programs}[sys.argv[1]]
    print(json.dumps(chosen(*json.loads(sys.argv[2]))))
