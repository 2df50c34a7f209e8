"""Use of our Java classes on executors, where they join Parquet files; one that refuses them has all groups encoded.

The driver has them from its start (`actor.jvm.own_jar`). An executor may be of another Spark, or not get the jar.
"""

import re
import threading
from collections.abc import Callable
from typing import TypeVar

import structlog

from actor.jvm.errors import first_line

_log = structlog.get_logger(__name__)

T = TypeVar("T")

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

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._are_usable = True

    @property
    def are_usable(self) -> bool:
        """True if no executor has refused them until now."""
        return self._are_usable

    def run(self, call: Callable[[], T]) -> T | None:
        """Return what a call with a task for executors returns, None from the first refusal on, of which it warns."""
        if not self._are_usable:
            return None
        try:
            return call()
        except Exception as problem:
            if not _REFUSAL.search(first_line(problem)):
                raise
            self._give_up(problem)
            return None

    def _give_up(self, problem: Exception) -> None:
        with self._lock:
            were_usable, self._are_usable = self._are_usable, False
        if were_usable:
            _log.warning(
                "row_group_copy_unavailable",
                error=first_line(problem),
                effect="rewrites decode and encode all rows instead, which costs about ten times the CPU seconds",
                remedy="run driver and executors with the same Spark, and start the actor again",
            )
