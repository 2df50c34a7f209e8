"""One Spark application for the library: its own Spark, Delta and classes, in an environment of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from actor.formats.qbeast.library import CATALOG, EXTENSION
from actor.jvm import log_stores
from actor.jvm.jars import DELTA_FOR_QBEAST, look_up
from actor.jvm.java import PARALLEL_COLLECTOR
from actor.jvm.java_sources import compile_sources
from actor.jvm.own_jar import SOURCES
from actor.jvm.spark import launch
from shared.errors import PermanentError

COMPILED_AT_START = tuple(
    f"io/lakewright/{name}.java" for name in ("delta/ExclusiveLogStore", "spark/LocalTasks", "qbeast/IndexCommitCheck")
)
"""Classes that the jar cannot hold for this Spark: it is of another Scala, and the library is not ours."""


@dataclass(frozen=True, slots=True)
class QbeastSparkSettings:
    """How the application is started; `library_jar` is the jar of qbeast-spark 0.7.1."""

    work_dir: Path  # Scratch space: shuffle and spill files, compiled classes, the self-test's table.
    ivy_dir: Path  # Where the pinned jars of Delta lie.
    library_jar: Path
    master: str = "local[2]"
    driver_memory: str = "1g"  # JVM notation.
    collector: tuple[str, ...] = PARALLEL_COLLECTOR
    catalog: str = CATALOG  # The class of the session catalog; the library's does not find tables by path in SQL.
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)  # Of Spark; none of those below.

    @property
    def local(self) -> bool:
        """True if driver and executors are one JVM on this machine."""
        return self.master == "local" or self.master.startswith("local[")


def configuration(settings: QbeastSparkSettings) -> dict[str, str]:
    """Return the Spark configuration; raises PermanentError where a jar is missing."""
    found = look_up(settings.ivy_dir, DELTA_FOR_QBEAST)
    if not found.complete:
        raise PermanentError(f"Delta's jars for Qbeast are missing in {found.directory}; run make setup-qbeast")
    if not settings.library_jar.is_file():
        raise PermanentError(f"{settings.library_jar} is no file: LAKEWRIGHT_QBEAST_JAR names the jar of the library")
    # In one class loader: the library loads the check of commits by name, from its own loader.
    jars = [*found.files, settings.library_jar]
    conf = {
        "spark.app.name": "lakewright-qbeast-actor",
        "spark.master": settings.master,
        "spark.jars": ",".join(str(jar.resolve()) for jar in jars),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(["-XX:+ExitOnOutOfMemoryError", *settings.collector]),
        "spark.local.dir": str(settings.work_dir / "spark"),
        "spark.sql.warehouse.dir": str(settings.work_dir / "warehouse"),
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.spark_catalog": settings.catalog,
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2" if settings.local else "64",
        "spark.sql.session.timeZone": "UTC",
        **log_stores.EXCLUSIVE,
    }
    if settings.local:
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    return conf | dict(settings.options)


def start_spark(settings: QbeastSparkSettings, *, java_home: Path) -> SparkSession:
    """Start the application, with our classes compiled; raises PermanentError where it does not start."""
    session = launch(configuration(settings), work_dir=settings.work_dir, java_home=java_home, local=settings.local)
    try:
        compile_sources(session, (SOURCES / source for source in COMPILED_AT_START), settings.work_dir / "classes")
    except Exception as error:
        raise PermanentError(
            f"{settings.library_jar} is not qbeast-spark 0.7.1, whose commits can be checked before they are made"
        ) from error
    return session
