"""A table's log and store as a vacuum reads and changes them, through Delta's own snapshot and Hadoop's file system."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from actor.formats.delta.log import TableLog
from actor.formats.delta.table_store import TableStore
from shared.formats.delta_references import FileReference, reference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone, decode_commit
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.locations import canonical_location
from shared.paths.stored_file import StoredFile
from shared.table import TableMetadata

_COMMITS = "[0-9]*.json"

CommitEnd = Callable[[CommitMetadata, Mapping[str, int]], int]
"""Commits the end of a vacuum with this mark and these figures, and returns the version."""


class DeltaTableFiles:
    """`VacuumTable` of one table."""

    def __init__(
        self, log: TableLog, store: TableStore, check_head: Callable[[Any], TableMetadata], *, end: CommitEnd
    ) -> None:
        """`check_head` refuses a snapshot of a table that must not be touched, and returns its metadata."""
        self._log = log
        self._store = store
        self._location = canonical_location(log.location)
        self._check_head = check_head
        self._end = end
        self._snapshot: Any = None

    def head(self) -> tuple[int, TableMetadata]:
        """Read the newest snapshot; raises Unsupported or OtherTable for a table that must not be touched."""
        self._snapshot = self._log.snapshot()
        return int(self._snapshot.version()), self._check_head(self._snapshot)

    def live(self) -> Sequence[FileReference]:
        """Return the live files of the snapshot."""
        rows = self._store.rows_as_json(self._snapshot.allFiles(), ("path", "deletionVector"))
        return [reference(json.loads(row), self._location) for row in rows]

    def tombstones(self) -> Sequence[Tombstone]:
        """Return the tombstones of the snapshot, which Delta keeps for the table's own retention."""
        fields = ("path", "deletionVector", "size", "deletionTimestamp")
        found = map(json.loads, self._store.rows_as_json(self._snapshot.tombstones(), fields))
        return [Tombstone(reference(row, self._location), row.get("deletionTimestamp")) for row in found]

    def commit_times(self) -> Mapping[int, int]:
        """Return the times of the commit files that the log has."""
        found = self._store.list_log(_COMMITS)
        return {
            int(name.partition(".")[0]): modified_ms
            for name, modified_ms in found.items()
            if len(name) == len("00000000000000000000.json")
        }

    def commit(self, version: int, time_ms: int | None = None) -> LoggedCommit | None:
        """Return one commit; None if it is not there."""
        found = self._log.commit_file(version)
        if found is None:
            return None
        # The commits after the plan only keep files, whatever their time.
        return decode_commit(found.actions, version, 0 if time_ms is None else time_ms, self._location)

    def list_files(self) -> Iterator[StoredFile]:
        """Yield every file below the table's folder, in no order."""
        for name, size_bytes, modified_ms in self._store.list_recursively():
            yield StoredFile(name, size_bytes, modified_ms)

    def stored(self, names: Sequence[str]) -> Mapping[str, StoredFile]:
        """Return the existing ones of these files."""
        found = self._store.statuses(names)
        return {name: StoredFile(name, *status) for name, status in found.items() if status is not None}

    def digest(self, version: int) -> str | None:
        """Return the digest of a commit's file, None if it is not there."""
        return self._log.digest(version)

    def clock_ms(self) -> int:
        """Return the store's time."""
        return self._store.clock_ms()

    def delete(self, names: Sequence[str]) -> None:
        """Delete these files; raises RetryableError for one that is still there then."""
        self._store.delete(names)

    def end(self, mark: CommitMetadata, figures: Mapping[str, int]) -> int:
        """Commit the end of a vacuum."""
        return self._end(mark, figures)
