"""One Spark session for one actor: Delta inside, quiet, small, and started as fast as a JVM can be.

Every setting that an actor depends on is named here with its reason; the environment is not read. Sessions of single
rewrites come from `sessions`, which sets what their correctness depends on.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from actor.jvm.autopsy import JvmProcess
from actor.jvm.jars import DELTA, ICEBERG, S3, look_up
from actor.jvm.java import PARALLEL_COLLECTOR
from actor.jvm.own_jar import own_jar
from actor.jvm.spark_options import CLUSTER_DEFAULTS, submitted_options
from shared.errors import PermanentError

_JVM_LOG = "spark.lakewright.jvm.log"  # Our own setting: the file that the JVM prints to.
_JVM_LOG_FILE = "jvm.log"  # Its name in the work directory.
VERIFIES_PAGES = "spark.hadoop.parquet.page.verify-checksum.enabled"
"""parquet-java's option: whether what Spark reads is compared with its checksum, where it has one."""

_CLASSES_AT_START = "-XX:MetaspaceSize=192m"
"""Classes take 150 MB once an actor has started; from 21 MB on, each growth by half would collect the whole heap."""

_COMPILED_LATER = tuple(
    f"-XX:Tier4{name}={calls}"
    for name, calls in (
        ("InvocationThreshold", 20_000),
        ("MinInvocationThreshold", 2_400),
        ("CompileThreshold", 60_000),
        ("BackEdgeThreshold", 160_000),
    )
)
"""Four times the JVM's own numbers of calls before code is compiled a second time, at ten times the cost.

Much of a start runs often enough to be compiled so, and never again: a fifth of its CPU seconds.
"""

_LAUNCHER = "-XX:TieredStopAtLevel=1"
"""For the JVM that only prints the command by which Spark's own is started: half of its CPU seconds."""

_TAIL_LINES = 20  # Of what the JVM printed, in an error: the reason is at the end.


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How an actor's Spark application is started."""

    work_dir: Path  # Scratch space: shuffle and spill files, the self-test's table.
    ivy_dir: Path  # Where the pinned jars of Delta lie, or are fetched to.
    master: str = "local[2]"  # `local[n]` runs everything in this process's JVM with n tasks at once.
    driver_memory: str = "1g"  # Heap of the JVM; 640 MB to 1 GB carries two rewrites at once (JVM notation).
    collector: tuple[str, ...] = PARALLEL_COLLECTOR  # Options of the JVM that choose a garbage collector.
    s3: Mapping[str, str] | None = field(default=None, hash=False)  # Hadoop's settings for S3; None: no S3 at all.
    iceberg: bool = False  # Whether the jar of Iceberg is loaded (48 MB).
    log_level: str = "ERROR"  # Of the JVM: WARN repeats known harmless remarks for each job.
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)  # Wins over everything below.

    @property
    def local(self) -> bool:
        """True if driver and executors are one JVM on this machine."""
        return self.master == "local" or self.master.startswith("local[")  # Not `local-cluster[…]`.


