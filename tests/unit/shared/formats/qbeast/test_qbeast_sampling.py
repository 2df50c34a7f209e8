"""Which files leveled compaction and samples take for a rewrite, each rule on an index that shows it alone."""

import pytest

from shared.errors import InvalidInput
from shared.formats.qbeast.batches import batches
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.groups import eligible_groups, file_level
from shared.formats.qbeast.leveled import select_leveled
from shared.formats.qbeast.revisions import IndexedColumn, Revision
from shared.formats.qbeast.rollup import rollup
from shared.formats.qbeast.sampling import Worklist, rows_read, sample_of, sampling_batches, select_sampling
from shared.formats.qbeast.weights import weight_of_fraction


def revision(cube_size: int) -> Revision:
    return Revision(1, cube_size, (IndexedColumn("a", "linear"), IndexedColumn("b", "linear")))


def block(cube: str, low: float, high: float, rows: int = 100) -> Block:
    return Block(cube, weight_of_fraction(low), weight_of_fraction(high), rows)


def file(path: str, *blocks: Block, size: int = 1000) -> IndexFile:
    return IndexFile(path, size, FileClass.INDEXED, 1, blocks)


OFFSET = file("offset", block("", 0.1, 0.2))
LOW = file("low", block("", 0.1, 0.15))
MIXED = file("mixed", block("A", 0.1, 0.2), block("AA", 0.2, 0.3))


def test_the_two_kinds_of_files_are_those_of_the_documents() -> None:
    sample = sample_of([OFFSET, LOW], 0.15)
    assert [sample.is_partly_offset(one) for one in (OFFSET, LOW)] == [True, False]
    sample = sample_of([MIXED], 0.15)
    assert (sample.is_partly_offset(MIXED), sample.is_mixed(MIXED)) == (False, True)
    assert sample_of([MIXED], 0.05).is_mixed(MIXED) is False


def test_a_block_at_the_samples_weight_is_not_read() -> None:
    sample = sample_of([OFFSET], 0.1)
    assert not sample.takes(OFFSET.blocks[0])


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 1.5])
def test_a_sample_of_nothing_or_of_everything_is_refused(fraction: float) -> None:
    with pytest.raises(InvalidInput, match="sample"):
        sampling_batches([], revision(10), fraction, 1)


def test_a_file_with_offsets_is_taken() -> None:
    assert sampling_batches([OFFSET, LOW], revision(10**6), 0.15, 10**6) == [(OFFSET,)]


def test_a_mixed_file_is_taken_only_where_a_rewrite_separates_its_cubes() -> None:
    assert sampling_batches([MIXED], revision(50), 0.15, 10**6) == [(MIXED,)]
    assert sampling_batches([MIXED], revision(10**6), 0.15, 10**6) == [], "the rewrite would mix them again"


def test_a_batch_that_saves_too_little_is_left() -> None:
    few = file("few", block("A", 0.1, 0.2, 100), block("AA", 0.2, 0.3, 3))
    assert sampling_batches([few], revision(2), 0.15, 10**6) == []
    assert sampling_batches([few], revision(2), 0.15, 10**6, min_gain=0) == [(few,)]
    empty = file("empty", block("A", 0.1, 0.2, 0), block("AA", 0.2, 0.3, 0), size=0)
    assert sampling_batches([empty], revision(2), 0.15, 10**6) == []


def test_batches_hold_files_of_near_cubes_and_end_with_the_file_that_reaches_the_size() -> None:
    files = [file(f"{cube}{n}", block(cube, 0.1, 0.2), block(cube + "A", 0.2, 0.9)) for n in (1, 2) for cube in "wA"]
    found = sampling_batches(files, revision(10), 0.15, 1500)
    assert [[one.path for one in batch] for batch in found] == [["A1", "A2"], ["w1", "w2"]]


def test_a_batch_of_no_bytes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="batch"):
        list(batches([OFFSET], 0))


def test_what_a_run_writes_never_joins_its_list() -> None:
    worklist = Worklist()
    assert select_sampling([OFFSET, LOW], revision(10**6), 0.15, 10**6, worklist) == (OFFSET,)
    output = file("output", block("", 0.1, 0.2))
    assert select_sampling([LOW, output], revision(10**6), 0.15, 10**6, worklist) == ()
    assert select_sampling([LOW, output], revision(10**6), 0.15, 10**6, Worklist()) == (output,)


def test_a_new_cube_is_no_append_of_others() -> None:
    worklist, size = Worklist(), 10**6
    select_sampling([OFFSET, LOW], revision(size), 0.15, size, worklist)
    assert select_sampling([OFFSET, LOW, MIXED], revision(size), 0.15, size, worklist) == (OFFSET,)


