"""The laws of levels across their changes: what a byte is rewritten at most, and how often levels change."""

import random
from collections import Counter
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from decider.whatif.simulator import replay_lakewright
from decider.whatif.trace import CommitTrace
from shared.layout.planner import plan
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import MIB, Policy
from shared.table import Commit, DataFile, PartitionKey
from tests.support.policies import policies

PARTITION = PartitionKey("{}")
sizes = st.one_of(st.integers(1, 2_000_000), st.integers(1, 300), st.integers(49_000, 66_000))


def test_no_byte_is_rewritten_more_than_once_per_level_of_each_set_of_levels_that_it_lived_under() -> None:
    seen: Counter[int] = Counter()

    @settings(max_examples=50)
    @given(policies(), st.lists(sizes, min_size=2, max_size=5), st.randoms(use_true_random=False))
    def law(policy: Policy, typical_sizes: list[int], dice: random.Random) -> None:
        names = count()
        files: list[DataFile] = []
        rewrites: dict[str, Counter[tuple[str, int]]] = {}  # of each byte that a file holds, by epoch
        for epoch, typical in enumerate(typical_sizes):
            fitted = policy.fitted_to(typical)
            levels = fitted.size_levels
            for _ in range(20):
                size = max(1, dice.choice(levels.floors[1:]) // dice.randint(1, 9))
                for _ in range(4):
                    name = f"i{next(names)}"
                    files.append(DataFile(name, size, PARTITION))
                    rewrites[name] = Counter({(name, epoch): 0})
                for group in plan(PARTITION, files, fitted).groups:
                    merged: Counter[tuple[str, int]] = Counter()
                    for file in group.files:
                        times = rewrites.pop(file.path)
                        merged.update(times)
                        merged.update({(byte, epoch): 1 for byte in {byte for byte, _ in times}})
                    name = f"r{next(names)}"
                    rewrites[name] = merged
                    files = [file for file in files if file not in group.files]
                    files.append(DataFile(name, group.bytes, PARTITION))
                    under_this = max(times for (_, one), times in merged.items() if one == epoch)
                    assert under_this <= levels.level(group.bytes) <= SMALL_LEVELS
                    assert max(merged.values()) <= SMALL_LEVELS
                    seen[len({one for _, one in merged if merged[_, one]})] += 1

    law()
    print(f"rewrites of files whose bytes were rewritten under so many typical_sizes: {dict(sorted(seen.items()))}")
    assert min(seen[1], seen[2]) >= 50


@settings(max_examples=10)
@given(st.integers(300_000, 3_000_000), st.floats(0, 0.2), st.integers(0, 1_000))
def test_a_table_whose_commits_change_size_tenfold_changes_its_levels_once_for_that(
    size_bytes: int, spread: float, seed: int
) -> None:
    dice = random.Random(seed)
    policy = Policy(target_bytes=256 * MIB)

    def commits(first: int, number: int, size_bytes: int) -> tuple[Commit, ...]:
        return tuple(
            Commit(n, 1 + n * 7_200_000, "WRITE", (DataFile(f"f{n}", _drawn(dice, size_bytes, spread), PARTITION),))
            for n in range(first, first + number)
        )

    before = CommitTrace((), commits(0, 120, size_bytes))
    after = CommitTrace((), (*before.commits, *commits(120, 240, 10 * size_bytes)))
    fits = replay_lakewright(before, policy).level_fits
    done = replay_lakewright(after, policy)
    assert done.level_fits <= fits + 1
    assert done.wa <= SMALL_LEVELS * (done.level_fits + 1)


def _drawn(dice: random.Random, size_bytes: int, spread: float) -> int:
    return max(1, int(size_bytes * dice.uniform(1 - spread, 1 + spread)))
