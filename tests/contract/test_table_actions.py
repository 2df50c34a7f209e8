"""What every action on tables as a whole must keep so that timers, queue and ledger can treat all of them alike."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from decider.decide import ledger
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.context import KnownRefusals
from decider.decide.decision import DecisionKind, TableSignals, Trigger, TriggerSource
from decider.decide.evaluate import PIPELINE_REASONS
from decider.decide.funnel import funnel_counts
from decider.decide.job_request import job_request
from decider.decide.table_action import TableAction, evaluate_table, table_timer
from shared.errors import Difference, InvalidInput
from shared.index.signal import IndexSignal
from shared.jobs.payload import JobPayload
from shared.layout.cells.counts import CellFiles
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.eligibility import Reason
from shared.layout.key_runs import KeyRuns
from shared.layout.removals import Removals
from shared.partition_refusals import FIRST_HOLD, NOTHING
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import ClusterMode, DmlPolicy, Policy, Priority, RowGroupCopy
from shared.queue.limits import MAX_PRIORITY
from shared.queue.model import Band
from tests.support.decisions import context_of, contradictions
from tests.support.examples import examples
from tests.support.toy_action import WITH_TOY
from tests.support.toy_table_action import WITH_TOY_TABLE

each_action = pytest.mark.parametrize("action", list(WITH_TOY_TABLE.table_actions), ids=lambda action: action.kind)
few = settings(max_examples=examples(0.3))
"""Examples of each action: together they are many, as all actions take the same way."""

DAY_MS = 86_400_000
NOW_MS = 40 * DAY_MS
POLICIES = st.builds(
    lambda removal, **values: Policy(**values, **removal),
    removal=st.sampled_from([{}, {"primary_key": "id", "sequence_by": "ts"}, {"delete_rows_after": "9 days of ts"}]),
    priority=st.sampled_from(Priority),
    row_group_copy=st.sampled_from(RowGroupCopy),
    vacuum=st.booleans(),
    orphans_every_s=st.sampled_from([None, 86_400]),
    retain_s=st.sampled_from([None, 20 * 86_400]),
    checkpoint_every=st.sampled_from([None, 100]),
    cluster=st.sampled_from(ClusterMode),
    index=st.booleans(),
    dml_policy=st.sampled_from(DmlPolicy),
)
CLUSTERED = st.builds(ClusteredFiles, st.integers(0, 2_000), st.integers(0, 2**40), st.integers(0, 2**40))
SIGNALS = st.builds(
    TableSignals,
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(0, NOW_MS), st.integers(0, 2**40)), max_size=20).map(Removals.of),
    st.sampled_from([None, -1, 0, 17]),
    st.just(0),
    st.builds(KeyRuns, st.integers(-1, 9), st.integers(-1, 9), st.sampled_from([0, NOW_MS // 2, NOW_MS])),
    st.none() | CLUSTERED,
    st.none() | st.builds(CellFiles, CLUSTERED, st.integers(0, 2**40)),
    st.none() | st.builds(IndexSignal, *[st.integers(0, 9)] * 7, st.sampled_from(["", "no revision 9."])),
)
TRIGGERS = st.builds(
    Trigger,
    st.integers(0, 10**6),
    st.sampled_from([TriggerSource.TIMER, TriggerSource.REQUEST]),
    band=st.just(Band.BACKGROUND),
    is_forced=st.booleans(),
)


@each_action
def test_the_kind_can_stand_in_keys_and_every_reason_has_a_sentence(action: TableAction) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", action.kind)
    assert WITH_TOY_TABLE.any_of(action.kind) is action
    assert all(reason.message.endswith(".") for reason in action.reasons)
    codes = {str(reason) for reason in PIPELINE_REASONS}
    assert not codes & {str(reason) for reason in action.reasons}


@each_action
@few
@given(signals=SIGNALS, policy=POLICIES, at_ms=st.integers(0, 2 * NOW_MS))
def test_the_same_signals_give_the_same_proposal_with_a_reason_of_its_own(
    action: TableAction, signals: TableSignals, policy: Policy, at_ms: int
) -> None:
    proposal = action.evaluate(signals, policy, at_ms)
    assert proposal == action.evaluate(signals, policy, at_ms)
    assert isinstance(proposal.reason, action.reasons)
    if proposal.prediction is None:
        assert proposal.reason.stage
    else:
        assert proposal.prediction.benefit > 0
        assert proposal.prediction.bytes == 0 or action.is_rewrite, "it rewrites nothing, and pays for nothing"


@each_action
@few
@given(signals=SIGNALS, policy=POLICIES, trigger=TRIGGERS, busy_ratio=st.sampled_from([Fraction(0), Fraction(1, 2)]))
def test_a_decision_becomes_a_record_that_recomputes_to_it_and_a_job_on_the_table(
    action: TableAction, signals: TableSignals, policy: Policy, trigger: Trigger, busy_ratio: Fraction
) -> None:
    context = context_of(policy, at_ms=NOW_MS, busy_ratio=busy_ratio)
    made = evaluate_table(context, signals, trigger, action)
    event(f"{made.action}: {made.verdict} {made.reason}")
    text = ledger.encode(made, context)
    record = ledger.decode(text, actions=WITH_TOY_TABLE)
    assert (record.action, record.reason, record.verdict, record.signals) == (
        *(action.kind, made.reason, made.verdict),
        signals,
    )
    assert action.kind in record.message
    assert contradictions(record, WITH_TOY_TABLE) == ()
    assert sum(funnel_counts([made]).values()) == 1
    if made.prediction is None:
        assert made.verdict is DecisionKind.SKIP
        return
    job = job_request(context, made)
    assert (job.key.kind, job.key.partition, job.band, job.cost_bytes) == (
        *(action.kind, WHOLE_TABLE, Band.BACKGROUND),
        made.prediction.bytes,
    )
    assert JobPayload.decode(job.payload).options == made.options
    assert 0 <= job.priority <= MAX_PRIORITY


@each_action
@few
@given(signals=SIGNALS, trigger=TRIGGERS)
def test_no_action_touches_a_refused_table_and_none_that_is_off_unless_a_person_forces_it(
    action: TableAction, signals: TableSignals, trigger: Trigger
) -> None:
    def reason(policy: Policy, *, forced: bool) -> object:
        made = evaluate_table(context_of(policy, at_ms=NOW_MS), signals, replace(trigger, is_forced=forced), action)
        return made.reason

    for forced in (False, True):
        assert reason(Policy(enabled=False).with_traits(refused="tables.any"), forced=forced) is Reason.REFUSED
    assert reason(Policy(enabled=False), forced=False) is Reason.DISABLED
    assert not action.is_on(Policy()), "what an owner did not switch on never runs"
    assert reason(Policy(), forced=False) is Reason.SWITCHED_OFF
    assert reason(Policy(), forced=True) is not Reason.SWITCHED_OFF


@each_action
@few
@given(signals=SIGNALS, policy=POLICIES, trigger=TRIGGERS)
def test_no_action_runs_on_a_format_whose_engine_does_not_run_it_even_if_a_person_forces_it(
    action: TableAction, signals: TableSignals, policy: Policy, trigger: Trigger
) -> None:
    limited = policy.with_traits(job_kinds="compact other")
    context = context_of(limited, at_ms=NOW_MS)
    made = evaluate_table(context, signals, trigger, action)
    assert (made.verdict, made.reason, made.prediction) == (DecisionKind.SKIP, Reason.NOT_FOR_FORMAT, None)
    assert table_timer(action, signals, limited, NOW_MS) is None
    record = ledger.decode(ledger.encode(made, context), actions=WITH_TOY_TABLE)
    assert contradictions(record, WITH_TOY_TABLE) == ()
    named = policy.with_traits(job_kinds=f"compact {action.kind}")
    assert evaluate_table(context_of(named, at_ms=NOW_MS), signals, trigger, action) == evaluate_table(
        context_of(policy, at_ms=NOW_MS), signals, trigger, action
    )


@each_action
@few
@given(signals=SIGNALS, policy=POLICIES, trigger=TRIGGERS)
def test_a_kind_that_actors_refused_gets_no_job_by_a_timer_until_its_hold_is_over(
    action: TableAction, signals: TableSignals, policy: Policy, trigger: Trigger
) -> None:
    context = context_of(policy, at_ms=NOW_MS)
    usual = evaluate_table(context, signals, trigger, action)
    for kind, version in ((action.kind, trigger.version), ("another", trigger.version), (action.kind, -FIRST_HOLD)):
        known = NOTHING.after_job(kind, Difference("column v differs"), version, now_ms=1)
        held = replace(context, refusals=KnownRefusals({WHOLE_TABLE: known}))
        made = evaluate_table(held, signals, trigger, action)
        is_held = (kind, version) == (action.kind, trigger.version) and trigger.source is TriggerSource.TIMER
        if is_held and usual.prediction is not None:
            assert (made.verdict, made.reason) == (DecisionKind.SKIP, Reason.REFUSED_FILES)
        else:
            assert made == usual
        record = ledger.decode(ledger.encode(made, held), actions=WITH_TOY_TABLE)
        assert contradictions(record, WITH_TOY_TABLE) == ()


@each_action
@few
@given(signals=SIGNALS, policy=POLICIES, at_ms=st.integers(0, NOW_MS))
def test_a_timer_names_its_action_alone_and_is_set_for_nothing_that_is_excluded(
    action: TableAction, signals: TableSignals, policy: Policy, at_ms: int
) -> None:
    timer = table_timer(action, signals, policy, at_ms)
    if timer is not None:
        assert action.is_on(policy)
        assert WITH_TOY_TABLE.parse_table_timer(timer.name) is action
        assert WITH_TOY_TABLE.parse_timer(timer.name) is None
    for off in (replace(policy, enabled=False), policy.with_traits(refused="tables.any")):
        assert table_timer(action, signals, off, at_ms) is None


def test_a_record_of_a_partition_has_no_signals_and_one_of_a_table_has() -> None:
    action = WITH_TOY_TABLE.table_actions[-1]
    context = context_of(Policy())
    text = ledger.encode(evaluate_table(context, TableSignals(1), Trigger(1), action), context)
    for wrong in (text.replace('"signals"', '"other"'), text.replace(f'"{action.kind}"', '"compact"')):
        with pytest.raises(InvalidInput):
            ledger.decode(wrong, actions=WITH_TOY_TABLE)


def test_a_registry_refuses_two_actions_of_one_kind_of_either_sort() -> None:
    action = WITH_TOY_TABLE.table_actions[-1]
    with pytest.raises(InvalidInput):
        ActionRegistry(ACTIONS.actions, (action, action))
    assert WITH_TOY.table_action("compact") is None
    assert WITH_TOY_TABLE.partition_kinds == ACTIONS.partition_kinds
