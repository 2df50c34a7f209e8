"""What a rewrite of an index must find, what it writes, and the laws that hold before its commit."""

import json

import pytest

from shared.errors import Corrupt
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import MAX_WEIGHT, Block, tagged_blocks
from shared.formats.qbeast.placement import (
    RowCount,
    block_tags,
    blocks_differ,
    plan_outputs,
    require_lawful,
    rows_of_blocks,
    rows_of_cubes,
)
from shared.formats.qbeast.revisions import IndexedColumn, Revision

COLUMNS = (IndexedColumn("a", "linear"), IndexedColumn("b", "linear"))
REVISION = Revision(3, 10, COLUMNS)
SPACE = CubeSpace(2)
BLOCKS = {"f": (Block("", 5, 100, 4), Block("w", 120, MAX_WEIGHT, 2)), "g": (Block("", 7, 90, 1),)}
FOUND = {("f", "", ""): RowCount(3, 5), ("f", "", "Q"): RowCount(1, 95), ("f", "w", "w"): RowCount(2, 120)}
FOUND |= {("g", "", ""): RowCount(1, 7)}


def test_rows_are_added_up_by_block_and_by_cube() -> None:
    blocks = {("f", ""): RowCount(4, 5), ("f", "w"): RowCount(2, 120), ("g", ""): RowCount(1, 7)}
    assert rows_of_blocks(FOUND) == blocks
    assert rows_of_cubes(FOUND) == {"": RowCount(4, 5), "Q": RowCount(1, 95), "w": RowCount(2, 120)}


def test_blocks_that_have_the_rows_that_they_say_do_not_differ() -> None:
    assert blocks_differ(BLOCKS, rows_of_blocks(FOUND)) == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({("f", "w"): RowCount(1, 120)}, "'w' of f says 2 rows from the weight 120 on, and 1 from 120 on were found"),
        ({("f", "w"): RowCount(3, 120)}, "and 3 from"),
        ({("f", "w"): RowCount(2, 119)}, "from 119 on were found"),
        ({("f", "w"): RowCount(2, 121)}, "from 121 on were found"),
        ({("g", "w"): RowCount(1, 9)}, "1 rows of g would be in a block 'w', which it does not have"),
    ],
)
def test_the_first_block_that_differs_is_named(change: dict[tuple[str, str], RowCount], says: str) -> None:
    assert says in blocks_differ(BLOCKS, rows_of_blocks(FOUND) | change)


def test_a_block_without_any_row_differs() -> None:
    left = rows_of_blocks(FOUND)
    del left["g", ""]
    assert "and 0 from" in blocks_differ(BLOCKS, left)


def test_a_file_with_deleted_rows_may_have_fewer_of_greater_weights_and_no_other_file_may() -> None:
    deleted = rows_of_blocks(FOUND) | {("f", ""): RowCount(3, 6)}
    assert blocks_differ(BLOCKS, deleted, {"f"}) == ""
    assert blocks_differ(BLOCKS, deleted, {"g"})
    assert blocks_differ(BLOCKS, deleted | {("f", "w"): RowCount(3, 120)}, {"f"})
    assert blocks_differ(BLOCKS, deleted | {("f", "w"): RowCount(1, 119)}, {"f"})
    gone = {key: count for key, count in deleted.items() if key != ("f", "w")}
    assert blocks_differ(BLOCKS, gone, {"f"}) == "", "all rows of a block may be deleted"


def test_small_cubes_are_written_with_their_parents_and_blocks_carry_the_weight_of_their_cube() -> None:
    counts = {"": RowCount(12, 1), "w": RowCount(11, 60), "ww": RowCount(3, 80), "Q": RowCount(2, 55)}
    weights = {"": 50, "w": 70}
    root, below = plan_outputs(counts, weights, REVISION)
    assert root == (Block("", 1, 50, 12), Block("Q", 55, MAX_WEIGHT, 2))
    assert below == (Block("w", 60, 70, 11), Block("ww", 80, MAX_WEIGHT, 3))


def test_tags_are_those_that_the_library_reads_and_nothing_else() -> None:
    tags = block_tags(3, BLOCKS["f"])
    assert tags["revision"] == "3"
    assert tagged_blocks(tags) == BLOCKS["f"]
    first = json.loads(tags["blocks"])[0]
    assert first == {"cubeId": "", "minWeight": 5, "maxWeight": 100, "elementCount": 4, "replicated": False}


def test_outputs_hold_all_rows_and_none_that_belongs_into_a_cube_above() -> None:
    outputs = [(Block("", 1, 50, 4),), (Block("ww", 51, MAX_WEIGHT, 2),)]
    require_lawful(outputs, {"": 50}, 6, SPACE)
    with pytest.raises(Corrupt, match="have 6 rows, their inputs 7"):
        require_lawful(outputs, {"": 50}, 7, SPACE)
    with pytest.raises(Corrupt, match="a row of weight 51 in 'ww' belongs into ''"):
        require_lawful(outputs, {"": 51}, 6, SPACE)
    with pytest.raises(Corrupt, match="belongs into 'w'"):
        require_lawful(outputs, {"": 50, "w": 60}, 6, SPACE)
