"""Use of our Java classes that read and join Parquet files; where an executor cannot run them, all groups are encoded.

The driver has them from its start (`actor.jvm.own_jar`). An executor may be of another Spark, or not get the jar.
"""

import re
import threading

import structlog
from pyspark.sql import SparkSession

from actor.jvm.errors import first_line

_log = structlog.get_logger(__name__)

_REFUSAL = re.compile(
    r"\b(ClassNotFoundException|NoClassDefFoundError|ClassFormatError|UnsupportedClassVersionError|VerifyError|"
    r"IncompatibleClassChangeError|AbstractMethodError|NoSuchMethodError|NoSuchFieldError|IllegalAccessError|"
    r"InvalidClassException)\b|cannot assign instance of java\.lang\.invoke\.SerializedLambda"
)
"""Exceptions of a JVM without the classes, or with other libraries than those they were compiled against.

The last is what an executor without the class of a task says of the lambda that Spark puts around it.
"""


class ParquetClasses:
    """The classes in one application, for all of its threads."""

    def __init__(self, *, are_usable: bool = True) -> None:
        self._lock = threading.Lock()
        self._are_usable = are_usable

    def are_usable(self, _: SparkSession) -> bool:
        """Return whether no JVM has refused them until now."""
        return self._are_usable

    def give_up_if_refused(self, _: SparkSession, problem: Exception) -> None:
        """Warn that they are not used from now on if a JVM refused them; raises any other problem again."""
        if not _REFUSAL.search(first_line(problem)):
            raise problem
        with self._lock:
            were_usable, self._are_usable = self._are_usable, False
        if were_usable:
            _log.warning(
                "row_group_copy_unavailable",
                error=first_line(problem),
                effect="rewrites decode and encode all rows instead, which costs about ten times the CPU seconds",
                remedy="run driver and executors with the same Spark, and start the actor again",
            )
