"""Inputs are followed from the snapshot of the read to the newest one, and each snapshot between is read once."""

from collections.abc import Iterable

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.newest_inputs import Inputs, NewestInputs, after_changes
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, TableMetadata, TableProtocol


def live(path: str, *deletes: AppliedDelete) -> LiveInput:
    return LiveInput(path, 10, 5, 0, deletes, DataFile(path, 10, WHOLE_TABLE, rows=5))


def delete(name: str, kind: DeleteKind = DeleteKind.POSITION) -> AppliedDelete:
    return AppliedDelete(name, kind, 1, is_exact=False)


A, B = live("a", delete("d")), live("b")
GROUP = InputGroup(FileGroup(WHOLE_TABLE, (A.file, B.file), RewriteMode.FULL), (A, B))


class Table:
    """A table that notes what it is asked; each snapshot adds a delete file with its number to `a`."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self.is_far = False

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Inputs:
        assert list(groups) == [GROUP.group]
        self.asked.append(("live", 0, snapshot))
        return {"a": live("a", delete("scanned")), "b": B}

    def followed(self, inputs: Inputs, since: int, until: int) -> Inputs | None:
        self.asked.append(("followed", since, until))
        return None if self.is_far else dict(inputs) | {"a": live("a", *inputs["a"].deletes, delete(str(until)))}


def head(*chain: int) -> TableHead:
    """Return metadata with a main of these snapshots, each the child of the one before."""
    parents = (None, *chain)
    made = {
        one: SnapshotRecord(one, parent, one, 100, "m", "overwrite")
        for one, parent in zip(chain, parents, strict=False)
    }
    return TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 100, chain[-1], {}, made)


def names(inputs: Inputs) -> list[str]:
    return [one.path for one in inputs["a"].deletes]


def test_what_came_since_the_last_look_is_read_alone() -> None:
    table = Table()
    newest = NewestInputs(table, 1, [GROUP])
    assert names(newest.at(head(1, 2), 2)) == ["d", "2"]
    assert names(newest.at(head(1, 2), 2)) == ["d", "2"]
    assert names(newest.at(head(1, 2, 3, 4), 4)) == ["d", "2", "4"]
    assert table.asked == [("followed", 1, 2), ("followed", 2, 4)]


def test_after_a_rollback_the_snapshots_since_the_read_are_read_again() -> None:
    table = Table()
    newest = NewestInputs(table, 1, [GROUP])
    newest.at(head(1, 2), 2)
    assert names(newest.at(head(1, 3), 3)) == ["d", "3"]
    assert names(newest.at(head(1), 1)) == ["d"]
    assert table.asked == [("followed", 1, 2), ("followed", 1, 3)]


def test_a_table_with_too_many_new_snapshots_is_scanned_and_followed_from_there() -> None:
    table = Table()
    table.is_far = True
    newest = NewestInputs(table, 1, [GROUP])
    assert names(newest.at(head(1, 99), 99)) == ["scanned"]
    table.is_far = False
    assert names(newest.at(head(1, 99, 100), 100)) == ["scanned", "100"]
    assert table.asked == [("followed", 1, 99), ("live", 0, 99), ("followed", 99, 100)]


def test_what_was_removed_is_gone_and_a_vector_stands_for_all_positions() -> None:
    values, vector, old = (
        delete("e", DeleteKind.EQUALITY),
        delete("v#4", DeleteKind.VECTOR),
        delete("v#0", DeleteKind.VECTOR),
    )
    inputs = [live("a", values, delete("p"), delete("q")), live("b", old), live("c", delete("p"))]
    found = after_changes(inputs, [[delete("r")], [vector], []], frozenset({"p", "v#0"}))
    assert {path: [one.path for one in now.deletes] for path, now in found.items()} == {
        "a": ["e", "q", "r"],
        "b": ["v#4"],
        "c": [],
    }
    assert after_changes(inputs[:1], [[vector]], frozenset())["a"].deletes == (values, vector)
    assert after_changes(inputs, [[], [], []], frozenset({"a", "c"})).keys() == {"b"}
