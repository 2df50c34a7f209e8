"""An Iceberg table in the JVM as a vacuum reads and changes it: through the table's own file access, and its catalog.

The file access is the catalog's, which may hold credentials for this table alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from actor.formats.iceberg.conflicts import classify
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.java_table import JavaTable
from actor.jvm.errors import first_line
from actor.rewrite.model import Verdict
from shared.errors import Conflict, Corrupt, RetryableError
from shared.formats.iceberg.manifests import Entry
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import VACUUM_KEY
from shared.formats.iceberg.retention import Expiry
from shared.formats.iceberg.vacuum_plan import name_below
from shared.paths.boundary import Boundary
from shared.paths.stored_file import StoredFile


class JavaVacuumTable:
    """`IcebergVacuumTable` of one table; `check` refuses metadata of a table that must not be touched."""

    def __init__(
        self, scala: IcebergScala, table: JavaTable, check: Callable[[TableHead], None], boundary: Boundary
    ) -> None:
        self._scala = scala
        self._table = table
        self._check = check
        self._boundary = boundary
        self._head: TableHead | None = None

    def refresh(self) -> TableHead:
        """Return the newest metadata; raises Unsupported or OtherTable for a table that must not be touched."""
        self._table.raw.refresh()
        self._head = self._table.whole_head()
        self._check(self._head)
        return self._head

    def expire(self, expiry: Expiry) -> None:
        """Commit the removal of snapshots, branches and tags; raises Conflict if others have committed since."""
        operations = self._table.raw.operations()
        base = operations.current()
        change = self._scala.resolve("org.apache.iceberg.TableMetadata").buildFrom(base)
        for name in expiry.refs:
            change = change.removeRef(name)
        snapshots = self._scala.java_list(base.snapshot(one) for one in sorted(expiry.snapshots))
        with self._refused_by_others():
            operations.commit(base, change.removeSnapshots(snapshots).build())

    def remove_deletes(self, snapshot: int, deletes: Sequence[Entry], summary: Mapping[str, str]) -> None:
        """Commit the removal of delete files upon a snapshot; raises Conflict if it is the newest one no longer."""
        raw = self._table.raw
        commit = self._scala.watched_commit(raw)
        commit.requireSnapshot(snapshot)
        rewrite = commit.newRewrite(raw)
        ids = self._scala.java_list(one.delete_id for one in deletes)
        found = int(self._scala.iceberg_scan.removeDeletes(rewrite, raw, snapshot, ids))
        if found != len(deletes):
            raise Corrupt(f"{self._table.location}: {found} of {len(deletes)} delete files were found again")
        for name, value in summary.items():
            rewrite.set(name, value)
        with self._refused_by_others():
            rewrite.commit()

    def read(self, path: str, length: int) -> bytes | None:
        """Return a file, or its first bytes (0: all of it); None if it is not there."""
        streams = self._scala.resolve("org.apache.iceberg.relocated.com.google.common.io.ByteStreams")
        file = self._io.newInputFile(path)
        try:
            stream = file.newStream()
            try:
                return bytes(streams.toByteArray(streams.limit(stream, length) if length else stream))
            finally:
                stream.close()
        except Exception:
            if not file.exists():
                return None
            raise

    def list_files(self) -> Iterator[StoredFile]:
        """Yield every file below the table's folder."""
        found = self._io.listPrefix(f"{self._location}/").iterator()
        while found.hasNext():
            yield self._stored(found.next())

    def list_metadata(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files in the folder of the table's metadata, by their names in it."""
        found = self._io.listPrefix(f"{folder}/").iterator()
        while found.hasNext():
            file = found.next()
            name = str(file.location()).rpartition("/")[2]
            yield StoredFile(name, int(file.size()), int(file.createdAtMillis()))

    def existing(self, paths: Sequence[str]) -> AbstractSet[str]:
        """Return the existing ones of these files."""
        return {path for path in paths if self._io.newInputFile(path).exists()}

    def clock_ms(self) -> int:
        """Return the store's time in milliseconds since 1970, by a hidden file that is written and deleted again."""
        path = f"{self._location}/_lakewright_clock_{uuid4().hex}"
        self._io.newOutputFile(path).create().close()
        try:
            return int(self._io.listPrefix(path).iterator().next().createdAtMillis())
        finally:
            self._io.deleteFile(path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; raises RetryableError for one that is there still, and Unsupported, before all, for a link."""
        names = [name for path in paths if (name := name_below(self._location, path)) is not None]
        self._boundary.check_not_linked(self._location, names)
        for path in paths:
            self._io.deleteFile(path)
        left = self.existing(paths)
        if left:
            raise RetryableError(f"{self._table.location}: {min(left)} could not be deleted; check permissions")

    def end(self, mark: str) -> None:
        """Set the property that shows the end of a vacuum."""
        self._table.raw.updateProperties().set(VACUUM_KEY, mark).commit()

    @contextmanager
    def _refused_by_others(self) -> Iterator[None]:
        """Raise Conflict for a commit that was certainly not made because others were first."""
        try:
            yield
        except Exception as error:
            if (found := classify(error)) in (Verdict.BUSY, Verdict.TAKEN):
                raise Conflict(f"{self._table.location}: {first_line(error)}", kind=found) from error
            raise

    @property
    def _io(self) -> Any:
        return self._table.raw.io()

    @property
    def _location(self) -> str:
        return (self._head or self._table.head()).location

    def _stored(self, file: Any) -> StoredFile:
        path = str(file.location())
        name = name_below(self._location, path)
        if name is None:
            raise RetryableError(f"{self._table.location}: the listing has {path}, outside of {self._location}")
        return StoredFile(name, int(file.size()), int(file.createdAtMillis()))
