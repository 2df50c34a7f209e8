"""Operations on cells: when each is due, which files it takes, and that none makes itself due again."""

import pytest

from shared.layout.cells.boxes import EVERYTHING, Box
from shared.layout.cells.operations import BoxedFile, CellOperation, CellSizes, CellWork, find_operations
from shared.layout.cells.tree import Cut, Node
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile

SIZES = CellSizes(target_bytes=160, run_bytes=320)
"""A piece has 10 bytes; a cell is split above 213."""


def file(name: str, size: int, low: int, high: int, *, deleted: int = 0) -> BoxedFile:
    """A file in one column, a byte a row."""
    return BoxedFile(DataFile(name, size, WHOLE_TABLE, rows=size, deleted_rows=deleted), ((low, high),))


def files(*sizes: int, low: int = 0, high: int = 50) -> list[BoxedFile]:
    return [file(f"f{at}", size, low, high) for at, size in enumerate(sizes)]


def tree(*cuts: int) -> Node:
    root = node = Node((EVERYTHING,))
    for at in cuts:
        _, node = node.divide(Cut(0, at))
    return root


def due(of: list[BoxedFile], root: Node | None = None, sizes: CellSizes = SIZES) -> list[CellOperation]:
    return find_operations(root or tree(100), of, sizes)


def taken(operation: CellOperation) -> list[str]:
    return sorted(one.file.path for one in operation.files)


@pytest.mark.parametrize(("sizes", "is_due"), [((10, 9), False), ((10, 10), True), ((1,) * 8, False)])
def test_files_wait_at_an_inner_node_until_there_are_two_pieces(sizes: tuple[int, ...], is_due: bool) -> None:
    found = due(files(*sizes, low=90, high=110))
    assert [one.work for one in found] == [CellWork.DOWN] * is_due


def test_many_small_files_that_wait_become_one() -> None:
    found = due(files(*[1] * 9, low=90, high=110))
    assert [(one.work, len(one.files)) for one in found] == [(CellWork.MERGE, 9)]


def test_a_run_moves_the_largest_files_down_first_and_never_more_than_its_bytes() -> None:
    (found,) = due(files(5, 200, 300, 20, low=90, high=110))
    assert (found.work, taken(found)) == (CellWork.DOWN, ["f2", "f3"])
    assert found.size_bytes <= SIZES.run_bytes


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ((50, 50, 50), ["f0", "f1", "f2"]),
        ((50, 50), None),
        ((80, 50, 50), None),
        ((80, 10, 10, 10), ["f1", "f2", "f3"]),
        ((80, 10, 10, 41), ["f1", "f2"]),
        ((80, 10, 10, 40), ["f0", "f1", "f2", "f3"]),
    ],
    ids=["three small", "two", "one is half of T", "four", "a wide step", "twice as much"],
)
def test_a_cell_with_too_many_files_merges_the_smallest(sizes: tuple[int, ...], merged: list[str] | None) -> None:
    found = due(files(*sizes))
    assert [(one.work, taken(one)) for one in found] == ([(CellWork.MERGE, merged)] if merged else [])


def test_two_files_that_a_run_cannot_take_together_are_not_merged() -> None:
    sizes = CellSizes(target_bytes=160, run_bytes=50)
    assert due(files(40, 40, 40, 40), sizes=sizes) == []
    assert due(files(*[3] * 9, low=90, high=110), sizes=CellSizes(target_bytes=1600, run_bytes=5)) == []


def test_a_cell_is_split_above_four_thirds_of_the_target_counting_live_rows() -> None:
    assert due([file("f", 213, 0, 50)]) == []
    (found,) = due([file("f", 214, 0, 50)])
    assert (found.work, found.known) == (CellWork.SPLIT, found.files)
    assert due([file("f", 230, 0, 50, deleted=20)]) == []


def test_a_cell_of_one_key_is_never_split_and_only_its_small_files_are_merged() -> None:
    one_key = files(160, 160, 100, 30, 30, low=7, high=8)
    assert due(one_key) == []
    (found,) = due([*one_key, file("g", 30, 7, 8), file("dead", 10, 0, 50, deleted=10)])
    assert (found.work, taken(found)) == (CellWork.MERGE, ["dead", "f3", "f4", "g"])


def test_a_cell_larger_than_a_run_is_known_whole_and_rewritten_in_part_evenly() -> None:
    parts = [file(f"f{at}", 80, at * 10, at * 10 + 10) for at in range(8)]
    (found,) = due(parts, tree(1000))
    assert found.work is CellWork.SPLIT
    assert len(found.known) == 8
    assert taken(found) == ["f0", "f1", "f3", "f6"]


def test_files_whose_boxes_deleted_rows_have_widened_are_split_before_those_of_one_key() -> None:
    narrow = [file(f"n{at}", 100, 7, 8) for at in range(5)]
    (found,) = due([*narrow, file("wide", 60, 7, 50, deleted=1)])
    assert "wide" in taken(found)


def test_a_cell_with_a_fifth_of_its_bytes_deleted_is_written_again() -> None:
    assert due([file("f", 100, 0, 50, deleted=20)]) == []
    (found,) = due([file("f", 100, 0, 50, deleted=21), file("g", 2, 0, 50)])
    assert (found.work, taken(found)) == (CellWork.PURGE, ["f", "g"])


def test_of_a_large_cell_with_many_deleted_rows_those_with_the_most_are_written_again() -> None:
    one_key = [file(f"f{at}", 150, 7, 8, deleted=31 + at) for at in range(12)]
    (found,) = due(one_key)
    assert (found.work, taken(found)) == (CellWork.PURGE, ["f11"]), "two of them have more live rows than a cell"


def test_a_file_larger_than_a_run_is_left_alone() -> None:
    assert due([file("huge", 321, 0, 50), file("waits", 321, 90, 110)]) == []


def test_what_waits_longest_in_proportion_comes_first() -> None:
    waiting = files(20, 20, 20, low=90, high=110)
    cell: Box = ((200, 300),)
    crowded = [BoxedFile(one.file, cell) for one in files(9, 9, 9, 9)]
    assert [one.work for one in due([*crowded, *waiting])] == [CellWork.DOWN, CellWork.MERGE]
