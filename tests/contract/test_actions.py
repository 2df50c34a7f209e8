"""What every action must keep so that pipeline, queue, ledger and timers can treat all of them alike."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from actor.engines import RUNNABLE_KINDS
from decider.decide import ledger
from decider.decide.action import Action
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.compaction import COMPACTION
from decider.decide.decision import DecisionKind, Trigger, TriggerSource, commit_trigger
from decider.decide.evaluate import PIPELINE_REASONS, evaluate
from decider.decide.funnel import funnel_counts
from decider.decide.job_request import job_request
from shared.errors import InvalidInput
from shared.jobs.payload import CALIBRATED_KINDS, JobPayload, RewriteKind
from shared.layout.eligibility import Reason
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, file_stats, stats_of_files
from shared.policy.policy import MIB, DmlPolicy, Policy
from shared.queue.limits import MAX_PRIORITY
from shared.queue.model import TimerChange, job_id
from shared.table import Commit, CommitOrigin, DataFile, PartitionColumn, PartitionKey
from tests.support.decisions import context_of, contradictions, recompute
from tests.support.examples import examples
from tests.support.toy_action import TOY, WITH_TOY

COLUMNS = (PartitionColumn("dt", "dt", "string"),)
PARTITION, OTHER = PartitionKey('{"dt":"a"}'), PartitionKey('{"dt":"b"}')
POLICY = Policy(target_bytes=8 * MIB)

each_action = pytest.mark.parametrize("action", list(WITH_TOY), ids=lambda action: action.kind)
few = settings(max_examples=examples(0.3))
"""Examples of each action: together they are many, as all actions take the same way."""

SIZES = st.lists(st.sampled_from([1_000, 100_000, MIB, 3 * MIB, 7 * MIB, 9 * MIB]), max_size=30)
POLICIES = st.builds(
    Policy,
    target_bytes=st.just(8 * MIB),
    tolerance=st.sampled_from([Fraction(0), Fraction(15, 100)]),
    max_small_files=st.sampled_from([4, 1000]),
    full_rewrite_interval_s=st.sampled_from([None, 3_600]),
    compact_every_commits=st.sampled_from([None, 2]),
    full_every_commits=st.sampled_from([None, 3]),
    time_window_s=st.sampled_from([None, 3_600]),
    filter=st.sampled_from([None, "dt = 'a'"]),
    dml_policy=st.sampled_from(DmlPolicy),
)
COUNTS_REACHED = (Reason.COMMIT_COUNT_REACHED, Reason.DELETE_COUNT_REACHED)
VERSIONS = st.integers(0, 10**6)
TRIGGERS = (
    st.builds(Trigger, VERSIONS, st.sampled_from([TriggerSource.REBUILD, TriggerSource.REQUEST]))
    | st.builds(
        Trigger, VERSIONS, st.just(TriggerSource.DATA_CHANGE), commits=st.integers(0, 6), is_deletes_due=st.booleans()
    )
    | st.builds(Trigger, VERSIONS, st.just(TriggerSource.TIMER), st.sampled_from(RewriteKind))
)
CALIBRATIONS = st.sampled_from([UNCALIBRATED, Calibration(4, 400, 800, 400, 240, 400, 400)])
BUSY = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(9, 10)])


def stats_of(sizes: list[int], policy: Policy) -> PartitionStats:
    return sum((file_stats(policy.size_levels, size) for size in sizes), EMPTY_STATS)


@each_action
def test_the_kind_can_stand_in_keys_and_records(action: Action) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", action.kind)
    assert WITH_TOY.of(action.kind) is action


@each_action
def test_every_reason_has_a_sentence_and_shares_no_code_with_the_pipeline(action: Action) -> None:
    assert all(reason.message.endswith(".") for reason in action.reasons)
    codes = {str(reason) for reason in PIPELINE_REASONS}
    assert all(reason in PIPELINE_REASONS for reason in action.reasons if str(reason) in codes)


@each_action
@few
@given(sizes=SIZES, policy=POLICIES, trigger=TRIGGERS)
def test_the_same_numbers_give_the_same_proposal_with_a_reason_of_its_own(
    action: Action, sizes: list[int], policy: Policy, trigger: Trigger
) -> None:
    stats = stats_of(sizes, policy)
    proposal = action.evaluate(stats, policy, trigger)
    assert proposal == action.evaluate(stats, policy, trigger)
    assert isinstance(proposal.reason, action.reasons)
    assert proposal.reason not in PIPELINE_REASONS
    if proposal.prediction is None:
        assert proposal.reason.stage
        return
    predicted = proposal.prediction
    assert 0 <= predicted.files_removed <= predicted.files_replaced <= stats.files
    assert 0 <= predicted.bytes <= stats.bytes
    assert predicted.benefit > 0
    assert (predicted.files_removed, predicted.bytes) == (predicted.state_removed, predicted.state_bytes)


@each_action
@few
@given(sizes=SIZES, policy=POLICIES, kind=st.sampled_from(RewriteKind))
def test_a_plan_has_groups_exactly_where_the_evaluation_of_its_files_proposes_a_job(
    action: Action, sizes: list[int], policy: Policy, kind: RewriteKind
) -> None:
    # The state knows the newest time windows only, and a plan all of them.
    policy = replace(policy, time_window_s=None)
    files = [DataFile(f"f{n}", size, PARTITION) for n, size in enumerate(sizes)]
    stats = stats_of_files(files, policy.size_levels)
    made = action.plan(PARTITION, files, policy, kind)
    proposal = action.evaluate(stats, policy, Trigger(1, TriggerSource.TIMER, kind))
    event(f"{action.kind} {kind}: {bool(made.groups)}")
    assert bool(made.groups) == (proposal.prediction is not None)
    assert (made.action, made.partition, made.before) == (action.kind, PARTITION, stats)
    planned = [file for group in made.groups for file in group.files]
    assert len(set(planned)) == len(planned)
    assert set(planned) <= set(files)
    if not made.groups:
        assert isinstance(made.evaluation.reason, action.reasons)
        assert made.evaluation.reason not in PIPELINE_REASONS
        assert made.predicted == stats


@each_action
@few
@given(sizes=SIZES, policy=POLICIES, trigger=TRIGGERS, calibration=CALIBRATIONS, busy=BUSY)
def test_a_decision_becomes_a_record_that_recomputes_to_it_and_a_job_that_says_the_same(
    action: Action, sizes: list[int], policy: Policy, trigger: Trigger, calibration: Calibration, busy: Fraction
) -> None:
    context = context_of(policy, columns=COLUMNS, calibration=calibration, busy_ratio=busy, at_ms=17)
    made = evaluate(context, PARTITION, stats_of(sizes, policy), trigger, action)
    event(f"{made.action}: {made.verdict} {made.reason}")
    record = ledger.decode(ledger.encode(made, context), actions=WITH_TOY)
    assert (record.action, record.reason, record.verdict) == (action.kind, made.reason, made.verdict)
    assert recompute(record, WITH_TOY) is made.verdict
    assert contradictions(record, WITH_TOY) == ()
    assert sum(funnel_counts([made]).values()) == 1
    assert (made.verdict is DecisionKind.SKIP) == (made.prediction is None)
    if made.prediction is None:
        with pytest.raises(ValueError, match="no job follows"):
            job_request(context, made)
        return
    job = job_request(context, made)
    payload = JobPayload.decode(job.payload)
    assert (job.key.kind, job.key.partition, job.version) == (action.kind, PARTITION, trigger.version)
    assert (payload.reason, payload.rewrite_kind, payload.policy) == (made.reason, made.rewrite_kind, policy)
    assert made.rewrite_kind is trigger.rewrite_kind or made.reason in COUNTS_REACHED
    assert (payload.predicted.bytes, job.cost_bytes) == (made.prediction.bytes,) * 2
    assert 0 <= job.priority <= MAX_PRIORITY


@each_action
@few
@given(sizes=SIZES, policy=POLICIES, trigger=TRIGGERS)
def test_no_action_touches_what_is_refused_switched_off_or_filtered(
    action: Action, sizes: list[int], policy: Policy, trigger: Trigger
) -> None:
    stats = stats_of(sizes, policy)

    def reason(policy: Policy, partition: PartitionKey, trigger: Trigger) -> object:
        return evaluate(context_of(policy, columns=COLUMNS), partition, stats, trigger, action).reason

    assert (
        reason(replace(policy, enabled=False).with_traits(refused="tables.any"), PARTITION, trigger) is Reason.REFUSED
    )
    assert reason(replace(policy, enabled=False), PARTITION, trigger) is Reason.DISABLED
    if trigger.source is not TriggerSource.TIMER:
        assert reason(replace(policy, filter="dt = 'a'"), OTHER, trigger) is Reason.FILTERED


@each_action
@few
@given(sizes=SIZES, policy=POLICIES, is_own=st.booleans())
def test_commits_that_change_no_data_never_lead_to_a_job(
    action: Action, sizes: list[int], policy: Policy, is_own: bool
) -> None:
    origin = CommitOrigin("j", 1) if is_own else None
    trigger = commit_trigger(Commit(4, 0, "OPTIMIZE", data_change=False, origin=origin))
    made = evaluate(context_of(policy, columns=COLUMNS), PARTITION, stats_of(sizes, policy), trigger, action)
    assert made.reason is (Reason.OWN_COMMIT if is_own else Reason.NO_DATA_CHANGE)


@each_action
@few
@given(sizes=SIZES, policy=POLICIES, at_ms=st.integers(0, 10**12))
def test_a_timer_names_its_action_and_its_partition_and_is_set_for_nothing_that_is_excluded(
    action: Action, sizes: list[int], policy: Policy, at_ms: int
) -> None:
    if action.timers is None:
        return
    files = [DataFile(f"f{n}", size, PARTITION, modified_ms=at_ms) for n, size in enumerate(sizes)]
    stats = stats_of_files(files, policy.size_levels)

    def changes(policy: Policy, partition: PartitionKey) -> list[tuple[str, TimerChange]]:
        assert action.timers is not None
        made = [
            *action.timers.after_commit(partition, stats, policy, at_ms, COLUMNS),
            *action.timers.after_rewrite(partition, stats, policy),
            *action.timers.after_rebuild({partition: PartitionCount(stats, at_ms)}, policy, at_ms, COLUMNS),
        ]
        return [(timer.name, timer.change) for timer in made]

    for name, _ in changes(policy, PARTITION):
        found = WITH_TOY.parse_timer(name)
        assert found is not None
        assert (found[0], found[1].partition) == (action, PARTITION)
        assert [one.kind for one in WITH_TOY if one.timers is not None and one.timers.parse(name)] == [action.kind]
    for off, partition in ((replace(policy, enabled=False), PARTITION), (replace(policy, filter="dt = 'a'"), OTHER)):
        assert all(change is TimerChange.STOP for _, change in changes(off, partition))


def test_jobs_of_two_actions_for_one_partition_are_two_jobs() -> None:
    context, stats = context_of(POLICY), stats_of([100_000] * 10, POLICY)
    jobs = [
        job_request(context, evaluate(context, PARTITION, stats, Trigger(1), action)) for action in (COMPACTION, TOY)
    ]
    assert len({job_id(job.key) for job in jobs}) == len(jobs)


def test_a_registry_refuses_two_actions_of_one_kind_and_none_at_all() -> None:
    for wrong in ((TOY, TOY), ()):
        with pytest.raises(InvalidInput):
            ActionRegistry(wrong)


def test_a_record_of_an_unknown_action_is_unreadable_and_keeps_what_it_says() -> None:
    context = context_of(POLICY)
    made = evaluate(context, PARTITION, stats_of([100_000] * 10, POLICY), Trigger(7), TOY)
    found = ledger.read(ledger.encode(made, context), "queued", 17)
    assert isinstance(found, ledger.UnreadableRecord)
    assert (found.version, found.partition, found.action) == (7, PARTITION, TOY.kind)
    assert TOY.kind in found.problem


def test_an_actor_runs_the_kinds_that_the_decider_queues_and_no_others() -> None:
    assert ACTIONS.partition_kinds == RUNNABLE_KINDS


def test_an_actor_measures_the_runs_of_the_actions_that_are_calibrated_and_no_others() -> None:
    assert {action.kind for action in ACTIONS if action.is_calibrated} == CALIBRATED_KINDS


def test_a_timer_of_another_release_belongs_to_no_action() -> None:
    assert WITH_TOY.parse_timer('vacuum {"dt":"a"}') is None
