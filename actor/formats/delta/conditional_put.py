"""Before the first commit, a server must prove that it refuses to overwrite an object: some ignore the condition.

Then two writers could replace each other's commits without a trace, as with Delta's own log store. The test object is
in `_delta_log` under a name that no reader takes for a commit; it is deleted at once.
"""

import uuid
from typing import Any
from urllib.parse import urlsplit

import structlog
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from actor.formats.delta.preflight import S3_SCHEMES
from actor.jvm.errors import first_line, jvm_class_names
from actor.jvm.scala import Scala, jvm_session
from shared.errors import Unsupported
from shared.paths.locations import hadoop_path

_CONDITION = "fs.option.create.conditional.overwrite"
_REFUSALS = (409, 412)  # HTTP: Conflict, Precondition Failed.
_NOT_RECURSIVE = False

_log = structlog.get_logger(__name__)


class ConditionalPuts:
    """The buckets whose server has refused a second put, each tested once; safe to use from several threads."""

    def __init__(self, scala: Scala, spark: SparkSession) -> None:
        self._scala = scala
        self._spark = spark
        self._proven: set[str] = set()

    def check(self, location: str) -> None:
        """Raise Unsupported for a table on S3 whose server ignores the condition; other errors of the server pass."""
        place = urlsplit(location)
        if place.scheme not in S3_SCHEMES or place.netloc in self._proven:
            return
        path = self._scala.path(f"{hadoop_path(location)}/_delta_log/.lakewright-probe-{uuid.uuid4()}")
        files = path.getFileSystem(jvm_session(self._spark).sessionState().newHadoopConf())
        try:
            # No other knows the name: a first put is refused only if the client repeated it, which is a second one.
            replaced = self._put(files, path) and self._put(files, path)
        finally:
            _delete(files, path)
        if replaced:
            raise Unsupported(
                f"the server of {location} replaces an object despite the condition If-None-Match: *: a commit "
                "of another writer could be lost; keep tables that several programs write on a store that puts "
                "conditionally (see docs/object-stores.md)",
                field="location",
            )
        self._proven.add(place.netloc)

    def _put(self, files: Any, path: Any) -> bool:
        """Put the object if there is none; returns whether the server accepted it."""
        builder = files.createFile(path)
        builder.create()
        builder.overwrite(True)  # noqa: FBT003 - Java's flag: no check beforehand, the condition decides
        builder.must(_CONDITION, "true")
        try:
            builder.build().close()
        except Py4JJavaError as error:
            if _is_refusal(error):
                return False
            raise
        return True


def _is_refusal(error: Py4JJavaError) -> bool:
    if "RemoteFileChangedException" in jvm_class_names(error):
        return True
    cause = error.java_exception
    return str(cause.getClass().getSimpleName()) == "AWSServiceIOException" and cause.statusCode() in _REFUSALS


def _delete(files: Any, path: Any) -> None:
    try:
        files.delete(path, _NOT_RECURSIVE)
    except Py4JError as error:  # It is empty, and no reader reads it.
        _log.warning("probe_object_not_deleted", path=str(path.toString()), error=first_line(error))
