"""Our newest rewrites, which a catalog may undo: those after the last commit of others, and only where they may be."""

from dataclasses import replace

from decider.state.own_tail import MAX_COMMITS, OwnCommit, tail_after
from shared.partitions import WHOLE_TABLE
from shared.table import Commit, CommitOrigin, DataFile, Position


def rewrite(version: int, *sizes: int) -> Commit:
    files = tuple(DataFile(f"f{version}-{n}", size, WHOLE_TABLE) for n, size in enumerate(sizes))
    return Commit(
        version, version, "replace", files, data_change=False, origin=CommitOrigin("j", 1), digest=f"d{version}"
    )


def test_rewrites_are_remembered_until_others_commit() -> None:
    tail = tail_after((), rewrite(1, 10, 20), is_asked=True)
    tail = tail_after(tail, rewrite(2, 5), is_asked=True)
    assert tail == (OwnCommit(1, "d1", 30), OwnCommit(2, "d2", 5))
    assert tail[0].position == Position(1, "d1")
    assert tail_after(tail, Commit(3, 3, "append"), is_asked=True) == ()
    assert tail_after(tail, replace(rewrite(3), data_change=True), is_asked=True) == (), "a removal of rows stays"
    assert tail_after(tail, rewrite(3), is_asked=False) == ()
    properties = Commit(3, 3, "SET TBLPROPERTIES", data_change=False, digest="d2")
    assert tail_after(tail, properties, is_asked=True) == tail, "no snapshot, so ours is still the newest"
    assert tail_after(tail, properties, is_asked=False) == ()
    assert tail_after((), properties, is_asked=True) == ()
    assert tail_after(tail, replace(properties, digest=""), is_asked=True) == ()


def test_no_more_than_some_are_remembered() -> None:
    tail = ()
    for version in range(MAX_COMMITS + 5):
        tail = tail_after(tail, rewrite(version), is_asked=True)
    assert [one.version for one in tail] == list(range(5, MAX_COMMITS + 5))
