"""A record proves itself: whatever is forged in it is noticed wherever its own numbers contradict it."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from decider.decide import ledger
from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.decision import Decision, DecisionKind, Trigger, TriggerSource, commit_trigger
from decider.decide.evaluate import evaluate
from decider.decide.ledger import LedgerRecord
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, file_stats
from shared.policy.policy import MIB, DmlPolicy, MaxMode, Policy
from shared.policy.traits import LearnedValues
from shared.table import Commit, CommitOrigin, PartitionColumn, PartitionKey
from tests.support.decisions import context_of, encoded
from tests.support.recomputing import contradictions, recompute

BELIEVED = (Reason.OWN_COMMIT, Reason.NO_DATA_CHANGE, Reason.REQUESTED)
"""Reasons that lie outside of the numbers: what the commit was, and that someone asked."""

MAPPED = (PartitionColumn("dt", "col-1", "date"),)
PLAIN = (PartitionColumn("dt", "dt", "date"),)
INPUTS = ("state", "policy", "partition", "columns", "purgeable", "ask", "calibration", "heat")
DERIVED = ("verdict", "reason", "predicted", "purgeable", "heat", "calibration")


GROUPS = st.lists(
    st.tuples(st.sampled_from([1_000, 100_000, MIB, 3 * MIB, 9 * MIB]), st.sampled_from([1, 3, 8]), st.booleans()),
    max_size=3,
)
"""Files of a partition, as size, count and whether they have deletion vectors; small ones and full ones."""


def counted(policy: Policy, groups: list[tuple[int, int, bool]]) -> PartitionStats:
    state = EMPTY_STATS
    for size, count, has_dv in groups:
        one = file_stats(policy.size_levels, size, has_dv=has_dv, deleted_rows=int(has_dv))
        for _ in range(count):
            state += one
    return state


POLICIES = st.builds(
    Policy,
    enabled=st.sampled_from([True, True, True, False]),
    target_bytes=st.just(8 * MIB),
    tolerance=st.sampled_from([Fraction(0), Fraction(15, 100), Fraction(1, 2)]),
    max_small_files=st.sampled_from([4, 1000]),
    max_mode=st.sampled_from(MaxMode),
    filter=st.sampled_from([None, None, "dt = 'a'", "dt >= 'b'", "country = 'de'"]),
    dml_policy=st.sampled_from(DmlPolicy),
    learned=st.sampled_from([LearnedValues(), LearnedValues(shrink=Fraction(1, 2))]),
)
CALIBRATIONS = st.sampled_from([UNCALIBRATED, Calibration(4, 400, 800, 400, 240, 400, 400)])
HEATS = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(9, 10)])


def decided(record: LedgerRecord, way: str) -> Decision:
    """Decide as deciders do on the way that leads to such a record: after a commit, a timer's ring or a request."""
    if record.rewrite_kind is not RewriteKind.LEVELS:
        is_due = record.reason is Reason.DELETE_COUNT_REACHED
        is_counted = is_due or record.reason is Reason.COMMIT_COUNT_REACHED
        source = TriggerSource.DATA_CHANGE if is_counted else TriggerSource.TIMER
        trigger = Trigger(record.version, source, record.rewrite_kind, is_deletes_due=is_due)
    elif way == "request":
        trigger = Trigger(record.version, TriggerSource.REQUEST, purgeable=record.purgeable)
    else:
        origin = CommitOrigin("j", 1) if way == Reason.OWN_COMMIT else None
        commit = Commit(record.version, 0, "WRITE", data_change=way == "commit", origin=origin)
        trigger = commit_trigger(commit, record.purgeable)
    context = context_of(
        record.policy, columns=record.columns, calibration=record.calibration, busy_ratio=record.busy_ratio
    )
    return evaluate(context, record.partition, record.state, trigger, COMPACTION)


@st.composite
def honest(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A record as a decider writes it, and the way that led to it."""
    way = draw(st.sampled_from(["commit", "commit", "commit", "request", Reason.OWN_COMMIT, Reason.NO_DATA_CHANGE]))
    policy, columns = draw(POLICIES), draw(st.sampled_from([PLAIN, MAPPED]))
    state = counted(policy, draw(GROUPS))
    inputs = LedgerRecord(
        at_ms=17,
        version=4,
        partition=PartitionKey(
            json.dumps({columns[0].physical: draw(st.sampled_from(["a", "b", "c"]))}, separators=(",", ":"))
        ),
        verdict=DecisionKind.SKIP,
        reason=draw(st.sampled_from([Reason.DISABLED, Reason.COMMIT_COUNT_REACHED, Reason.DELETE_COUNT_REACHED])),
        state=state,
        policy=policy,
        predicted={},
        purgeable=draw(st.integers(0, min(2, state.dv_files))),
        rewrite_kind=draw(st.sampled_from([RewriteKind.LEVELS, RewriteKind.LEVELS, *RewriteKind]))
        if way == "commit"
        else RewriteKind.LEVELS,
        calibration=draw(CALIBRATIONS),
        busy_ratio=draw(HEATS),
        columns=columns,
    )
    made = decided(inputs, way)
    assume(way != "request" or made.prediction is not None)
    if made.prediction is None:  # A number of commits leads to a record only where there is a job for it.
        made = decided(replace(inputs, reason=Reason.DISABLED), way)
    return way, json.loads(encoded(made, policy, 17))


@given(honest())
def test_a_record_that_a_decider_wrote_contradicts_itself_nowhere(written: tuple[str, dict[str, Any]]) -> None:
    record = ledger.decode(json.dumps(written[1]))
    event(record.reason)
    assert contradictions(record) == ()
    assert recompute(record) is record.verdict


@given(honest(), honest(), st.sampled_from(sorted({*INPUTS, *DERIVED})))
def test_a_field_of_another_record_is_noticed_unless_the_same_follows_from_it(
    written: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]], field: str
) -> None:
    way, raw = written
    forged = {name: value for name, value in raw.items() if name != field}
    if field in other[1]:
        forged[field] = other[1][field]
    assume(forged != raw)
    _expect_noticed(forged, way)


@given(honest(), st.sampled_from(Reason), st.sampled_from(DecisionKind), st.booleans())
def test_a_forged_verdict_is_noticed_with_any_reason(
    written: tuple[str, dict[str, Any]], reason: Reason, verdict: DecisionKind, is_bare: bool
) -> None:
    """Bare: what the decision predicted was taken away, too."""
    way, raw = written
    forged = raw | {"reason": str(reason), "verdict": str(verdict)}
    if is_bare:
        forged = {name: value for name, value in forged.items() if name not in ("predicted", "calibration")}
    assume(forged != raw)
    _expect_noticed(forged, way)


def _expect_noticed(forged: dict[str, Any], way: str) -> None:
    """Demand that the record is disputed if a decider that had its numbers would have written another one."""
    record = ledger.decode(json.dumps(forged))
    if record.reason in BELIEVED:
        way = "request" if record.reason is Reason.REQUESTED else record.reason
    elif way != "commit":
        way = "commit"
    made = decided(record, way)
    again = json.loads(encoded(made, record.policy, 17))
    is_true = all(again.get(name) == forged.get(name) for name in DERIVED)
    event("the same follows" if is_true else "noticed")
    assert recompute(record) is made.verdict
    if not is_true:
        assert contradictions(record)
