"""Files, cubes and figures of an index, and what a rewrite must find and write."""

import json
import random

import pytest

from shared.errors import Corrupt
from shared.formats.qbeast.cubes import ROOT, CubeSpace, cube_order
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile, index_file, tagged_blocks
from shared.formats.qbeast.metrics import measure
from shared.formats.qbeast.placement import (
    RowCount,
    block_tags,
    blocks_differ,
    plan_outputs,
    require_lawful,
    rows_of_blocks,
    rows_of_cubes,
)
from shared.formats.qbeast.revisions import IndexedColumn, Revision, Revisions, decode_revisions
from shared.formats.qbeast.weights import cube_weights, offset_rows, weight_of_fraction
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support.qbeast_tree import configuration

REVISIONS: Revisions = decode_revisions(configuration(500))
BLOCK = {"cubeId": "wQ", "minWeight": -5, "maxWeight": 7, "elementCount": 30, "replicated": False}


def found(tags: dict[str, str]) -> IndexFile:
    return index_file(DataFile("f", 11, WHOLE_TABLE, modified_ms=13, tags=tags), REVISIONS)


def blocks(*raw: object) -> dict[str, str]:
    return {"revision": "1", "blocks": json.dumps(raw)}


def test_an_indexed_file_has_its_blocks() -> None:
    file = found(blocks(BLOCK, {"cubeId": ""}))
    assert (file.kind, file.revision, file.problem) == (FileClass.INDEXED, 1, "")
    assert file.blocks == (Block("wQ", -5, 7, 30), Block("", MIN_WEIGHT, MAX_WEIGHT, 0)), "defaults of the library"
    assert (file.path, file.size_bytes, file.modified_ms, file.rows) == ("f", 11, 13, 30)


def test_unknown_fields_of_a_block_are_ignored_and_a_file_without_blocks_is_indexed() -> None:
    assert found(blocks(BLOCK | {"replicated": None, "new": 1})).kind is FileClass.INDEXED
    assert found(blocks()).blocks == ()


@pytest.mark.parametrize(
    ("tags", "kind"),
    [
        ({}, FileClass.UNINDEXED),
        ({"revision": "0"}, FileClass.UNINDEXED),
        ({"revision": "0", "blocks": "[]"}, FileClass.UNINDEXED),  # What 0.7.1 makes of such files when it merges them.
        ({"ZCUBE_ID": "x"}, FileClass.FOREIGN_TAGS),
        ({"INSERTION_TIME": "1"}, FileClass.FOREIGN_TAGS),
        ({"blocks": "[]"}, FileClass.FOREIGN_TAGS),
        ({"cube": "w", "revision": "1", "state": "FLOODED"}, FileClass.LEGACY),
    ],
)
def test_a_file_that_is_not_indexed_is_of_the_class_that_the_library_gives_it(
    tags: dict[str, str], kind: FileClass
) -> None:
    file = found(tags)
    assert (file.kind, file.revision, file.blocks) == (kind, 0, ())


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (blocks(BLOCK) | {"revision": "2"}, "no revision"),
        (blocks(BLOCK) | {"revision": "one"}, "no revision"),
        ({"revision": "1"}, "no JSON"),
        ({"revision": "1", "blocks": "{}"}, "a list of blocks"),
        (blocks("w"), "a cubeId"),
        (blocks({"cubeId": None}), "a cubeId"),
        (blocks(BLOCK | {"cubeId": "w="}), "no symbol"),
        (blocks(BLOCK | {"elementCount": -1}), "elementCount is -1"),
        (blocks(BLOCK | {"elementCount": 2**63}), "elementCount"),
        (blocks(BLOCK | {"elementCount": True}), "elementCount"),
        (blocks(BLOCK | {"minWeight": 1.5}), "minWeight"),
        (blocks(BLOCK | {"maxWeight": 2**31}), "maxWeight"),
    ],
)
def test_a_file_whose_tags_cannot_be_used_is_malformed_with_the_reason(tags: dict[str, str], problem: str) -> None:
    file = found(tags)
    assert (file.kind, file.blocks) == (FileClass.MALFORMED, ())
    assert problem in file.problem


def test_blocks_are_read_from_tags_alone_where_no_revision_is_known() -> None:
    block = {"cubeId": "no cube of ours", "elementCount": 3}
    assert tagged_blocks({"blocks": json.dumps([block])}) == (Block("no cube of ours", MIN_WEIGHT, MAX_WEIGHT, 3),)
    odd: list[object] = [None, [], {}, {"blocks": 3}, {"blocks": "["}, {"blocks": '[{"cubeId": 1}]'}]
    assert [tagged_blocks(tags) for tags in odd] == [None] * len(odd)


