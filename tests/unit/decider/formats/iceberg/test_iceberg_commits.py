"""Which snapshots are commits of ours, and what the decider learns of a deletion of rows by their age."""

from dataclasses import replace

import pytest

from decider.formats.iceberg.commits import FileHistory, snapshot_commit
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY
from shared.jobs.payload import COMPACT, EXPIRE
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.key_runs import KeyRuns
from shared.partitions import WHOLE_TABLE
from shared.table import Commit, CommitOrigin, DataFile, Position, TableMetadata, TableProtocol

OURS = CommitOrigin("j", 7)


def commit(operation: str, mode: str, compared: int | None = None) -> Commit:
    mark = CommitMetadata(OURS, mode=mode, deduplicated_version=compared).encode()
    snapshot = SnapshotRecord(2, 1, 2, 2_000, "m", operation, {COMMIT_KEY: mark})
    head = TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 2_000, 2, {}, {2: snapshot})
    return snapshot_commit(snapshot, Position(2_000, "u.2"), (), FileHistory(head))


@pytest.mark.parametrize("operation", ["delete", "overwrite"])
def test_a_deletion_of_rows_by_their_age_is_a_delete_of_ours_that_adds_no_rows(operation: str) -> None:
    made = commit(operation, EXPIRE)
    assert (made.operation, made.data_change, made.origin, made.deduplicated_version) == ("DELETE", True, OURS, None)
    runs = KeyRuns(appended_version=1_000, compared_version=1_000)
    written = replace(made, added=(DataFile("again", 5, WHOLE_TABLE),))
    assert not runs.after(written).is_pending


@pytest.mark.parametrize(("operation", "mode"), [("append", EXPIRE), ("overwrite", COMPACT), ("delete", "full")])
def test_a_copied_mark_on_another_change_of_data_is_not_ours(operation: str, mode: str) -> None:
    made = commit(operation, mode, 1_500)
    assert (made.origin, made.deduplicated_version) == (None, None)


def test_the_end_of_a_deletion_says_up_to_which_version_all_rows_were_compared() -> None:
    made = commit("replace", EXPIRE, 1_500)
    assert (made.operation, made.data_change, made.origin) == ("OPTIMIZE", False, OURS)
    runs = KeyRuns(appended_version=1_400).after(made)
    assert (runs.compared_version, runs.compared_ms, runs.is_pending) == (1_500, 2_000, False)
