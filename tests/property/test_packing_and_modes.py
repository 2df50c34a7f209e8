"""Packing against brute force, and the laws of what is not asked for by levels: settling, windows, purges."""

import random
from fractions import Fraction
from itertools import count, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.levels import FULL, SMALL_LEVELS
from shared.packing import Badness, cover, cover_in_order
from shared.planner import SETTLED_TAG, FileGroup, Mode, plan, plan_full, plan_settling, state_of
from shared.policy import KIB, MaxMode, Order, Policy
from shared.table import CellKey, DataFile
from shared.worth import Reason, judge

CELL = CellKey("{}")
POLICIES = st.builds(
    Policy,
    target_bytes=st.sampled_from([64 * KIB, 100_003]),
    fan_in=st.integers(2, 10),
    tolerance=st.fractions(0, Fraction(1, 2), max_denominator=20),
    min_input_files=st.integers(2, 10),
    order=st.sampled_from(Order),
    max_mode=st.sampled_from(MaxMode),
)
SIZES = st.one_of(st.integers(1, 150_000), st.integers(1, 300), st.integers(40_000, 80_000))


def files_of(sizes: list[int], **more) -> list[DataFile]:
    return [DataFile(f"f{n}", size, CELL, modified_ms=n, **more) for n, size in enumerate(sizes)]


def landed(files: list[DataFile], groups: tuple[FileGroup, ...], names: count, at_ms: int) -> list[DataFile]:
    """Carry groups out; an output carries its group's tags, as the actor writes them."""
    gone = {file.path for group in groups for file in group.files}
    new = [DataFile(f"r{next(names)}", g.bytes, CELL, modified_ms=at_ms, tags=g.tags) for g in groups]
    return [file for file in files if file.path not in gone] + new


@given(POLICIES, st.lists(st.tuples(st.lists(SIZES, max_size=6), st.booleans()), max_size=40))
def test_with_settling_no_byte_is_rewritten_more_than_once_per_level_and_once_again(
    policy: Policy, spells: list[tuple[list[int], bool]]
) -> None:
    """The theorem with settling: after every commit a plan, and after as many as the adversary likes a quiet spell."""
    names = count()
    files: list[DataFile] = []
    rewrites: dict[str, dict[str, int]] = {}
    for at_ms, (added, goes_quiet) in enumerate(spells):
        for size in added:
            name = f"i{next(names)}"
            files.append(DataFile(name, size, CELL, modified_ms=at_ms))
            rewrites[name] = {name: 0}
        plans = (plan, plan_settling) if goes_quiet else (plan,)
        for make in plans:
            for group in make(CELL, files, policy).groups:
                merged = {o: times + 1 for file in group.files for o, times in rewrites.pop(file.path).items()}
                files = landed(files, (group,), names, at_ms)
                rewrites[files[-1].path] = merged
                settled = 1 if SETTLED_TAG in files[-1].tags else 0
                assert max(merged.values()) <= policy.ladder.level(group.bytes) + settled <= SMALL_LEVELS + 1


@given(POLICIES, st.lists(SIZES, max_size=40))
def test_settling_twice_finds_nothing_the_second_time(policy: Policy, sizes: list[int]) -> None:
    files = files_of(sizes)
    once = landed(files, plan_settling(CELL, files, policy).groups, count(), 0)
    assert not plan_settling(CELL, once, policy).groups


