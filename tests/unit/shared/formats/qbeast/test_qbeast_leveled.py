"""The rules of leveled compaction, each on an index that shows it alone."""

import pytest

from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import MAX_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.groups import eligible_groups, file_level
from shared.formats.qbeast.leveled import IndexBudget, select_leveled

SPACE = CubeSpace(2)
NO_LIMIT = IndexBudget(10**9)


def file(path: str, *blocks: tuple[str, int], size: int = 100) -> IndexFile:
    return IndexFile(path, size, FileClass.INDEXED, 1, tuple(Block(cube, 0, MAX_WEIGHT, rows) for cube, rows in blocks))


@pytest.mark.parametrize(
    ("rows", "level"), [(1, 0), (9, 0), (10, 1), (99, 1), (100, 2), (10**15 - 1, 14), (10**15, 15)]
)
def test_a_files_level_is_the_power_of_ten_of_its_largest_block(rows: int, level: int) -> None:
    assert file_level(file("f", ("", 1), ("w", rows))) == level


def test_a_file_without_rows_has_no_level() -> None:
    assert file_level(file("f")) is None
    assert file_level(file("f", ("w", 0))) is None


def test_ten_times_the_level_is_enough_and_one_row_less_is_not() -> None:
    assert select_leveled([file("a", ("", 5)), file("b", ("", 5))], SPACE, NO_LIMIT).paths == ("a", "b")
    assert select_leveled([file("a", ("", 5)), file("b", ("", 4))], SPACE, NO_LIMIT).paths == ()


def test_a_small_block_of_a_large_file_is_of_the_files_level() -> None:
    files = [file("large", ("", 50), ("w", 5)), file("small", ("w", 6))]
    assert eligible_groups(files, SPACE) == []


def test_two_blocks_of_one_cube_in_one_file_are_merged() -> None:
    found = select_leveled([file("a", ("w", 5), ("w", 6))], SPACE, NO_LIMIT)
    assert (found.paths, found.rows) == (("a",), 11)


def test_low_levels_come_first_then_shallow_cubes_then_few_blocks() -> None:
    files = [
        file("root1", ("", 90)),
        file("root2", ("", 90)),
        *(file(f"many{n}", ("A", 4)) for n in range(3)),
        file("few1", ("w", 9)),
        file("few2", ("w", 9)),
        file("deep1", ("AA", 9)),
        file("deep2", ("AA", 9)),
    ]
    assert [(g.level, g.cube) for g in eligible_groups(files, SPACE)] == [(0, "w"), (0, "A"), (0, "AA"), (1, "")]
    assert select_leveled(files, SPACE, IndexBudget(0)).paths == ("few1", "few2")
    found = select_leveled(files, SPACE, IndexBudget(500))
    assert (found.cubes, found.bytes) == (("w", "A"), 500), "the next level waits, whatever the budget"
    assert select_leveled(files, SPACE, NO_LIMIT).cubes == ("w", "A", "AA")


def test_the_first_group_that_does_not_fit_ends_the_selection() -> None:
    files = [
        *(file(f"a{n}", ("", 9), size=10) for n in range(2)),
        *(file(f"b{n}", ("A", 9), size=500) for n in range(2)),
        *(file(f"c{n}", ("w", 9), size=10) for n in range(2)),
    ]
    assert select_leveled(files, SPACE, IndexBudget(100)).cubes == ("",)


def test_files_that_are_chosen_already_cost_nothing() -> None:
    files = [file("a", ("", 9), ("w", 9)), file("b", ("", 9), ("w", 9))]
    assert select_leveled(files, SPACE, IndexBudget(200)).cubes == ("", "w")


def test_of_a_group_beyond_the_budget_the_files_with_most_of_its_rows_are_taken() -> None:
    files = [file("a", ("", 1)), file("b", ("", 6)), file("c", ("", 7)), file("d", ("", 2))]
    found = select_leveled(files, SPACE, IndexBudget(300))
    assert (found.paths, found.is_oversized) == (("c", "b", "d"), False)
    found = select_leveled(files, SPACE, IndexBudget(150))
    assert (found.paths, found.is_oversized) == (("c", "b"), True), "progress goes before the budget"


def test_a_group_beyond_the_hard_limit_is_blocked_and_the_next_one_is_taken() -> None:
    files = [
        *(file(f"a{n}", ("", 9), size=900) for n in range(2)),
        *(file(f"b{n}", ("w", 9), size=100) for n in range(4)),
    ]
    found = select_leveled(files, SPACE, IndexBudget(0, max_bytes=300))
    assert [group.cube for group in found.blocked] == [""]
    assert (found.cubes, found.bytes, found.is_oversized) == (("w",), 300, False)
    only = select_leveled(files[:2], SPACE, IndexBudget(10**6, max_bytes=300))
    assert (only.paths, only.level, len(only.blocked)) == ((), -1, 1)
    assert select_leveled(files[2:], SPACE, IndexBudget(10**6, max_bytes=400)).bytes == 400


def test_without_any_limit_all_groups_of_the_level_are_taken() -> None:
    assert IndexBudget(0).fitting is None
    assert IndexBudget(5, 3).fitting == 3
