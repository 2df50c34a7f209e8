"""Verdicts come from numbers, and the ledger keeps enough of them to decide again."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.decide import ledger
from decider.decide.actions import ACTIONS
from decider.decide.calibration import Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.context import ConstantContention, DecisionContext
from decider.decide.decision import DecisionKind, Prediction, RefusedPart, TableSignals, Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from decider.decide.funnel import CommitCounter, funnel_counts, funnel_stages
from decider.decide.job_request import FIRST_STEP, job_request, priority, rested_step
from decider.decide.table_action import evaluate_table
from shared.errors import InvalidInput
from shared.jobs.payload import CHECKPOINT, COMPACT, SORT, VACUUM, JobPayload, RewriteKind
from shared.layout.eligibility import Reason, is_purgeable
from shared.layout.partition_stats import PartitionStats, stats_of_files, stats_of_sizes
from shared.layout.planner import plan, plan_full
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, JobOrder, Policy
from shared.queue.limits import MAX_PRIORITY
from shared.queue.model import Band
from shared.queue.settings import SETTINGS
from shared.run_counters import RunCounter
from shared.table import (
    Commit,
    CommitOrigin,
    DataFile,
    PartitionColumn,
    PartitionKey,
    TableId,
    TableMetadata,
    TableRef,
)
from tests.support.decisions import (
    context_of,
    contradictions,
    decide_after_commit,
    decide_on_state,
    decide_on_timer,
    encoded,
    recompute,
)
from tests.support.toy_table_action import WITH_TOY_TABLE

POLICY = Policy(target_bytes=8 * MIB)


def state(*sizes: int) -> PartitionStats:
    return stats_of_sizes(POLICY.size_levels, sizes)


def test_a_commit_worth_it_asks_for_a_rewrite_with_a_prediction() -> None:
    made = decide_after_commit(WHOLE_TABLE, state(*[100_000] * 10), POLICY, Commit(4, 0, "WRITE"))
    assert (made.verdict, made.reason, made.version) == (DecisionKind.ENQUEUE, Reason.ELIGIBLE, 4)
    assert made.prediction is not None
    assert (made.prediction.files_replaced, made.prediction.files_removed, made.prediction.bytes) == (10, 9, 1_000_000)


def test_own_commits_and_foreign_compactions_never_trigger() -> None:
    crowd = state(*[100_000] * 10)
    theirs = Commit(4, 0, "OPTIMIZE", data_change=False)
    assert decide_after_commit(WHOLE_TABLE, crowd, POLICY, theirs).reason is Reason.NO_DATA_CHANGE
    ours = Commit(4, 0, "OPTIMIZE", data_change=False, origin=CommitOrigin("j", 1))
    assert decide_after_commit(WHOLE_TABLE, crowd, POLICY, ours).reason is Reason.OWN_COMMIT


def test_our_mark_on_a_commit_that_changes_data_is_another_writers_and_is_not_believed() -> None:
    forged = Commit(4, 0, "WRITE", origin=CommitOrigin("j", 1))
    assert decide_after_commit(WHOLE_TABLE, state(*[100_000] * 10), POLICY, forged).verdict is DecisionKind.ENQUEUE


def test_a_disabled_table_is_left_alone() -> None:
    off = Policy(enabled=False)
    assert decide_on_state(WHOLE_TABLE, state(*[100_000] * 10), off, 1).reason is Reason.DISABLED


def test_more_benefit_per_byte_comes_first() -> None:
    many_tiny = decide_on_state(WHOLE_TABLE, state(*[1_000] * 200), POLICY, 1).prediction
    few_large = decide_on_state(WHOLE_TABLE, state(*[4 * MIB] * 4), POLICY, 1).prediction
    assert many_tiny is not None
    assert few_large is not None
    assert 0 <= priority(many_tiny, POLICY) < priority(few_large, POLICY) <= MAX_PRIORITY


@pytest.mark.parametrize(
    ("benefit", "mib", "step"),
    [
        (Fraction(1), 504, FIRST_STEP),
        (Fraction(2), 504, FIRST_STEP - 1),
        (Fraction(199, 100), 504, FIRST_STEP),
        (Fraction(99, 100), 504, FIRST_STEP + 1),
        (Fraction(1), 1_016, FIRST_STEP + 1),
        (Fraction(7), 0, FIRST_STEP - 8),
        (Fraction(0), 504, MAX_PRIORITY),
        (Fraction(1, 1 << 20), 504, MAX_PRIORITY),
        (Fraction(1 << 30), 504, 0),
    ],
)
def test_a_step_of_priority_is_a_factor_of_two_in_benefit_per_cost(benefit: Fraction, mib: int, step: int) -> None:
    """Cost is the bytes and 8 MiB of fixed work, whatever the table's target is."""
    made = Prediction(8, 7, mib * MIB, benefit, 7, mib * MIB)
    assert priority(made, POLICY) == priority(made, replace(POLICY, target_bytes=8 * POLICY.target_bytes)) == step