def test_the_rows_that_a_sample_reads_are_those_of_all_files_that_it_opens() -> None:
    high = file("high", block("A", 0.5, 1.0, 7))
    assert rows_read([OFFSET, LOW, high], 0.15) == 200


def test_small_cubes_join_their_parent_up_to_the_root() -> None:
    rows = {"": 1, "A": 30, "AQ": 5, "AQw": 4, "wgg": 2}
    assert rollup(rows, CubeSpace(2), 10) == {"": "", "wgg": "", "A": "A", "AQ": "A", "AQw": "A"}
    assert rollup({}, CubeSpace(2), 10) == {}


def test_weights_of_samples_stay_within_the_range_of_weights() -> None:
    assert MIN_WEIGHT < weight_of_fraction(1e-9) < weight_of_fraction(1 - 1e-9) < MAX_WEIGHT


SPACE = CubeSpace(2)
NO_LIMIT = 10**9


def leveled_file(path: str, *blocks: tuple[str, int], size: int = 100) -> IndexFile:
    return IndexFile(path, size, FileClass.INDEXED, 1, tuple(Block(cube, 0, MAX_WEIGHT, rows) for cube, rows in blocks))


@pytest.mark.parametrize(
    ("rows", "level"), [(1, 0), (9, 0), (10, 1), (99, 1), (100, 2), (10**15 - 1, 14), (10**15, 15)]
)
def test_a_files_level_is_the_power_of_ten_of_its_largest_block(rows: int, level: int) -> None:
    assert file_level(leveled_file("f", ("", 1), ("w", rows))) == level


def test_a_file_without_rows_has_no_level() -> None:
    assert file_level(leveled_file("f")) is None
    assert file_level(leveled_file("f", ("w", 0))) is None


def test_ten_times_the_level_is_enough_and_one_row_less_is_not() -> None:
    assert select_leveled([leveled_file("a", ("", 5)), leveled_file("b", ("", 5))], SPACE, NO_LIMIT).paths == ("a", "b")
    assert select_leveled([leveled_file("a", ("", 5)), leveled_file("b", ("", 4))], SPACE, NO_LIMIT).paths == ()


def test_a_small_block_of_a_large_file_is_of_the_files_level() -> None:
    files = [leveled_file("large", ("", 50), ("w", 5)), leveled_file("small", ("w", 6))]
    assert eligible_groups(files, SPACE) == []


def test_two_blocks_of_one_cube_in_one_file_are_merged() -> None:
    found = select_leveled([leveled_file("a", ("w", 5), ("w", 6))], SPACE, NO_LIMIT)
    assert found.paths == ("a",)


def test_low_levels_come_first_then_shallow_cubes_then_few_blocks() -> None:
    files = [
        leveled_file("root1", ("", 90)),
        leveled_file("root2", ("", 90)),
        *(leveled_file(f"many{n}", ("A", 4)) for n in range(3)),
        leveled_file("few1", ("w", 9)),
        leveled_file("few2", ("w", 9)),
        leveled_file("deep1", ("AA", 9)),
        leveled_file("deep2", ("AA", 9)),
    ]
    assert [(g.level, g.cube) for g in eligible_groups(files, SPACE)] == [(0, "w"), (0, "A"), (0, "AA"), (1, "")]
    assert select_leveled(files, SPACE, 0).paths == ("few1", "few2")
    found = select_leveled(files, SPACE, 500)
    assert (found.cubes, len(found.files)) == (("w", "A"), 5), "the next level waits, whatever the budget"
    assert select_leveled(files, SPACE, NO_LIMIT).cubes == ("w", "A", "AA")


def test_the_first_group_that_does_not_fit_ends_the_selection() -> None:
    files = [
        *(leveled_file(f"a{n}", ("", 9), size=10) for n in range(2)),
        *(leveled_file(f"b{n}", ("A", 9), size=500) for n in range(2)),
        *(leveled_file(f"c{n}", ("w", 9), size=10) for n in range(2)),
    ]
    assert select_leveled(files, SPACE, 100).cubes == ("",)


def test_files_that_are_chosen_already_cost_nothing() -> None:
    files = [leveled_file("a", ("", 9), ("w", 9)), leveled_file("b", ("", 9), ("w", 9))]
    assert select_leveled(files, SPACE, 200).cubes == ("", "w")


def test_of_a_group_beyond_the_budget_the_files_with_most_of_its_rows_are_taken() -> None:
    files = [
        leveled_file("a", ("", 1)),
        leveled_file("b", ("", 6)),
        leveled_file("c", ("", 7)),
        leveled_file("d", ("", 2)),
    ]
    assert select_leveled(files, SPACE, 300).paths == ("c", "b", "d")
    assert select_leveled(files, SPACE, 150).paths == ("c", "b"), "progress goes before the budget"