def configuration(settings: SparkSettings) -> dict[str, str]:
    """Return the Spark configuration for these settings."""
    conf = {
        "spark.app.name": "lakewright-actor",
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.local.dir": str(settings.work_dir / "spark"),
        "spark.sql.warehouse.dir": str(settings.work_dir / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.scheduler.mode": "FAIR",  # Rewrites of several slots share the cores job by job.
        "spark.ui.enabled": "false",  # Costs memory and a port; progress is shown elsewhere.
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": settings.log_level,
        "spark.sql.shuffle.partitions": "8" if not settings.local else "2",  # Rewrites do not shuffle.
        # VACUUM and directory listings start one task per path: 50 s instead of 5 s on small machines.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2" if settings.local else "64",
        "spark.databricks.delta.optimizeWrite.enabled": "false",
        # A log in Delta's own cache holds up to 3 MB of query plans: of the default of 10,000 logs a heap holds 300.
        "spark.databricks.delta.delta.log.cacheSize": "32",
        "spark.sql.session.timeZone": "UTC",
        VERIFIES_PAGES: "true",  # A damaged page that is encoded again would have a valid checksum.
    }
    if settings.local:
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",  # No other has to reach a local driver.
            "spark.driver.host": "127.0.0.1",
            "spark.databricks.delta.snapshotPartitions": "2",  # Fifty tasks to replay a small log take a second.
        }
    jars = _jars(settings)
    # After an OutOfMemoryError threads are missing and locks are held: a JVM that continues would fail in other ways.
    java_options = ["-XX:+ExitOnOutOfMemoryError", _CLASSES_AT_START, *_COMPILED_LATER, *settings.collector]
    conf["spark.driver.extraJavaOptions"] = " ".join(java_options)
    # Executors of a cluster have to be sent the jars; a driver has them in its own class path.
    conf["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    if not settings.local:
        conf |= {
            "spark.jars": ",".join(map(str, jars)),
            "spark.speculation": "false",  # A second attempt of a task would write a second file.
            **CLUSTER_DEFAULTS,
        }
    conf |= EXCLUSIVE
    if settings.s3 is not None:
        conf |= CONDITIONAL_PUT
        conf |= {f"spark.hadoop.{name}": value for name, value in settings.s3.items()}
    return conf | dict(settings.extra)


def _jars(settings: SparkSettings) -> list[Path]:
    """Return the pinned jars and our own; raises PermanentError unless they are all there."""
    files = [own_jar()]
    for wanted in (DELTA, *((ICEBERG,) if settings.iceberg else ()), *(() if settings.s3 is None else (S3,))):
        found = look_up(settings.ivy_dir, wanted)
        if not found.complete:
            raise PermanentError(
                f"jars of {wanted.purpose} are missing in {found.directory}; fetch them with "
                "`python -m services.bootstrap`"
            )
        files += [file.resolve() for file in found.files]
    return files


def build_session(settings: SparkSettings, *, java_home: Path) -> SparkSession:
    """Start the application; only one may run in a process. Takes seconds.

    What the JVM prints goes to `jvm.log` in the work directory. Raises PermanentError with its end if the JVM dies.
    """
    conf = configuration(settings)
    return launch(conf, work_dir=settings.work_dir, java_home=java_home, local=settings.local)


def launch(conf: Mapping[str, str], *, work_dir: Path, java_home: Path, local: bool) -> SparkSession:
    """Start an application with this configuration; `local`: it is in one process. Raises what `build_session` does."""
    work_dir.mkdir(parents=True, exist_ok=True)
    settings = SparkConf(loadDefaults=False).setAll(list({**conf, _JVM_LOG: str(work_dir / _JVM_LOG_FILE)}.items()))
    printed = work_dir / _JVM_LOG_FILE
    variables = {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable, "SPARK_LAUNCHER_OPTS": _LAUNCHER}
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"  # Otherwise Spark requests the host's address and warns of it.
    with (
        printed.open("wb") as output,
        submitted_options(dict(settings.getAll()), work_dir) as arguments,
        _environment({**variables, "PYSPARK_SUBMIT_ARGS": arguments}),
        _interrupt_kept(),
    ):
        try:
            gateway = launch_gateway(popen_kwargs={"stdout": output, "stderr": output})
            context = SparkContext(conf=settings, gateway=gateway)
        except Exception as error:
            tail = "\n".join(printed.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            raise PermanentError(
                f"Spark did not start with the Java at {java_home}; {printed} ends with:\n{tail}"
            ) from error
    return SparkSession(context)


def jvm_process(spark: SparkSession, *, secrets: tuple[str, ...] = ()) -> JvmProcess:
    """Return the process in which an application started by `build_session` runs."""
    process = spark.sparkContext._gateway.proc  # noqa: SLF001 - PySpark started it and does not report how it ended
    return JvmProcess(process, Path(str(spark.conf.get(_JVM_LOG))), secrets)


def stop_session(spark: SparkSession) -> None:
    """Stop the application and its JVM, without waiting until it has ended."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - PySpark stops the application, never the JVM
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()


@contextmanager
def _interrupt_kept() -> Iterator[None]:
    """Keep the handler of Ctrl-C: PySpark's would cancel all jobs and raise, though the caller may finish first."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # Elsewhere than in the main thread PySpark leaves it alone; None is a handler that Python cannot set.
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the JVM that is being launched: PySpark passes them on no other way."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _of(store: str, *schemes: str) -> Mapping[str, str]:
    """Return the settings by which Delta uses our store for the logs of some schemes; without it, it opens none."""
    return {f"spark.delta.logStore.{scheme}.impl": f"io.lakewright.delta.{store}" for scheme in schemes}


EXCLUSIVE = _of("ExclusiveLogStore", "file")
"""Settings for tables in local folders.

Delta checks that the commit file is absent and then renames over it: a commit of another process in between is replaced
and its rows are lost without a trace. Ours creates the file's name by a hard link, which fails if the name exists.
"""

CONDITIONAL_PUT = _of("ConditionalPutLogStore", "s3", "s3a", "s3n")
"""Settings for tables on S3: Delta checks and puts, ours lets S3 refuse what exists."""
