"""A table's files in its store, through Hadoop's file system: listings, states of single files, deletions.

Names are relative to the table's folder and as the store spells them: never URI-encoded.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.jvm.errors import jvm_class_names
from shared.errors import RetryableError

_RECURSIVE = True
_NOT_RECURSIVE = False


class TableStore:
    """The store of one table."""

    def __init__(self, scala: DeltaScala, log: TableLog) -> None:
        self._scala = scala
        self._log = log
        self._files: Any = log.store
        # As the file system spells it in what it lists.
        self._root = str(self._files.makeQualified(scala.path(log.root)).toString()).rstrip("/") + "/"

    def rows_as_json(self, dataset: Any, fields: Sequence[str]) -> list[str]:
        """Return some fields of each row of a JVM's dataset as JSON; nulls are left out."""
        first, *others = fields
        texts = dataset.toDF().select(first, self._scala.seq(others)).toJSON().collectAsList()
        if texts.isEmpty():
            return []
        # One string for all: a call into the JVM for each row would take longer than the rest. JSON has no line ends.
        return str(self._scala.java_string.join("\n", texts)).split("\n")

    def list_log(self, pattern: str) -> Mapping[str, int]:
        """Return names in the log's folder that match a glob pattern, with the time of their last change in ms."""
        found = self._files.listStatus(self._log.log_folder, self._scala.glob_filter(pattern))
        return {str(status.getPath().getName()): int(status.getModificationTime()) for status in found}

    def list_recursively(self) -> Iterator[tuple[str, int, int]]:
        """Yield name, size in bytes and time of last change in ms of every file below the table's folder."""
        found = self._files.listFiles(self._scala.path(self._log.root), _RECURSIVE)
        while found.hasNext():
            status = found.next()
            place = str(status.getPath().toString())
            if not place.startswith(self._root):
                raise RetryableError(f"{self._log.location}: the listing has {place}, outside of {self._root}")
            yield place.removeprefix(self._root), int(status.getLen()), int(status.getModificationTime())

    def statuses(self, names: Sequence[str]) -> dict[str, tuple[int, int] | None]:
        """Return size in bytes and time of last change in ms of each file, None for one that is not there."""
        return {name: self._status(name) for name in names}

    def _status(self, name: str) -> tuple[int, int] | None:
        try:
            status = self._files.getFileStatus(self._path(name))
        except Py4JError as error:
            if "FileNotFoundException" in jvm_class_names(error):
                return None
            raise
        return (int(status.getLen()), int(status.getModificationTime())) if status.isFile() else None

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; one that is not there is deleted already. Raises RetryableError for one that is there still."""
        for name in names:
            # Hadoop answers False for both: a file that is not there, and one that it may not delete.
            if not self._files.delete(self._path(name), _NOT_RECURSIVE) and self._files.exists(self._path(name)):
                raise RetryableError(f"{self._log.location}: {name} could not be deleted; check permissions")

    def clock_ms(self) -> int:
        """Return the store's time in milliseconds since 1970, by a hidden file that is written and deleted again."""
        path = self._path(f"_lakewright_clock_{uuid4().hex}")
        self._files.create(path).close()
        try:
            return int(self._files.getFileStatus(path).getModificationTime())
        finally:
            self._files.delete(path, _NOT_RECURSIVE)

    def _path(self, name: str) -> Any:
        return self._scala.path(self._root + name)
