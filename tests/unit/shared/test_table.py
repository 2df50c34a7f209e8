"""The identity of a file is its path with its deletion vector; positions of a table are in the order of versions."""

import pytest

from shared.partitions import WHOLE_TABLE
from shared.table import (
    BEFORE_FIRST,
    Commit,
    DataFile,
    FileKey,
    Position,
    RemovedFile,
    Snapshot,
    TableMetadata,
    TableProtocol,
)


@pytest.mark.parametrize("dv_id", [None, "u1"])
def test_a_file_and_its_removal_have_one_key(dv_id: str | None) -> None:
    assert DataFile("a", 1, WHOLE_TABLE, dv_id).key == RemovedFile("a", dv_id).key == FileKey("a", dv_id)


def test_positions_are_ordered_by_version_whatever_their_digests() -> None:
    commit = Commit(4, 0, "WRITE", digest="b")
    snapshot = Snapshot(4, 0, TableMetadata("t"), TableProtocol(1, 2), (), "b")
    assert commit.position == snapshot.position == Position(4, "b")
    assert BEFORE_FIRST < Position(0, "z") < commit.position
    assert not Position(4, "a") < commit.position
