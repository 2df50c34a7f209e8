"""A clustered table gets its format's own OPTIMIZE, when that is due, and no other rewrite."""

from fractions import Fraction

import pytest

from decider.decide.actions import ACTIONS
from decider.decide.cluster import CLUSTER_ACTION
from decider.decide.context import DecisionContext
from decider.decide.decision import DecisionKind, TableSignals, Trigger, TriggerSource
from decider.decide.evaluate import evaluate_each
from decider.decide.signals_text import describe
from decider.decide.table_action import evaluate_table, table_timer
from shared.layout.clustered_files import ClusteredFiles, ClusterReason
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, ClusterMode, DmlPolicy, Policy
from shared.queue.model import TimerChange
from tests.support.decisions import context_of

KINDS = "cluster vacuum checkpoint"
POLICY = Policy(cluster=ClusterMode.ON).with_traits(is_clustered=True, job_kinds=KINDS)
DUE = ClusteredFiles(10, 10 * MIB, 20 * MIB)
TIMER = Trigger(7, TriggerSource.TIMER)


def signals(files: ClusteredFiles | None) -> TableSignals:
    return TableSignals(7, clustered=files)


def test_a_due_run_is_decided_with_the_bytes_that_it_rewrites_and_its_timer_is_set() -> None:
    made = evaluate_table(context_of(POLICY), signals(DUE), TIMER, CLUSTER_ACTION)
    assert (made.verdict, made.reason) == (DecisionKind.ENQUEUE, ClusterReason.UNCLUSTERED)
    assert made.prediction is not None
    assert (made.prediction.files_replaced, made.prediction.bytes) == (10, 30 * MIB)
    timer = table_timer(CLUSTER_ACTION, signals(DUE), POLICY, 5)
    assert timer is not None
    assert (timer.fires_at_ms, timer.change) == (5, TimerChange.SET)
    assert "Not clustered: 10 files with 10 MiB; clustered: 20 MiB." in describe(signals(DUE))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (None, ClusterReason.NOT_CLUSTERED),
        (ClusteredFiles(0, 0, MIB), ClusterReason.NOTHING),
        (ClusteredFiles(2, 2, MIB), ClusterReason.FEW_FILES),
        (ClusteredFiles(10, MIB, 20 * MIB), ClusterReason.BELOW_THRESHOLD),
    ],
)
def test_nothing_is_done_with_a_reason_and_the_timer_is_stopped(
    files: ClusteredFiles | None, reason: ClusterReason
) -> None:
    made = evaluate_table(context_of(POLICY), signals(files), TIMER, CLUSTER_ACTION)
    assert (made.verdict, made.reason) == (DecisionKind.SKIP, reason)
    timer = table_timer(CLUSTER_ACTION, signals(files), POLICY, 5)
    assert timer is not None
    assert timer.change is TimerChange.STOP


def test_a_table_with_many_small_files_gets_no_other_rewrite() -> None:
    stats = stats_of_sizes(POLICY.size_levels, [MIB] * 100)
    trigger = Trigger(7, TriggerSource.DATA_CHANGE)
    made = evaluate_each(context_of(POLICY), WHOLE_TABLE, stats, trigger, ACTIONS)
    assert {one.reason for one in made} == {Reason.CLUSTERED_TABLE}
    plain = evaluate_each(context_of(Policy(cluster=ClusterMode.ON)), WHOLE_TABLE, stats, trigger, ACTIONS)
    assert plain[0].prediction is not None


@pytest.mark.parametrize(
    ("dml", "verdict", "reason"),
    [
        (DmlPolicy.ALWAYS, DecisionKind.ENQUEUE, ClusterReason.UNCLUSTERED),
        (DmlPolicy.DEFER, DecisionKind.DEFER, ClusterReason.UNCLUSTERED),
        (DmlPolicy.NEVER, DecisionKind.SKIP, Reason.DEFERRED_TO_WRITERS),
    ],
)
def test_a_run_waits_for_merge_update_and_delete_as_the_owner_wants(
    dml: DmlPolicy, verdict: DecisionKind, reason: Reason | ClusterReason
) -> None:
    policy = Policy(cluster=ClusterMode.ON, dml_policy=dml).with_traits(is_clustered=True, job_kinds=KINDS)
    busy: DecisionContext = context_of(policy, busy_ratio=Fraction(1, 2))
    made = evaluate_table(busy, signals(DUE), TIMER, CLUSTER_ACTION)
    assert (made.verdict, made.reason) == (verdict, reason)
    requested = evaluate_table(busy, signals(DUE), Trigger(7, TriggerSource.REQUEST, is_forced=True), CLUSTER_ACTION)
    assert (requested.verdict, requested.reason) == (DecisionKind.ENQUEUE, Reason.REQUESTED)
