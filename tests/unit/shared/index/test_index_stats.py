"""Index data of one side of a rewrite: how its figures are computed, written and read."""

import pytest

from shared.index.stats import IndexSideStats, index_stats

FILES = ((("", 9), ("A", 1)), (("A", 1_000),), ())


def test_the_figures_are_those_of_the_documents_event() -> None:
    found = index_stats(FILES)
    assert (found.rows, found.cubes, found.blocks) == (1_010, 2, 3)
    assert found.file_levels == (0, 3, -1)
    assert found.mean_block_rows == pytest.approx((10 / 2 + 1_000 + 0) / 3)
    assert index_stats(()) == IndexSideStats(0, 0, 0, 0.0, ())


def test_what_is_written_is_read() -> None:
    huge = index_stats(((("", 10**18),),))
    assert huge.encode() == [10**18, 1, 1, 1e18, "i"]
    for one in (index_stats(FILES), huge, index_stats(())):
        assert IndexSideStats.decode(one.encode()) == one


@pytest.mark.parametrize(
    "raw", [None, {}, [], [1, 1, 1, 1, "0"], [1, 1, 1, 1.0, 0], [1, 1, 1, 1.0, "0", 2], [1, 1, 1, 1.0, "A"]]
)
def test_anything_else_is_nothing(raw: object) -> None:
    assert IndexSideStats.decode(raw) is None
