"""What the decider knows of vacuums of an Iceberg table: what was removed, and when one ended."""

from decider.formats.iceberg.vacuums import removals, vacuum_mark
from shared.formats.iceberg.metadata import Ref, SnapshotRecord, TableHead
from shared.formats.iceberg.names import VACUUM_KEY
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin, TableMetadata, TableProtocol, VacuumMark

ORIGIN = CommitOrigin("job", 7)


def head(*summaries: dict[str, str]) -> TableHead:
    """Return a table of snapshots 1, 2, ... with these summaries, made at 10, 20, ..."""
    snapshots = {
        one: SnapshotRecord(one, one - 1 or None, one, 10 * one, f"list-{one}", "overwrite", summary)
        for one, summary in enumerate(summaries, start=1)
    }
    newest = len(snapshots)
    refs = {"main": Ref(newest, is_branch=True)}
    return TableHead("s3://t", TableMetadata("u"), TableProtocol(2, 2), 99, newest, {}, snapshots, refs=refs)


def test_each_snapshot_removes_the_files_of_its_summary_and_the_list_of_the_one_before() -> None:
    removed = {"deleted-data-files": "2", "removed-files-size": "7", "removed-delete-files": "1"}
    assert list(removals(head({}, removed, {"deleted-data-files": "x"}))) == [
        (30, 0),
        (20, 4),
        (20, 3),
        (20, 0),
        (20, 0),
    ]


def test_a_vacuum_ended_when_its_mark_changed() -> None:
    mark = {VACUUM_KEY: CommitMetadata(ORIGIN, vacuumed_until_ms=5, vacuumed_orphans=1).encode()}
    assert vacuum_mark({}, mark) == VacuumMark(5, with_orphans=True)
    assert vacuum_mark(mark, mark) is None
    assert vacuum_mark(mark, {}) is None
    assert vacuum_mark({}, {VACUUM_KEY: "by another writer"}) is None
    assert vacuum_mark({}, {VACUUM_KEY: CommitMetadata(ORIGIN).encode()}) is None
