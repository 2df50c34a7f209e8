"""The promotion rule with measured sizes: outputs shrink as they like, the factor is learned, and misses are counted.

No byte is rewritten more often than there are levels, plus once for each level that a prediction of its own missed.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from decider.decide.calibration import UNCALIBRATED, Calibration
from shared.layout.partition_stats import stats_of_files
from shared.layout.planner import plan
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import SMALL_LEVELS
from shared.policy.policy import KIB, MIB, Policy
from shared.table import DataFile
from tests.support.decisions import decide_on_state

POLICY = Policy(target_bytes=8 * MIB, fan_in=4, min_input_files=2, tolerance=Fraction(0))
SHARES = st.fractions(Fraction(1, 8), Fraction(9, 8))
STEPS = st.lists(
    st.tuples(st.lists(st.integers(1, 9 * MIB), min_size=1, max_size=8), SHARES, SHARES),
    min_size=1,
    max_size=30,
)


@dataclass(frozen=True)
class Story:
    """Of the oldest bytes in a file: how often they were rewritten, and how many levels predictions missed then."""

    rewrites: int = 0
    missed: int = 0


@given(STEPS)
def test_no_byte_is_rewritten_more_often_than_levels_and_counted_misses_allow(
    steps: list[tuple[list[int], Fraction, Fraction]],
) -> None:
    names = count()
    live: dict[str, DataFile] = {}
    stories: dict[str, set[Story]] = {}
    learned = UNCALIBRATED

    def take(size: int, reported: set[Story]) -> None:
        path = f"f{next(names)}"
        live[path], stories[path] = DataFile(path, size, WHOLE_TABLE), reported

    for sizes, below, filled in steps:
        for size in sizes:
            take(size, {Story()})
        policy = learned.applied_to(POLICY)
        size_levels = policy.size_levels
        # Both sides decide with the factor: the decider from the state, the actor from the files.
        verdict = decide_on_state(WHOLE_TABLE, stats_of_files(live.values(), size_levels), policy, 1)
        made = plan(WHOLE_TABLE, list(live.values()), policy)
        assert (verdict.prediction is not None) == bool(made.groups)
        for group in made.groups:
            is_filled = group.bytes >= size_levels.full_bytes
            output = max(1, int(group.bytes * (filled if is_filled else below)))
            short = size_levels.levels_below_target(
                largest_bytes=max(file.size_bytes for file in group.files), output_bytes=output
            )
            reported = {story for file in group.files for story in stories.pop(live.pop(file.path).path)}
            take(output, {Story(story.rewrites + 1, story.missed + short) for story in reported})
            learned = Calibration(
                runs=learned.runs + 1,
                merged_bytes=learned.merged_bytes + group.bytes * (not is_filled),
                merged_into_bytes=learned.merged_into_bytes + output * (not is_filled),
                filled_bytes=learned.filled_bytes + group.bytes * is_filled,
                filled_into_bytes=learned.filled_into_bytes + output * is_filled,
            )
        for path, reported in stories.items():
            level = size_levels.level(live[path].size_bytes)
            assert all(story.rewrites <= level + story.missed <= SMALL_LEVELS + story.missed for story in reported)


LEARNED = st.fractions(Fraction(1, 4), Fraction(1))


@given(LEARNED, LEARNED, st.lists(st.integers(1 * KIB, 5 * MIB), min_size=8, max_size=60))
def test_once_the_factors_are_learned_outputs_that_shrink_by_them_miss_no_level(
    below: Fraction, filled: Fraction, sizes: list[int]
) -> None:
    sums = 10**9
    into, filled_into = int(sums * below), int(sums * filled)
    policy = Calibration(10**6, 0, 0, 0, 0, sums, into, sums, filled_into).applied_to(POLICY)
    files = [DataFile(f"f{number}", size, WHOLE_TABLE) for number, size in enumerate(sizes)]
    for group in plan(WHOLE_TABLE, files, policy).groups:
        largest = max(file.size_bytes for file in group.files)
        # The factor is rounded down, but a little belief in 1 stays with it for ever.
        is_filled = group.bytes >= policy.size_levels.full_bytes
        share, learned = (filled, policy.learned.full_shrink) if is_filled else (below, policy.learned.shrink)
        real = max(share, learned)
        assert learned <= share + Fraction(1, 10**5)
        output = -(-group.bytes * real.numerator // real.denominator)
        assert policy.size_levels.levels_below_target(largest_bytes=largest, output_bytes=output) == 0