@pytest.mark.parametrize(
    ("dimensions", "cube", "depth", "parent"),
    [
        (2, "", 0, None),
        (2, "w", 1, ""),
        (2, "wQ", 2, "w"),
        (2, "wQg", 3, "wQ"),
        (1, "gg", 2, "g"),
        (3, "Y", 1, ""),
        (6, "/", 1, ""),
        (7, "0Q", 1, ""),
        (8, "0QTQ", 2, "0Q"),
    ],
)
def test_depth_and_parent_count_groups_of_symbols(dimensions: int, cube: str, depth: int, parent: str | None) -> None:
    space = CubeSpace(dimensions)
    space.check(cube)
    assert (space.depth(cube), space.parent(cube)) == (depth, parent)


@pytest.mark.parametrize(("dimensions", "cube"), [(8, "0QT"), (2, "w="), (2, "w-"), (2, "é")])
def test_a_text_that_is_no_cube_of_the_space_is_refused(dimensions: int, cube: str) -> None:
    with pytest.raises(Corrupt, match="cube"):
        CubeSpace(dimensions).check(cube)


def test_cubes_are_ordered_by_bits_with_ancestors_first_and_not_by_characters() -> None:
    ordered = [ROOT, "A", "AA", "Aa", "Z", "a", "z", "0", "9", "+", "/"]
    shuffled = random.Random(7).sample(ordered, len(ordered))
    assert sorted(shuffled, key=cube_order) == ordered
    assert sorted(shuffled) != ordered


REVISION = Revision(1, 10, (IndexedColumn("a", "linear"), IndexedColumn("b", "hashing")))


def file(path: str, *blocks: Block, size: int = 100) -> IndexFile:
    return IndexFile(path, size, FileClass.INDEXED, 1, blocks)


def test_figures_count_cubes_blocks_levels_children_and_rows_above_a_cubes_weight() -> None:
    files = [
        file("old", Block("", MIN_WEIGHT, 1000, 12), Block("A", 0, MAX_WEIGHT, 4)),
        file("new", Block("", 500, 600, 8), size=50),
        file("leaf", Block("AQ", 0, MAX_WEIGHT, 120), Block("w", 0, MAX_WEIGHT, 1)),
        file("empty", Block("w", 0, MAX_WEIGHT, 0)),
    ]
    found = measure(files, REVISION)
    assert (found.rows, found.bytes, found.files, found.cubes, found.blocks) == (145, 350, 4, 4, 6)
    assert (found.height, found.min_height) == (3, 3)
    assert found.fanout == pytest.approx(1.5), "the root has two children, A has one"
    assert (found.fragmentation, found.blocks_per_file) == (1.5, 1.5)
    assert (found.max_blocks_per_file, found.max_blocks_per_cube) == (2, 2)
    assert (found.overhang_blocks, found.offset_rows) == (1, 0), "few of the weights are above 600"
    assert found.hidden_blocks == 3, "all rows of weights up to 600 belong into the root"
    assert (found.zero_block_files, found.files_by_level) == (1, {0: 1, 1: 1, 2: 1})


def test_a_revision_without_files_has_no_figures() -> None:
    found = measure([], REVISION)
    assert (found.files, found.height, found.min_height, found.fanout) == (0, 0, 0, 0)
    assert (found.fragmentation, found.blocks_per_file) == (0, 0)


def test_a_cubes_weight_is_the_least_of_its_blocks() -> None:
    files = [file("a", Block("w", 0, 9, 1)), file("b", Block("w", 0, 5, 1), Block("", 0, 7, 1))]
    files.append(file("c", Block("w", 0, 8, 1)))
    assert cube_weights(files) == {"w": 5, "": 7}


@pytest.mark.parametrize(
    ("block", "limit", "rows"),
    [
        (Block("", 0, 100, 40), 50, 20),
        (Block("", 0, 100, 40), -5, 40),
        (Block("", 0, 100, 40), 100, 0),
        (Block("", 0, 100, 40), 150, 0),
        (Block("", 7, 7, 40), 0, 40),
    ],
)
def test_rows_above_a_weight_are_estimated_from_a_blocks_range(block: Block, limit: int, rows: int) -> None:
    assert offset_rows(block, limit) == rows


def test_the_weight_of_a_fraction_is_truncated_as_by_the_library() -> None:
    assert [weight_of_fraction(f) for f in (0.0, 0.5, 1.0)] == [MIN_WEIGHT, 0, MAX_WEIGHT]
    assert weight_of_fraction(0.125) == -1610612736


COLUMNS = (IndexedColumn("a", "linear"), IndexedColumn("b", "linear"))
THIRD = Revision(3, 10, COLUMNS)
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
    root, below = plan_outputs(counts, weights, THIRD)
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
    with pytest.raises(Corrupt, match="is no symbol of a cube's name"):
        require_lawful([*outputs, (Block("(outside)", 51, MAX_WEIGHT, 1),)], {"": 50}, 7, SPACE)
