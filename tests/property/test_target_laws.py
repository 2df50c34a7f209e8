"""Laws of targets that are chosen, whatever sizes, additions and reads are reported, and whenever."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from decider.state.ingested_bytes import DAY_MS
from decider.state.target_fit import GREATEST_TARGET, LEAST_TARGET, NO_TARGET, WEEK_MS, TargetBasis
from shared.policy.policy import GIB, Policy

HOUR_MS = 3_600_000
counts = st.integers(0, 2**60) | st.integers(0, 2**42)
bases = st.builds(TargetBasis, counts, counts, st.integers(1, 2**30))
AUTO = Policy(fits_target=True)


@given(
    st.lists(st.tuples(st.integers(-30 * DAY_MS, 30 * DAY_MS) | st.just(DAY_MS), bases), max_size=60),
    st.integers(2, 64),
)
def test_two_changes_are_never_closer_than_a_week_and_targets_stay_within_bounds(
    told: list[tuple[int, TargetBasis]], fan_in: int
) -> None:
    found, now_ms, changes = NO_TARGET, 1_000 * WEEK_MS, list[int]()
    for passed_ms, basis in told:
        now_ms += passed_ms
        before = found.target_bytes or AUTO.target_bytes
        found = found.refitted(replace(AUTO, fan_in=fan_in, target_bytes=before), basis, now_ms)
        after = found.target_bytes or before
        if after != before:
            changes.append(now_ms)
            assert max(before, after) >= 2 * min(before, after)
        assert LEAST_TARGET <= after <= GREATEST_TARGET
    assert all(later - earlier >= WEEK_MS for earlier, later in pairwise(changes))


@given(
    st.integers(GIB // 8, 2**44),
    st.integers(GIB // 1024, 2**42),
    st.integers(1_000, 1_000_000),
    st.lists(st.tuples(*[st.integers(91, 110)] * 3), min_size=1, max_size=20),
)
def test_small_fluctuations_change_nothing(
    size: int, added: int, reads: int, wobbles: list[tuple[int, int, int]]
) -> None:
    """Each of the three moves by a tenth: together by less than the square root of two, and never twice as far."""
    policy, now_ms = AUTO, 1_000 * WEEK_MS
    found = NO_TARGET
    for _ in range(6):
        found = found.refitted(policy, TargetBasis(size, added, reads), now_ms)
        policy = replace(policy, target_bytes=found.target_bytes or policy.target_bytes)
        now_ms += WEEK_MS
    settled = TargetBasis(size, added, reads).wanted_bytes(8)
    if not policy.target_bytes**2 <= 2 * settled**2 <= 4 * policy.target_bytes**2:
        return  # It has not settled: a larger target does not pay.
    for by_size, by_added, by_reads in wobbles:
        basis = TargetBasis(size * by_size // 100, added * by_added // 100, reads * by_reads // 100)
        again = found.refitted(policy, basis, now_ms)
        assert again.target_bytes == found.target_bytes
        found, now_ms = again, now_ms + WEEK_MS
