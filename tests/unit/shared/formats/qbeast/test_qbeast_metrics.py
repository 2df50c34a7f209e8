"""Figures of an index: on a tree small enough to count by hand."""

import pytest

from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.metrics import measure
from shared.formats.qbeast.revisions import IndexedColumn, Revision
from shared.formats.qbeast.weights import cube_weights, offset_rows, weight_of_fraction

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