def test_what_is_read_more_or_weighs_more_comes_first() -> None:
    made = Prediction(8, 7, 504 * MIB, Fraction(1), 7, 504 * MIB)
    read = replace(POLICY, read_weight=Fraction(16))
    assert priority(made, read) == FIRST_STEP - 4
    assert priority(made, replace(read, weight=Fraction(1, 2))) == FIRST_STEP - 3


@given(st.integers(-(10**9), 10**15), st.integers(0, 10**15))
def test_in_the_balanced_order_a_longer_rest_goes_first(rested_ms: int, longer_ms: int) -> None:
    aging_ms = SETTINGS["aging_ms"].default
    assert 0 <= rested_step(rested_ms + longer_ms) <= rested_step(rested_ms) <= MAX_PRIORITY
    # The rank of a job that arrives now is the time of the last rewrite, to one interval.
    if 0 <= rested_ms < MAX_PRIORITY * aging_ms:
        rank_ms = rested_step(rested_ms) * aging_ms
        assert 0 <= rank_ms - (MAX_PRIORITY * aging_ms - rested_ms) < aging_ms


def test_a_job_waits_by_benefit_or_by_the_rest_of_its_table() -> None:
    made = decide_on_state(WHOLE_TABLE, state(*[1_000] * 200), POLICY, 1)
    assert made.prediction is not None
    known = DecisionContext(TableRef(TableId("t"), "t", "memory:///t"), TableMetadata("u"), POLICY)
    context = replace(known, at_ms=10**9, last_rewrite_ms=10**9 - 5 * 3_600_000)
    assert job_request(context, made).priority == priority(made.prediction, POLICY)
    balanced = replace(context, policy=replace(POLICY, job_order=JobOrder.BALANCED))
    assert job_request(balanced, made).priority == rested_step(5 * 3_600_000) == MAX_PRIORITY - 2


