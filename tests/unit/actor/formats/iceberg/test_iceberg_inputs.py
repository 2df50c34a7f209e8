"""Which groups may be rewritten, and how many rows they have, follows from live files and the deletes on them."""

from actor.formats.iceberg.inputs import (
    AppliedDelete,
    InputGroup,
    LiveInput,
    delete_digest,
    known_rows,
    resolve,
    still_live,
)
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, PartitionKey

VECTOR = AppliedDelete("v#4", DeleteKind.VECTOR, 3, is_exact=True)
POSITIONS = AppliedDelete("p", DeleteKind.POSITION, 3, is_exact=False)
VALUES = AppliedDelete("e", DeleteKind.EQUALITY, 1, is_exact=False)


def live(path: str, *deletes: AppliedDelete, partition: PartitionKey = WHOLE_TABLE) -> LiveInput:
    file = DataFile(path, 10, partition, dv_id=delete_digest(deletes), rows=100)
    return LiveInput(path, 10, 100, 0, deletes, file)


def group(*files: LiveInput) -> FileGroup:
    return FileGroup(WHOLE_TABLE, tuple(one.file for one in files), RewriteMode.FULL)


def test_rows_are_known_where_each_delete_counts_exactly() -> None:
    assert known_rows([live("a"), live("b", VECTOR)]) == 197
    assert known_rows([live("a"), live("b", POSITIONS)]) is None
    assert known_rows([live("a", VALUES)]) is None


def test_a_group_is_resolved_only_as_it_was_planned() -> None:
    planned = group(live("a"), live("b", VECTOR))
    now = {"a": live("a"), "b": live("b", VECTOR)}
    (found,) = resolve([planned], now)
    assert [one.path for one in found.inputs] == ["a", "b"]
    assert resolve([planned], {"a": live("a")}) == ()
    assert resolve([planned], now | {"b": live("b")}) == ()
    assert resolve([planned], now | {"a": live("a", partition=PartitionKey('{"dt":"1"}'))}) == ()


def test_a_group_is_no_longer_live_when_an_input_is_gone_or_rows_of_it_were_deleted_by_place() -> None:
    read = InputGroup(group(live("a")), (live("a"),))
    assert still_live(read, {"a": live("a")})
    assert not still_live(read, {})
    assert not still_live(read, {"a": live("a", POSITIONS)})
    assert not still_live(read, {"a": live("a", VECTOR)})


def test_deletes_by_value_that_come_later_apply_to_the_output_too() -> None:
    read = InputGroup(group(live("a")), (live("a"),))
    assert still_live(read, {"a": live("a", VALUES)})


def test_what_identifies_deletes_is_their_set() -> None:
    assert delete_digest([VECTOR, VALUES]) == delete_digest([VALUES, VECTOR]) != delete_digest([VECTOR])
    assert delete_digest([]) is None
