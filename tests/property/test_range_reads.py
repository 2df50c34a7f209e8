"""What-if of a sort key: files that a range reads are those that a look at each file's bounds finds."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from hypothesis import event, given, settings
from hypothesis import strategies as st

from decider.whatif.range_reads import RANGE_SHARES, EvenRows, FileRanges, KeyedFiles, KeyReads, RangeReads, key_reads
from shared.layout.key_depth import KeyRange
from shared.layout.partition_stats import stats_of_files
from shared.layout.sort_planner import find_overlap
from shared.policy import ClusteringOrder, Policy
from shared.table import DataFile, PartitionColumn, PartitionKey

COLUMN = PartitionColumn("k", "k", "long")
NEAR = st.tuples(st.integers(-50, 300), st.integers(0, 40)).map(lambda drawn: (drawn[0], sum(drawn)))
WIDE = st.tuples(st.integers(-(2**255), 2**255), st.integers(0, 2**255)).map(lambda drawn: (drawn[0], sum(drawn)))
SPANS = st.one_of(NEAR, WIDE, st.none())
SIZES = st.sampled_from([1, 20, 80, 110])
FILES = st.lists(st.tuples(SPANS, SIZES, st.sampled_from(["a", "b"])), max_size=40)
POLICY = Policy(target_bytes=100, tolerance=Fraction(0), min_input_files=4, max_depth=2)


def files_of(drawn: list[tuple[KeyRange | None, int, str]]) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(f"f{at}", size, PartitionKey(partition), key_range=span)
        for at, (span, size, partition) in enumerate(drawn)
    )


def may_have_rows(file: DataFile, wanted: KeyRange) -> bool:
    """What a reader does: a file is left out only if its bounds say that it has no such row."""
    return file.key_range is None or not (file.key_range[1] < wanted[0] or file.key_range[0] > wanted[1])


@given(drawn=FILES, wanted=st.lists(st.one_of(NEAR, WIDE), min_size=1, max_size=10))
def test_the_files_that_a_range_reads_are_those_of_a_look_at_each(
    drawn: list[tuple[KeyRange | None, int, str]], wanted: list[KeyRange]
) -> None:
    files = files_of(drawn)
    ranges = FileRanges(files)
    counts = [sum(may_have_rows(file, one) for file in files) for one in wanted]
    assert [ranges.files_read(one) for one in wanted] == counts
    assert ranges.mean_files_read(wanted) == sum(counts) / len(counts)


@settings(max_examples=30)
@given(drawn=FILES)
def test_the_figures_of_a_key_are_a_count_over_the_bounds_of_the_live_files(
    drawn: list[tuple[KeyRange | None, int, str]],
) -> None:
    files = files_of(drawn)
    found = key_reads(KeyedFiles(COLUMN, files), POLICY)
    known = [file for file in files if file.key_range is not None]
    event(f"has ranges: {bool(found.ranges)}")
    assert (found.column, found.files_now, found.files_without_range) == ("k", len(files), len(files) - len(known))
    assert [one.share for one in found.ranges] == (list(RANGE_SHARES) if known else [])
    for one in found.ranges:
        wanted = EvenRows(files).ranges(one.share)
        assert one.now == sum(may_have_rows(file, each) for each in wanted for file in files) / len(wanted)
        # A range of rows that are there reads the file that has them, whatever was done to the files.
        assert all(1 <= read <= count for read, count in _read(one, found))


def _read(one: RangeReads, found: KeyReads) -> list[tuple[float, int]]:
    assert one.sorted is not None
    assert found.files_sorted is not None
    return [(one.now, found.files_now), (one.merged, found.files_merged), (one.sorted, found.files_sorted)]


@settings(max_examples=30)
@given(spans=st.lists(st.one_of(NEAR, WIDE), min_size=1, max_size=20), parts=st.integers(1, 8), data=st.data())
def test_ranges_of_a_sort_are_disjoint_and_cover_each_key(spans: list[KeyRange], parts: int, data) -> None:
    rows = EvenRows(files_of([(span, 10, "a") for span in spans]))
    made = rows.split(parts)
    assert 1 <= len(made) <= parts
    assert all(low <= high for low, high in made)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(made))
    assert (made[0][0], made[-1][1]) == (min(low for low, _ in spans), max(high for _, high in spans))
    low, high = rows.ranges(data.draw(st.sampled_from(RANGE_SHARES)))[data.draw(st.integers(0, 99))]
    assert made[0][0] <= low <= high <= made[-1][1]


@settings(max_examples=30)
@given(seed=st.lists(NEAR, min_size=1, max_size=60), order=st.sampled_from(["time", "zorder", "none"]))
def test_whatever_order_the_table_has_the_key_is_sorted_until_the_depth_is_within_the_bound(
    seed: list[KeyRange], order: str
) -> None:
    policy = {
        "time": replace(POLICY, clustering_order=ClusteringOrder.TIME),
        "zorder": replace(POLICY, zorder_by="x, y", orders_rows=False),
        "none": replace(POLICY, enabled=False),
    }[order]
    files = files_of([(span, 110, "a") for span in seed])
    found = key_reads(KeyedFiles(COLUMN, files), policy)
    assert found == key_reads(KeyedFiles(COLUMN, files), POLICY)
    overlap = find_overlap(stats_of_files(files, POLICY.size_levels), POLICY)
    event(f"is too deep: {overlap is not None}")
    assert found.bytes_sorted is not None
    assert (found.bytes_sorted > 0) == (overlap is not None)
    assert found.bytes_sorted <= 6 * sum(file.size_bytes for file in files)
