"""What entropy prunes is not worth having: no merge of small files, of all there are, removes more than is tolerated.

The oracle knows the definition alone: it tries every set of small files and every way to split it into outputs, and
never asks the code how much a merge removes or whether it pays.
"""

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from shared.layout.eligibility import Reason, evaluate_idle, evaluate_layout
from shared.layout.partition_stats import stats_of_files
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KIB, Policy
from shared.policy.traits import LearnedValues
from shared.table import DataFile

TARGET = 64 * KIB


def splits(sizes: list[int]) -> Iterator[list[int]]:
    """Yield the sizes of the files that can lie there after any merges: every partition of the list into sums."""
    if not sizes:
        yield []
        return
    first, rest = sizes[0], sizes[1:]
    for sums in splits(rest):
        yield [first, *sums]
        for index in range(len(sums)):
            yield [*sums[:index], sums[index] + first, *sums[index + 1 :]]


def shortfall(sizes: list[int]) -> int:
    return sum(max(0, TARGET - size) ** 2 for size in sizes)


def most_removed(small: list[int]) -> int:
    """Return the most squared shortfall that merging any of these files into any outputs can remove."""
    return shortfall(small) - min(map(shortfall, splits(small)))


def partitions(samples: int) -> Iterator[tuple[Policy, list[int], list[int]]]:
    """Yield policies with up to six small files, whose sums lie below, around and above the target, and full ones."""
    dice = random.Random(11)
    for _ in range(samples):
        policy = Policy(
            target_bytes=TARGET,
            tolerance=Fraction(dice.randint(0, 50), 100),
            fan_in=dice.randint(2, 10),
            min_input_files=dice.randint(2, 6),
            learned=LearnedValues(shrink=Fraction(dice.randint(1, 4), 4)),
        )
        largest = policy.size_levels.full_bytes - 1
        mean = dice.choice([largest, largest, TARGET // 3, TARGET // 20])
        small = [dice.randint(1, min(largest, 2 * mean)) for _ in range(dice.randint(2, 6))]
        full = [dice.randint(largest + 1, 2 * TARGET) for _ in range(dice.choice([0, 0, 1, 3, 40]))]
        yield policy, small, full


def test_no_merge_of_a_partition_that_entropy_prunes_removes_more_than_is_tolerated() -> None:
    seen: Counter[str] = Counter()
    for policy, small, full in partitions(3_000):
        files = [DataFile(f"f{n}", size, WHOLE_TABLE) for n, size in enumerate([*small, *full])]
        state = stats_of_files(files, policy.size_levels)
        bound = (policy.tolerance * TARGET) ** 2 * len(files)
        for name, worth in (("levels", evaluate_layout(state, policy)), ("settling", evaluate_idle(state, policy))):
            if worth.reason is not Reason.WITHIN_TOLERANCE:
                continue
            assert most_removed(small) < bound
            seen[name] += 1
            seen["of a target or more"] += sum(small) >= TARGET
    print(f"pruned by entropy: {dict(seen)}")
    assert min(seen.values()) >= 100


def test_the_excess_is_what_the_best_merge_removes_while_all_small_files_fit_into_one_output() -> None:
    """Then the bound is reached, so that nothing smaller would do; beyond a target it is all the shortfall there is."""
    seen: Counter[bool] = Counter()
    for policy, small, full in partitions(1_000):
        files = [DataFile(f"f{n}", size, WHOLE_TABLE) for n, size in enumerate([*small, *full])]
        excess = stats_of_files(files, policy.size_levels).excess(TARGET)
        fits = sum(small) < TARGET
        assert excess == (most_removed(small) if fits else shortfall(small))
        assert excess >= most_removed(small)
        seen[fits] += 1
    assert min(seen[True], seen[False]) >= 100
