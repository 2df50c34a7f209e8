"""What a snapshot of ours did is read from the entries of the manifests that it wrote."""

import pytest

from decider.formats.iceberg.rewrites import rewrite_of
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import SnapshotRecord
from shared.layout.commit_metadata import CommitMetadata
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin, DeleteKind

OURS = CommitMetadata(CommitOrigin("j", 1))
SNAPSHOT = SnapshotRecord(7, 6, 7, 100, "m", "replace")
ADDED, DELETED, EXISTING = EntryStatus.ADDED, EntryStatus.DELETED, EntryStatus.EXISTING


def entry(
    status: EntryStatus, path: str, rows: int, kind: DeleteKind | None = None, referenced: str = "", by: int = 7
) -> Entry:
    return Entry(status, by, 7, path, WHOLE_TABLE, 100, rows, kind, referenced=referenced)


@pytest.mark.parametrize("kind", [DeleteKind.POSITION, DeleteKind.VECTOR])
def test_rows_that_others_deleted_meanwhile_are_seen_on_neither_side_and_were_not_left_out(kind: DeleteKind) -> None:
    """Of 60 rows 12 were deleted at the read, and 5 of the others since; what is kept or of others does not count."""
    found = rewrite_of(
        SNAPSHOT,
        OURS,
        107,
        [
            entry(DELETED, "a", 20),
            entry(DELETED, "b", 40),
            entry(ADDED, "out", 48),
            entry(ADDED, "late", 5, kind, "out"),
            entry(ADDED, "rest", 3, DeleteKind.POSITION, "other"),
            entry(DELETED, "theirs", 8, DeleteKind.POSITION),
            entry(EXISTING, "kept", 1_000, by=3),
        ],
    )
    assert (found.inputs.rows, found.outputs.rows, found.deleted_rows) == (43, 43, 12)
    assert (found.inputs.files, found.outputs.files, found.version) == (("a", "b"), ("out",), 107)
