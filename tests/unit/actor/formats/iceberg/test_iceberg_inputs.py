"""Which groups may be rewritten, and how many rows they have, follows from live files and the deletes on them."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from actor.formats.iceberg.inputs import (
    MAX_FILES_READ_FOR_DELETES,
    AppliedDelete,
    InputGroup,
    LiveInput,
    deleted_rows_to_plan_with,
    files_at_read,
    known_rows,
    left_without_data,
    resolve,
    still_live,
)
from shared.formats.iceberg.deletes import deletes_id
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, PartitionKey, TableMetadata, TableProtocol

VECTOR = AppliedDelete("v#4", DeleteKind.VECTOR, 3, is_exact=True)
POSITIONS = AppliedDelete("p", DeleteKind.POSITION, 3, is_exact=False)
VALUES = AppliedDelete("e", DeleteKind.EQUALITY, 1, is_exact=False)


def live(path: str, *deletes: AppliedDelete, partition: PartitionKey = WHOLE_TABLE) -> LiveInput:
    places = [one.path for one in deletes if one.is_positional]
    dv_id = deletes_id(places, has_values=len(places) < len(deletes))
    file = DataFile(path, 10, partition, dv_id=dv_id, rows=100)
    return LiveInput(path, 10, 100, 0, deletes, file)


def group(*files: LiveInput) -> FileGroup:
    return FileGroup(WHOLE_TABLE, tuple(one.file for one in files), RewriteMode.FULL)


def test_rows_are_known_where_each_delete_counts_exactly() -> None:
    assert known_rows([live("a"), live("b", VECTOR)]) == 197
    assert known_rows([live("a"), live("b", POSITIONS)]) is None
    assert known_rows([live("a", VALUES)]) is None


def test_rows_that_one_file_lost_by_position_count_for_its_plan_and_not_for_its_rewrite() -> None:
    own = replace(POSITIONS, is_of_one_file=True)
    assert [deleted_rows_to_plan_with(one, 100) for one in ([own], [VECTOR, own], [POSITIONS], [VALUES], [])] == [
        3, 6, 0, 0, 0,
    ]  # fmt: skip
    assert deleted_rows_to_plan_with([own], 2) == 2, "a row may be named twice"
    assert known_rows([live("a", own)]) is None


def test_the_files_that_hold_its_deletes_are_read_with_a_group() -> None:
    found = InputGroup(group(), (live("a", VECTOR, POSITIONS), live("b", replace(VECTOR, path="v#44"), VALUES)))
    assert found.delete_files == ("e", "p", "v")


def test_a_group_is_resolved_only_as_it_was_planned() -> None:
    planned = group(live("a"), live("b", VECTOR))
    now = {"a": live("a"), "b": live("b", VECTOR)}
    (found,) = resolve([planned], now)
    assert [one.path for one in found.inputs] == ["a", "b"]
    assert resolve([planned], {"a": live("a")}) == ()
    assert resolve([planned], now | {"b": live("b")}) == ()
    assert resolve([planned], now | {"a": live("a", partition=PartitionKey('{"dt":"1"}'))}) == ()
    (found,) = resolve([planned], now | {"a": live("a", VALUES)})
    assert [one.deletes for one in found.inputs] == [(VALUES,), (VECTOR,)]


def test_a_group_is_no_longer_live_when_an_input_is_gone_or_rows_of_it_were_deleted_by_place() -> None:
    read = InputGroup(group(live("a")), (live("a"),))
    assert still_live(read, {"a": live("a")})
    assert not still_live(read, {})
    assert not still_live(read, {"a": live("a", POSITIONS)})
    assert not still_live(read, {"a": live("a", VECTOR)})
    assert still_live(read, {"a": live("a", VALUES)}), "later deletes by value apply to the output, too"


def test_deletes_by_value_that_come_later_apply_to_the_output_too() -> None:
    read = InputGroup(group(live("a")), (live("a"),))
    assert still_live(read, {"a": live("a", VALUES)})


def test_files_of_several_specs_are_no_group_whatever_their_keys() -> None:
    """A partition field that is called `#spec` makes a key of the first spec look like one of another spec."""
    a, b = live("a"), replace(live("b"), spec=1)
    assert resolve([group(a, b)], {"a": a, "b": b}) == ()
    assert len(resolve([group(b)], {"a": a, "b": b})) == 1


OF_ALL = AppliedDelete("p", DeleteKind.POSITION, 3, is_exact=False, partition=WHOLE_TABLE)


def test_delete_files_go_with_the_last_data_file_that_they_apply_to() -> None:
    a, b = live("a", OF_ALL), live("b", OF_ALL)
    both = {"a": a, "b": b}
    assert left_without_data([InputGroup(group(a), (a,))], both) == ()
    assert left_without_data([InputGroup(group(a), (a,)), InputGroup(group(b), (b,))], both) == (OF_ALL,)
    assert left_without_data([InputGroup(group(a), (a,))], {"a": a, "c": live("c")}) == (OF_ALL,)
    assert left_without_data([], both) == ()


def test_a_delete_file_of_another_partition_stays() -> None:
    other = replace(OF_ALL, partition=PartitionKey('{"#spec":"1"}'))
    a = live("a", other, POSITIONS)
    assert left_without_data([InputGroup(group(a), (a,))], {"a": a}) == ()


def test_a_delete_file_that_others_removed_meanwhile_is_not_removed_again() -> None:
    a = live("a", OF_ALL)
    read = [InputGroup(group(a), (a,))]
    assert left_without_data(read, {"a": a}, {"a": a}) == (OF_ALL,)
    assert left_without_data(read, {"a": a}, {"a": live("a")}) == ()
    assert left_without_data(read, {"a": a}, {}) == ()


def test_without_a_read_of_the_table_no_delete_file_is_removed() -> None:
    a = live("a", OF_ALL)
    assert left_without_data([InputGroup(group(a), (a,))], {}) == ()


class Files:
    """A table that notes which partitions were read."""

    def __init__(self, *files: LiveInput) -> None:
        self._files = files
        self.read: list[Collection[PartitionKey] | None] = []

    def inputs(
        self, head: TableHead, snapshot: int, *, partitions: Collection[PartitionKey] | None
    ) -> Mapping[str, LiveInput]:
        assert snapshot == head.current
        self.read.append(partitions)
        return {one.path: one for one in self._files}


def head_of(total: str | None) -> TableHead:
    summary = {} if total is None else {"total-data-files": total}
    snapshot = SnapshotRecord(1, None, 1, 100, "m", "append", summary)
    metadata = TableMetadata(table_uuid="u", partition_columns=(), configuration={})
    return TableHead("file:///t", metadata, TableProtocol(2, 2), 100, 1, {}, {1: snapshot})


def test_before_a_delete_file_goes_all_files_of_the_table_are_read() -> None:
    """A scan of one partition leaves out files whose bounds contradict it; their deleted rows would return."""
    a, other = live("a", OF_ALL), live("b", OF_ALL, partition=PartitionKey('{"dt":"1"}'))
    table, groups = Files(a, other), [InputGroup(group(a), (a,))]
    found = files_at_read(table, head_of("2"), groups)
    assert (table.read, list(found)) == ([None], ["a", "b"])
    assert left_without_data(groups, found) == ()


def test_nothing_is_read_where_no_delete_file_is_to_be_removed() -> None:
    a, deleted = live("a"), live("b", OF_ALL)
    table, groups = Files(a, deleted), [InputGroup(group(deleted), (deleted,))]
    assert files_at_read(table, head_of("2"), [InputGroup(group(a), (a,))]) == {}
    assert files_at_read(table, head_of(str(MAX_FILES_READ_FOR_DELETES + 1)), groups) == {}
    assert files_at_read(table, head_of(None), groups) == {}
    assert files_at_read(table, replace(head_of("2"), current=None), groups) == {}
    assert table.read == []