def test_a_sentence_says_the_numbers_that_the_reason_speaks_of() -> None:
    def message(*sizes: int) -> str:
        return ledger.decode(encoded(decide_on_state(WHOLE_TABLE, state(*sizes), POLICY, 1), POLICY, 1)).message

    assert "10 files can be replaced now. The prediction is 9 fewer files and 1 MiB to read." in message(
        *[MIB // 10] * 10
    )
    learned = ledger.decode(encoded(decide_on_state(WHOLE_TABLE, state(*[MIB // 10] * 10), POLICY, 1), POLICY, 1))
    assert "includes files that arrive before the job runs" not in learned.message
    assert "; it includes files that arrive before the job runs" in replace(learned, calibration=Calibration(1)).message
    assert "The small files hold 2 MiB; the target is 8 MiB." in message(MIB, MIB)
    assert "The small files hold 5 KiB; the target is 8 MiB." in message(2 << 10, 3 << 10)
    assert "% of the target; 15.0% are tolerated." in message(MIB, MIB, *[9 * MIB] * 200)


def test_a_record_has_the_literals_of_a_filter_that_moves() -> None:
    policy = replace(POLICY, filter="dt < current_date")
    columns = (PartitionColumn("dt", "dt", "string"),)
    for day, reason in (("2026-01-30", Reason.ELIGIBLE), ("2026-01-31", Reason.FILTERED)):
        context = context_of(policy, columns=columns, at_ms=1_769_860_800_000)
        partition = PartitionKey(f'{{"dt":"{day}"}}')
        made = evaluate(context, partition, state(*[100_000] * 10), Trigger(1), COMPACTION)
        record = ledger.decode(ledger.encode(made, context))
        assert (record.reason, record.literal_filter) == (reason, "dt < date '2026-01-31'")
        assert record.message.endswith("The filter dt < current_date was dt < date '2026-01-31'.")
        assert record.policy == policy, "as it is written"
        assert contradictions(record) == ()
        if made.prediction is not None:
            assert JobPayload.decode(job_request(context, made).payload).decided_ms == context.at_ms
    still = context_of(replace(policy, filter="dt < '2026-01-31'"), columns=columns, at_ms=1_769_860_800_000)
    made = evaluate(still, PartitionKey('{"dt":"2026-01-30"}'), state(*[100_000] * 10), Trigger(1), COMPACTION)
    assert ledger.decode(ledger.encode(made, still)).literal_filter == ""
    assert JobPayload.decode(job_request(still, made).payload).decided_ms == 0
    signals = TableSignals(3)
    of_table = evaluate_table(context, signals, Trigger(1, TriggerSource.TIMER), ACTIONS.table_actions[0])
    told = ledger.decode(ledger.encode(of_table, context)).message
    assert told.endswith("The filter dt < current_date was dt < date '2026-01-31'.")


def test_a_sentence_says_what_is_refused_and_that_the_partition_waits_for_it() -> None:
    plain = ledger.decode(encoded(decide_on_state(WHOLE_TABLE, state(*[100_000] * 10), POLICY, 1), POLICY, 1))
    refused = replace(plain, refused=RefusedPart(state(100_000, 100_000, 100_000)))
    assert "3 files are refused and do not count." in refused.message
    assert "gets no job by a commit" not in refused.message
    held = replace(plain, refused=RefusedPart(is_held=True))
    assert "The partition gets no job by a commit for a while" in held.message
    assert "do not count" not in held.message


def test_every_stage_at_which_a_decision_can_end_is_named_once_before_it_is_counted() -> None:
    stages = funnel_stages(WITH_TOY_TABLE)
    assert len(set(stages)) == len(stages)
    assert stages[: len(CommitCounter)] == tuple(CommitCounter), "in the order of the funnel"
    for action in (*WITH_TOY_TABLE, *WITH_TOY_TABLE.table_actions):
        assert set(stages) >= {reason.stage for reason in action.reasons} - {""}
    assert set(stages) >= {*RunCounter, "inventory_runs"}
    crowd = state(*[100_000] * 10)
    made = [decide_on_state(WHOLE_TABLE, crowd, policy, 1) for policy in (POLICY, POLICY, Policy(enabled=False))]
    ours = Commit(4, 0, "OPTIMIZE", data_change=False, origin=CommitOrigin("j", 1))
    made.append(decide_after_commit(WHOLE_TABLE, crowd, POLICY, ours))
    counted = funnel_counts(made)
    assert counted == {"enqueued": 2, "disabled": 1, "partitions_rewritten": 1}
    assert set(stages) >= counted.keys()


GIB = 1024 * MIB


def heavy(count: int, size: int = GIB) -> list[DataFile]:
    return [DataFile(f"h{n}", size, WHOLE_TABLE, dv_id="d", rows=100, deleted_rows=50) for n in range(count)]


def light(count: int, size: int) -> list[DataFile]:
    return [DataFile(f"l{size}-{n}", size, WHOLE_TABLE) for n in range(count)]


@pytest.mark.parametrize(
    "files",
    [
        [*heavy(10), *light(1001, 1024), *light(20, MIB)],
        [*heavy(10), *light(100, GIB), *light(9, MIB)],
        [*heavy(3), *heavy(0)],
        [*heavy(9, MIB), *light(5, 2 * MIB)],
        light(12, MIB),
    ],
    ids=["large ones beside small ones", "some of the large ones", "alone", "small ones that are merged", "none"],
)
@pytest.mark.parametrize("ask", [RewriteKind.LEVELS, RewriteKind.FULL])
def test_the_predicted_cost_counts_what_is_purged_beside_what_is_merged(
    files: list[DataFile], ask: RewriteKind
) -> None:
    policy = Policy(tolerance=Fraction(0))
    state_found = stats_of_files(files, policy.size_levels)
    if ask is RewriteKind.FULL:
        made, planned = decide_on_timer(ask, WHOLE_TABLE, state_found, policy, 1), plan_full(WHOLE_TABLE, files, policy)
    else:
        purgeable = sum(is_purgeable(file, policy) for file in files)
        made = decide_on_state(WHOLE_TABLE, state_found, policy, 1, purgeable)
        planned = plan(WHOLE_TABLE, files, policy)
    assert made.prediction is not None
    assert planned.groups
    assert planned.files_replaced <= made.prediction.files_replaced <= planned.files_replaced + 1
    assert planned.bytes <= made.prediction.bytes <= 1.1 * planned.bytes
    assert made.prediction.files_removed == planned.files_removed


@pytest.mark.parametrize(("partition", "purgeable"), [(WHOLE_TABLE, 1 << 70), (PartitionKey('{"p":"\ud800"}'), 3)])
def test_what_a_fast_encoder_refuses_is_written_all_the_same(partition: PartitionKey, purgeable: int) -> None:
    """A number beyond 64 bits, and half of a surrogate pair: a reader then says what is wrong with the record."""
    made = decide_on_state(partition, state(*[100_000] * 10), POLICY, 1, purgeable=purgeable)
    text = encoded(made, POLICY, 1)
    written = json.loads(text)
    assert (written["partition"], written["purgeable"], written["v"]) == (partition, purgeable, 1)
    with pytest.raises(InvalidInput) as refusal:
        ledger.decode(text)
    assert refusal.value.field == "record"


@pytest.mark.parametrize("kind", list(RewriteKind))
def test_a_request_of_any_mode_does_not_wait_for_writers_and_is_decided_again_from_its_record(
    kind: RewriteKind,
) -> None:
    context = replace(DecisionContext.of_policy(POLICY), contention=ConstantContention(Fraction(9, 10)))
    made = evaluate(context, WHOLE_TABLE, state(*[100_000] * 10), Trigger(7, TriggerSource.REQUEST, kind), COMPACTION)
    assert (made.verdict, made.reason, made.rewrite_kind) == (DecisionKind.ENQUEUE, Reason.REQUESTED, kind)
    record = ledger.decode(ledger.encode(made, context))
    assert recompute(record) is DecisionKind.ENQUEUE
    assert contradictions(record) == ()


@pytest.mark.parametrize(("forced", "custom", "precedence"), [(False, False, 0), (True, False, 1), (True, True, 2)])
def test_the_terms_of_a_person_come_before_those_of_an_event(forced: bool, custom: bool, precedence: int) -> None:
    table = TableRef(TableId("t"), "t", "memory:///t")
    context = DecisionContext(table, TableMetadata("t", ()), POLICY)
    asked = Trigger(7, TriggerSource.REQUEST, is_forced=forced, is_custom=custom)
    made = evaluate(context, WHOLE_TABLE, state(*[100_000] * 10), asked, COMPACTION)
    assert job_request(context, made).precedence == precedence


@pytest.mark.parametrize(
    ("source", "band", "forced", "any_time"),
    [
        (TriggerSource.REQUEST, None, False, True),
        (TriggerSource.REQUEST, Band.URGENT, False, True),
        (TriggerSource.REQUEST, Band.LOW, False, False),
        (TriggerSource.REQUEST, Band.LOW, True, True),
        (TriggerSource.DATA_CHANGE, None, False, False),
        (TriggerSource.TIMER, None, False, False),
    ],
)
def test_only_requests_that_name_no_other_band_start_outside_of_a_work_window(
    source: TriggerSource, band: Band | None, forced: bool, any_time: bool
) -> None:
    context = DecisionContext(TableRef(TableId("t"), "t", "memory:///t"), TableMetadata("t", ()), POLICY)
    asked = Trigger(7, source, band=band, is_forced=forced)
    made = evaluate(context, WHOLE_TABLE, state(*[100_000] * 10), asked, COMPACTION)
    assert job_request(context, made).any_time is any_time


@pytest.mark.parametrize(
    ("source", "kind", "rewrite_kind", "gives_way"),
    [
        (TriggerSource.DATA_CHANGE, COMPACT, RewriteKind.LEVELS, False),
        (TriggerSource.TIMER, COMPACT, RewriteKind.LEVELS, False),
        (TriggerSource.TIMER, COMPACT, RewriteKind.IDLE, True),
        (TriggerSource.DATA_CHANGE, SORT, RewriteKind.LEVELS, True),
        (TriggerSource.TIMER, VACUUM, RewriteKind.LEVELS, True),
        (TriggerSource.TIMER, CHECKPOINT, RewriteKind.LEVELS, False),
        (TriggerSource.REQUEST, SORT, RewriteKind.LEVELS, False),
        (TriggerSource.REQUEST, COMPACT, RewriteKind.IDLE, False),
    ],
)
def test_work_of_idle_partitions_and_long_work_gives_way_to_others_unless_a_person_asks_for_it(
    source: TriggerSource, kind: str, rewrite_kind: RewriteKind, gives_way: bool
) -> None:
    context = DecisionContext(TableRef(TableId("t"), "t", "memory:///t"), TableMetadata("t", ()), POLICY)
    asked = Trigger(7, source, rewrite_kind)
    made = evaluate(context, WHOLE_TABLE, state(*[100_000] * 10), asked, COMPACTION)
    assert job_request(context, replace(made, action=kind)).gives_way is gives_way
