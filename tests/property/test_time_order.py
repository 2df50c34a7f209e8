"""Merging in the order of time: the best way to break a row, true neighbors, bounded write amplification."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from hypothesis import event, given, settings
from hypothesis import strategies as st

from shared.layout.file_order import Permits, break_row, in_order, promoted_runs, time_span_ms
from shared.layout.planner import FileGroup, plan, plan_full, plan_idle_compaction
from shared.policy.levels import SMALL_LEVELS, SizeLevels
from shared.policy.policy import ClusteringOrder, MaxMode, Policy
from shared.policy.row_order import INPUT_ORDER
from shared.table import DataFile, PartitionKey
from tests.support.examples import examples

PARTITION = PartitionKey("{}")
TIMED = Policy(
    target_bytes=1_000, fan_in=4, min_input_files=3, tolerance=Fraction(0), clustering_order=ClusteringOrder.TIME
)
SMALL = st.one_of(st.integers(1, 749), st.integers(1, 20), st.integers(200, 400))
POLICIES = st.builds(
    replace,
    st.just(TIMED),
    fan_in=st.integers(2, 8),
    min_input_files=st.integers(2, 6),
    max_mode=st.sampled_from(MaxMode),
    time_window_s=st.sampled_from([None, 3]),
)


def ways(files: int) -> Iterator[list[range]]:
    """Every way to break a row of files into runs of neighbors."""
    if not files:
        yield []
    for last in range(files):
        for before in ways(last):
            yield [*before, range(last, files)]


def worth(sizes: list[int], runs: list[range], levels: SizeLevels) -> tuple[int, int]:
    outputs = [sum(sizes[run.start : run.stop]) for run in runs]
    rewritten = sum(sum(sizes[run.start : run.stop]) for run in runs if len(run) > 1)
    return sum((levels.target_bytes - size) ** 2 for size in outputs), rewritten


def is_allowed(sizes: list[int], run: range, levels: SizeLevels, permits: Permits) -> bool:
    inside = sizes[run.start : run.stop]
    total, top = sum(inside), max(map(levels.level, inside))
    return len(run) == 1 or (total <= 2 * levels.cover_bytes and permits(top, total, len(run)))


@given(sizes=st.lists(SMALL, max_size=9), policy=POLICIES, is_free=st.booleans())
def test_no_way_to_break_a_row_is_better_than_the_one_found(sizes: list[int], policy: Policy, is_free: bool) -> None:
    levels = policy.size_levels

    def permits(level: int, total_bytes: int, inputs: int) -> bool:
        return is_free or levels.permits_rewrite(level, total_bytes, inputs, policy.min_input_files)

    found = break_row(sizes, levels, permits)
    event(f"runs: {len(found)}")
    taken = {index for run in found for index in run}
    whole = sorted([*found, *(range(at, at + 1) for at in range(len(sizes)) if at not in taken)], key=min)
    assert all(is_allowed(sizes, run, levels, permits) for run in whole)
    allowed = [way for way in ways(len(sizes)) if all(is_allowed(sizes, run, levels, permits) for run in way)]
    assert worth(sizes, whole, levels) == min(worth(sizes, way, levels) for way in allowed)


FILES = st.lists(st.tuples(st.one_of(SMALL, st.integers(750, 1_500)), st.integers(0, 20)), max_size=40)


def files_of(drawn: list[tuple[int, int]]) -> list[DataFile]:
    return [DataFile(f"f{at:02}", size, PARTITION, modified_ms=1_000 * ms) for at, (size, ms) in enumerate(drawn)]


def carried_out(files: list[DataFile], groups: tuple[FileGroup, ...], round_: int) -> list[DataFile]:
    gone = {file.path for group in groups for file in group.files}
    kept = [file for file in files if file.path not in gone]
    new = [DataFile(f"r{round_}-{n}", g.bytes, PARTITION, modified_ms=10**9, tags=g.tags) for n, g in enumerate(groups)]
    return kept + new


@given(drawn=FILES, policy=POLICIES, kind=st.sampled_from([plan, plan_full, plan_idle_compaction]))
def test_every_group_is_a_run_of_neighbors_among_all_files_and_its_output_takes_their_place(
    drawn: list[tuple[int, int]], policy: Policy, kind
) -> None:
    files = files_of(drawn)
    made = kind(PARTITION, files, policy)
    event(f"{kind.__name__}: {min(3, len(made.groups))}")
    row = in_order(files)
    for group in made.groups:
        start = row.index(group.files[0])
        assert tuple(row[start : start + len(group.files)]) == group.files
        assert group.order is INPUT_ORDER
    after = in_order(carried_out(files, made.groups, 0))
    origin = {group.files: f"r0-{n}" for n, group in enumerate(made.groups)}
    expected = [origin.get(files, files[0].path) for files in _as_written(row, made.groups)]
    # Files of one moment have no order of their own: an output may stand anywhere among those of its ends.
    assert sorted(file.path for file in after) == sorted(expected)
    spans = [time_span_ms(file) for file in after]
    assert all(left[1] <= right[0] for left, right in pairwise(spans)), spans


def _as_written(row: list[DataFile], groups: tuple[FileGroup, ...]) -> Iterator[tuple[DataFile, ...]]:
    by_file = {file.path: group.files for group in groups for file in group.files}
    yield from dict.fromkeys(by_file.get(file.path, (file,)) for file in row)


@given(drawn=FILES, policy=POLICIES, kind=st.sampled_from([plan, plan_full]))
def test_a_plan_on_its_own_output_has_no_work(drawn: list[tuple[int, int]], policy: Policy, kind) -> None:
    files = files_of(drawn)
    made = kind(PARTITION, files, policy)
    event(f"groups: {min(3, len(made.groups))}")
    assert kind(PARTITION, carried_out(files, made.groups, 0), policy).groups == ()


@given(drawn=FILES, policy=POLICIES)
def test_what_may_be_merged_in_order_is_never_more_than_the_counters_permit(
    drawn: list[tuple[int, int]], policy: Policy
) -> None:
    files = files_of(drawn)
    policy = replace(policy, time_window_s=None)
    if promoted_runs(files, policy):
        counts, sizes = [0] * SMALL_LEVELS, [0] * SMALL_LEVELS
        for file in files:
            level = policy.size_levels.level(file.size_bytes)
            if level < SMALL_LEVELS:
                counts[level] += 1
                sizes[level] += file.size_bytes
        best = policy.size_levels.highest_promotable(
            counts, sizes, policy.min_input_files, levels=policy.automatic_levels
        )
        assert best is not None


@settings(max_examples=examples(0.3))
@given(sizes=st.lists(st.integers(1, 60), min_size=20, max_size=150), policy=POLICIES)
def test_no_byte_is_rewritten_more_often_in_order_than_there_are_levels(sizes: list[int], policy: Policy) -> None:
    policy = replace(policy, time_window_s=None)
    files: list[DataFile] = []
    rewritten: Counter[str] = Counter()
    origins: dict[str, tuple[str, ...]] = {}
    for at, size in enumerate(sizes):
        new = DataFile(f"i{at}", size, PARTITION, modified_ms=at)
        origins[new.path] = (new.path,)
        files.append(new)
        made = plan(PARTITION, files, policy)
        for n, group in enumerate(made.groups):
            origins[f"r{at}-{n}"] = tuple(name for file in group.files for name in origins[file.path])
            rewritten.update(origins[f"r{at}-{n}"])
        files = carried_out(files, made.groups, at)
    event(f"most rewrites: {max(rewritten.values(), default=0)}")
    assert max(rewritten.values(), default=0) <= SMALL_LEVELS
    names = [name for file in in_order(files) for name in origins[file.path]]
    assert names == [f"i{at}" for at in range(len(sizes))], "all rows are in the order of time, and each once"
