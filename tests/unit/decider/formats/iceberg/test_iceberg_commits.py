"""A snapshot is a commit of what it added and removed itself, whatever else its manifests carry."""

from decider.formats.iceberg.commits import FileHistory, snapshot_commit
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.partitions import WHOLE_TABLE
from shared.table import Position, TableMetadata, TableProtocol

SNAPSHOT = SnapshotRecord(2, 1, 2, 200, "m", "append")
HEAD = TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 200, 2, {}, {2: SNAPSHOT})


def entry(status: EntryStatus, snapshot: int | None, path: str) -> Entry:
    return Entry(status, snapshot, 2, path, WHOLE_TABLE, 10, 5, None)


def test_entries_that_other_snapshots_added_or_removed_are_no_part_of_a_commit() -> None:
    entries = [
        entry(EntryStatus.ADDED, 2, "new"),
        entry(EntryStatus.ADDED, None, "unnamed"),
        entry(EntryStatus.ADDED, 1, "older"),
        entry(EntryStatus.DELETED, 2, "removed"),
        entry(EntryStatus.DELETED, 1, "removed before"),
        entry(EntryStatus.EXISTING, 1, "kept"),
    ]
    commit = snapshot_commit(SNAPSHOT, Position(200, "u.2"), entries, FileHistory(HEAD))
    assert [file.path for file in commit.added] == ["new", "unnamed"]
    assert [file.path for file in commit.removed] == ["removed"]