@given(POLICIES, st.lists(SIZES, max_size=40), st.integers(1, 60))
def test_windows_are_never_mixed_and_a_pruned_cell_has_no_group(policy: Policy, sizes: list[int], length: int) -> None:
    windowed = Policy.decode(policy.encode().replace('"time_window_s":null', f'"time_window_s":{length}'))
    files = [DataFile(f"f{n}", size, CELL, modified_ms=n * 5_000) for n, size in enumerate(sizes)]
    made = plan(CELL, files, windowed)
    for group in made.groups:
        assert len({file.modified_ms // (length * 1000) for file in group.files}) == 1
    if not judge(state_of(files, windowed.ladder), windowed).is_work:
        assert not made.groups
    # The outputs still know their window, although they were written now.
    again = landed(files, made.groups, count(), at_ms=10**12)
    assert not plan(CELL, again, windowed).groups


@given(POLICIES, st.lists(SIZES, max_size=30), st.fractions(Fraction(1, 5), 1, max_denominator=9))
def test_the_promotion_rule_holds_for_the_predicted_output(policy: Policy, sizes: list[int], shrink: Fraction) -> None:
    learned = Policy.decode(policy.encode().replace('"shrink":"1"', f'"shrink":"{shrink}"'))
    files, rungs = files_of(sizes), learned.ladder
    made = plan(CELL, files, learned)
    assert bool(made.groups) == judge(state_of(files, rungs), learned).is_work
    for group in made.groups:
        assert rungs.level(-(-group.bytes * shrink.numerator // shrink.denominator)) > max(
            rungs.level(file.size_bytes) for file in group.files
        )


@given(POLICIES, st.lists(SIZES, max_size=40))
def test_a_cap_at_minor_leaves_the_top_level_alone(policy: Policy, sizes: list[int]) -> None:
    capped = Policy.decode(policy.encode().replace('"major"', '"minor"'))
    assert all(group.mode is Mode.MINOR for group in plan(CELL, files_of(sizes), capped).groups)


@given(POLICIES, st.lists(SIZES, max_size=40), st.integers(64 * KIB, 400_000))
def test_a_job_ends_at_the_group_that_would_exceed_its_bytes(policy: Policy, sizes: list[int], bound: int) -> None:
    default = policy.max_bytes_per_job
    small = Policy.decode(policy.encode().replace(f'"max_bytes_per_job":{default}', f'"max_bytes_per_job":{bound}'))
    whole, cut = plan(CELL, files_of(sizes), policy), plan(CELL, files_of(sizes), small)
    assert cut.groups == whole.groups[: len(cut.groups)]
    assert cut.is_cut == (len(cut.groups) < len(whole.groups))
    assert bool(cut.groups) == bool(whole.groups)
    assert cut.bytes <= bound or len(cut.groups) == 1


@given(POLICIES, st.lists(st.tuples(SIZES, st.integers(0, 10)), max_size=20))
def test_a_file_with_many_deleted_rows_is_purged_alone_or_in_a_group_and_others_are_not(
    policy: Policy, sizes: list[tuple[int, int]]
) -> None:
    files = [
        DataFile(f"f{n}", size, CELL, "dv" if deleted else None, rows=50, deleted_rows=deleted)
        for n, (size, deleted) in enumerate(sizes)
    ]
    made = plan(CELL, files, policy)
    taken = [file for group in made.groups for file in group.files]
    assert len(taken) == len({file.path for file in taken})
    assert {file.path for file in files if file.deleted_rows >= 5} <= {file.path for file in taken}
    for group in made.groups:
        if group.mode is Mode.PURGE:
            assert [file.deleted_rows >= 5 for file in group.files] == [True]
        else:
            assert len(group.files) > 1


@given(POLICIES, st.lists(SIZES, max_size=40))
def test_a_full_rewrite_leaves_only_full_files_and_at_most_one_small_one(policy: Policy, sizes: list[int]) -> None:
    files = files_of(sizes)
    made = plan_full(CELL, files, policy)
    after = landed(files, made.groups, count(), 0)
    assert sum(policy.ladder.level(file.size_bytes) < FULL for file in after) <= 1
    assert all(file.size_bytes < policy.ladder.full_bytes for group in made.groups for file in group.files)


@given(POLICIES, st.lists(SIZES, max_size=9))
def test_no_promotion_means_that_no_group_at_all_is_permitted(policy: Policy, sizes: list[int]) -> None:
    """Not only no prefix: of all the ways to pick small files, none obeys the promotion rule and is worth a job."""
    rungs = policy.ladder
    state = state_of(files_of(sizes), rungs)
    if policy.max_mode is MaxMode.MINOR or judge(state, policy).reason is not Reason.NO_PROMOTION:
        return
    small = [size for size in sizes if rungs.level(size) < FULL]
    for mask in range(1, 1 << len(small)):
        group = [size for index, size in enumerate(small) if mask >> index & 1]
        assert len(group) < 2 or not rungs.may_rewrite(
            largest_bytes=max(group), total_bytes=sum(group), inputs=len(group), min_inputs=policy.min_input_files
        )


def _best_break(sizes: list[int], target: int, limit: int) -> Badness:
    """Try every way to break a row: each file alone, or a run with what follows."""
    if not sizes:
        return 0, 0
    kept, over = _best_break(sizes[1:], target, limit)
    ways = [(kept + (target - sizes[0]) ** 2, over)]
    for stop in range(1, len(sizes) + 1):
        total = sum(sizes[:stop])
        if target <= total < limit:
            kept, over = _best_break(sizes[stop:], target, limit)
            ways.append((kept, over + (total - target) ** 2))
    return min(ways)


@given(st.lists(st.integers(1, 99), max_size=12))
def test_knuth_plass_reaches_the_optimal_badness_exactly(sizes: list[int]) -> None:
    runs, badness = cover_in_order(sizes, 100, 175)
    assert badness == _best_break(sizes, 100, 175)
    assert all(100 <= sum(sizes[index] for index in run) < 175 for run in runs)
    assert all(one.stop <= other.start for one, other in pairwise(runs))


def _fewest_replaced(sizes: list[int], removed: int, target: int, limit: int) -> int:
    """Return the fewest files whose permitted rewriting removes at least `removed` of shortfall, over all groupings."""
    masks = 1 << len(sizes)
    sums, shortfall = [0] * masks, [0] * masks
    for mask in range(1, masks):
        low = mask & -mask
        size = sizes[low.bit_length() - 1]
        sums[mask] = sums[mask ^ low] + size
        shortfall[mask] = shortfall[mask ^ low] + (target - size) ** 2
    is_grouped = [True] + [False] * (masks - 1)
    for mask in range(1, masks):
        low = mask & -mask
        part = mask
        while part and not is_grouped[mask]:
            is_grouped[mask] = bool(part & low) and target <= sums[part] < limit and is_grouped[mask ^ part]
            part = (part - 1) & mask
    return min(mask.bit_count() for mask in range(masks) if is_grouped[mask] and shortfall[mask] >= removed)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_covering_never_breaks_the_rule(seed: int) -> None:
    dice = random.Random(seed)
    sizes = sorted(dice.randint(1, 74) for _ in range(dice.randint(2, 12)))
    for taken in cover(sizes, 100)[0]:
        assert sum(sizes[index] for index in taken) >= 100


def test_covering_replaces_at_most_a_twentieth_more_files_than_the_optimum_on_average() -> None:
    """Against brute force over all permitted groupings that remove as much entropy as ours."""
    dice = random.Random(7)
    replaced = fewest = 0
    for sample in range(150):
        sizes = sorted(dice.randint(3, 74) for _ in range(dice.randint(4, 12 if sample % 30 == 0 else 9)))
        inputs = [index for taken in cover(sizes, 100)[0] for index in taken]
        replaced += len(inputs)
        fewest += _fewest_replaced(sizes, sum((100 - sizes[index]) ** 2 for index in inputs), 100, 175)
    print(f"files replaced: {replaced / fewest:.4f} x the fewest")
    assert replaced <= 1.05 * fewest
