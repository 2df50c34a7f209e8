"""Records of the ledger and marks of commits hold what follows from them, and are read back."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from decider.decide import ledger
from decider.decide.calibration import RATIO_BOUND, SHRINK_FLOOR, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.decision import Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from shared.jobs.payload import RewriteKind, RunMeasure
from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import build_size_levels
from shared.policy.policy import MIB, Policy
from shared.table import Commit, CommitOrigin
from tests.support.decisions import context_of, decide_after_commit, encoded, predict_again, recompute

POLICY = Policy(target_bytes=8 * MIB)
SUMS = st.builds(
    Calibration,
    *[st.integers(0, 64)],
    *[st.integers(0, 10**12)] * 2,
    *[st.integers(0, 10**6)] * 2,
    *[st.integers(0, 10**12)] * 2,
)


@given(st.lists(st.integers(1, 9 * MIB), max_size=40), st.integers(0, 10**6))
def test_a_record_can_be_recomputed_from_its_own_numbers(sizes: list[int], version: int) -> None:
    made = decide_after_commit(
        WHOLE_TABLE, stats_of_sizes(POLICY.size_levels, sizes), POLICY, Commit(version, 0, "WRITE")
    )
    record = ledger.decode(encoded(made, POLICY, 17), "queued" if made.prediction else "")
    assert recompute(record) is made.verdict
    assert (record.version, record.reason, record.state, record.at_ms) == (version, made.reason, made.state, 17)
    assert f"Version {version}" in record.message


@given(SUMS)
def test_whatever_was_measured_no_ratio_leaves_its_bounds(sums: Calibration) -> None:
    assert SHRINK_FLOOR <= sums.shrink <= 1
    assert Fraction(1, RATIO_BOUND) <= sums.bytes_ratio <= RATIO_BOUND
    assert Fraction(1, RATIO_BOUND) <= sums.removed_ratio <= RATIO_BOUND
    assert sums.applied_to(POLICY).learned.shrink == sums.shrink
    assert Calibration.of({str(name): getattr(sums, name) for name in RunMeasure}) == sums


@given(SUMS, st.lists(st.integers(1, 9 * MIB), max_size=40), st.sampled_from(list(RewriteKind)))
def test_verdict_and_prediction_of_any_record_can_be_recomputed(
    sums: Calibration, sizes: list[int], ask: RewriteKind
) -> None:
    policy, state = sums.applied_to(POLICY), stats_of_sizes(POLICY.size_levels, sizes)
    trigger = Trigger(1)
    if ask is not RewriteKind.LEVELS:
        trigger = Trigger(1, TriggerSource.TIMER, ask)
    raw = evaluate(context_of(policy), WHOLE_TABLE, state, trigger, COMPACTION)
    made = evaluate(context_of(policy, calibration=sums), WHOLE_TABLE, state, trigger, COMPACTION)
    record = ledger.decode(encoded(made, policy, 1))
    assert recompute(record) is made.verdict is raw.verdict
    if sums.runs:
        assert predict_again(record) == dict(record.predicted)


counts = st.none() | st.integers(0, 2**53)


size_levels = st.builds(
    build_size_levels,
    st.integers(65_536, 2**34),
    st.integers(2, 64),
    st.fractions(Fraction(1, 4), 1, max_denominator=100),
)


@given(
    st.builds(
        CommitMetadata,
        origin=st.builds(CommitOrigin, st.text(min_size=1), st.integers(0, 2**63)),
        others=st.lists(st.builds(CommitOrigin, st.text(min_size=1), st.integers(0, 2**63)), max_size=3).map(tuple),
        partition=st.none() | st.text(),
        round=counts,
        mode=st.none() | st.sampled_from(["minor", "full"]),
        started_ms=counts,
        size_levels=st.none() | size_levels,
        partition_files=counts,
        partition_small_files=counts,
    )
)
def test_a_mark_is_read_back_as_it_was_written(mark: CommitMetadata) -> None:
    assert commit_metadata.decode(mark.encode()) == mark
