"""A record of any release is read as far as it can be, and one that was forged contradicts itself."""

import copy
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from decider.api.routes.decisions import UNREADABLE, decision_view
from decider.archive.ledger_rows import LEDGER_SCHEMA, kept, ledger_row
from decider.decide import ledger
from decider.decide.calibration import RATIO_BOUND, SHRINK_FLOOR, UNCALIBRATED, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.decision import Decision, DecisionKind, Trigger, TriggerSource, commit_trigger
from decider.decide.evaluate import evaluate
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from shared.errors import InvalidInput
from shared.jobs.payload import RewriteKind, RunMeasure
from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, file_stats, stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import build_size_levels
from shared.policy.policy import MIB, DmlPolicy, MaxMode, Policy
from shared.policy.traits import LearnedValues
from shared.table import Commit, CommitOrigin, PartitionColumn, PartitionKey, TableId, TableRef
from tests.support.decisions import (
    context_of,
    contradictions,
    decide_after_commit,
    decide_on_state,
    encoded,
    predict_again,
    recompute,
)

TABLE = TableRef(TableId("t"), "lake.t", "file:///lake/t")
POLICY = Policy(target_bytes=8 * MIB)
PARTITION = PartitionKey('{"dt":"a"}')
WORK = json.loads(
    encoded(decide_on_state(PARTITION, stats_of_sizes(POLICY.size_levels, [100_000] * 10), POLICY, 4), POLICY, 17)
)
FEW = json.loads(
    encoded(decide_on_state(PARTITION, stats_of_sizes(POLICY.size_levels, [MIB] * 2), POLICY, 4), POLICY, 17)
)

WEIRD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "\ud800", '{"dt":"\\ud800"}', "{}", "[]", "1/0", "1e999", "-1", "nan", "9" * 400]),
    st.text(max_size=9),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def changed(record: dict[str, Any], field: str, value: object) -> dict[str, Any]:
    """Return the record with another value; `policy.x` is a value of its policy, `state.3` a number of its state."""
    made = copy.deepcopy(record)
    name, _, inner = field.partition(".")
    if name == "policy" and inner:
        made["policy"] = json.dumps(json.loads(made["policy"]) | {inner: value})
    elif name == "state" and inner:
        numbers = made["state"].split(",")
        numbers[int(inner)] = str(value)
        made["state"] = ",".join(numbers)
    elif name == "predicted" and inner:
        made["predicted"][inner] = value
    else:
        made[name] = value
    return made


FIELDS = [
    *WORK,
    *("heat", "purgeable", "ask", "calibration", "new"),
    *(f"policy.{name}" for name in json.loads(WORK["policy"])),
    *(f"state.{place}" for place in range(18)),
    *(f"predicted.{name}" for name in WORK["predicted"]),
]


def shown(text: str) -> LedgerRecord | UnreadableRecord:
    """Read a record, archive it and show it as the API does."""
    row = ledger_row(TABLE, "1767276187000-3", text, "queued")
    kept_row = pa.Table.from_pylist([row], schema=LEDGER_SCHEMA).to_pylist()[0]
    assert (kept_row["record"], kept_row["entry"], kept_row["outcome"]) == (text, "1767276187000-3", "queued")
    made = ledger.read(text, "queued", 1_767_276_187_000)
    view = json.loads(decision_view(made, ()).model_dump_json())
    assert (kept_row["decision"] is None) == isinstance(made, UnreadableRecord) == (view["decision"] == UNREADABLE)
    assert (
        (kept_row["version"], kept_row["partition_key"])
        == (made.version, made.partition)
        == (view["version"], view["partition_key"])
    )
    return made


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy.full_file_threshold", "1/100"),
        ("policy.max_mode", "zorder"),
        ("policy.target_bytes", "8 MiB"),
        ("reason", "full_moon"),
        ("verdict", "perhaps"),
        ("ask", "everything"),
        ("calibration", {"moons": 3}),
        ("heat", "1/0"),
        ("predicted", {"files_replaced": 10}),
        ("state", "1,2,3"),
        ("at", ledger.MAX_AT_MS + 1),
        ("at", -1),
        ("predicted.bytes", 2**70),
    ],
)
def test_what_another_release_wrote_is_shown_by_its_version_and_partition_with_its_text(
    field: str, value: object
) -> None:
    text = json.dumps(changed(FEW if field == "policy.target_bytes" else WORK, field, value))
    made = shown(text)
    assert isinstance(made, UnreadableRecord)
    assert (made.version, made.partition, made.text, made.outcome) == (4, PARTITION, text, "queued")
    assert "cannot read" in made.message
    with pytest.raises(InvalidInput):
        ledger.decode(text)


@given(st.sampled_from(FIELDS), WEIRD, st.sampled_from([WORK, FEW]))
def test_whatever_a_field_holds_the_record_is_archived_and_shown(field: str, value: object, record: Any) -> None:
    if not field.startswith("predicted.") or "predicted" in record:
        shown(json.dumps(changed(record, field, value)))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "[" * 100_000, "9" * 5_000, '{"v": 1e999}'])
def test_text_that_is_no_record_is_archived_and_shown(text: str) -> None:
    assert isinstance(shown(text), UnreadableRecord)


def test_an_entry_without_a_record_keeps_all_that_is_there() -> None:
    assert kept({b"record": b"{}", b"out": b"queued"}) == ("{}", "queued")
    assert kept({b"line": b"x", b"out": b"queued"}) == ('{"line": "x", "out": "queued"}', "queued")
    assert kept({b"record": b"\xff"}) == ("\\xff", "")


@pytest.mark.parametrize("partition", ["{", "[1]", "7", '{"dt":1}', 7, None])
def test_a_record_whose_partition_is_none_is_shown_without_one(partition: object) -> None:
    made = shown(json.dumps(changed(WORK, "partition", partition)))
    assert isinstance(made, UnreadableRecord)
    assert (made.version, made.partition) == (4, None)


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
        source, purgeable = (TriggerSource.REQUEST, record.purgeable) if way == "request" else (source, 0)
        trigger = Trigger(record.version, source, record.rewrite_kind, purgeable, is_deletes_due=is_due)
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
