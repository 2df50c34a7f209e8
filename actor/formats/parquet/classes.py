"""Java classes of ours that read and join Parquet files: compiled when the first rewrite needs them.

Where they cannot be compiled, sent or loaded, every group is encoded: nothing fails for want of them.
"""

import re
import threading
from typing import ClassVar

import structlog
from pyspark.sql import SparkSession

from actor.jvm import java_sources
from actor.jvm.errors import first_line

_log = structlog.get_logger(__name__)

SOURCES = (
    "NotCopyable",
    "DamagedInput",
    "ParquetStore",
    "HadoopStore",
    "ParquetFooter",
    "ParquetBounds",
    "ParquetInput",
    "ParquetTask",
    "RowGroupCopy",
    "ColumnMerge",
)
"""In the order in which they are compiled."""

ICEBERG_SOURCES = (
    *(one for one in SOURCES if one not in ("ParquetBounds", "ColumnMerge")),
    "IcebergStore",
    "IcebergFiles",
    "IcebergScan",
)
"""Those that need Iceberg's jar, with those that they use."""

_REFUSAL = re.compile(
    r"\b(ClassNotFoundException|NoClassDefFoundError|ClassFormatError|UnsupportedClassVersionError|VerifyError|"
    r"IncompatibleClassChangeError|AbstractMethodError|NoSuchMethodError|NoSuchFieldError|IllegalAccessError|"
    r"InvalidClassException)\b|cannot assign instance of java\.lang\.invoke\.SerializedLambda"
)
"""What a JVM raises that has not the classes, or whose libraries are others than those they were compiled against.

The last is what an executor without the class of a task says of the lambda that Spark puts around it.
"""


class ParquetClasses:
    """The classes in one application: made once for all threads, and sent to the executors of a cluster."""

    _COMPILING: ClassVar = threading.Lock()
    """All compile into one folder."""

    def __init__(self, sources: tuple[str, ...] = SOURCES, jar: str = "lakewright-parquet.jar") -> None:
        self._lock = threading.Lock()
        self._sources = sources
        self._jar = jar
        self._are_usable: bool | None = None

    def are_usable(self, spark: SparkSession) -> bool:
        """Return whether they can be used; the first call makes them, and warns if they cannot be made."""
        with self._lock:
            if self._are_usable is None:
                try:
                    with self._COMPILING:
                        java_sources.ship(spark, java_sources.compile_sources(spark, self._sources), self._jar)
                        for name in self._sources:
                            java_sources.load_class(spark, name)
                except Exception as problem:  # noqa: BLE001 - whatever it is, rewrites go on without them
                    self._are_usable = False
                    warn_unavailable(spark, first_line(problem))
                else:
                    self._are_usable = True
            return bool(self._are_usable)

    def give_up_if_refused(self, spark: SparkSession, problem: Exception) -> None:
        """Warn that they are not used from now on if a JVM refused them; raises any other problem again."""
        if not _REFUSAL.search(first_line(problem)):
            raise problem
        if self.give_up():
            warn_unavailable(spark, first_line(problem))

    def give_up(self) -> bool:
        """Do without them from now on; returns whether they were in use until now."""
        with self._lock:
            were_usable, self._are_usable = self._are_usable is True, False
            return were_usable


def warn_unavailable(spark: SparkSession, reason: str) -> None:
    """Log that row groups are not copied by this actor, why, and what to do."""
    _log.warning(
        "row_group_copy_unavailable",
        classes=str(spark.conf.get(java_sources.CLASSES, "")),
        spark=str(spark.version),
        error=reason,
        effect="rewrites decode and encode all rows instead, which costs about ten times the CPU seconds",
        remedy="make the folder of the classes writable, run driver and executors with the same Spark, "
        "and start the actor again",
    )
