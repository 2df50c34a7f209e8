"""When the actions on the layout of rows are due: clustering, sorting, the index."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from decider.decide import ledger
from decider.decide.actions import ACTIONS
from decider.decide.cluster import CLUSTER_ACTION
from decider.decide.compaction import COMPACTION
from decider.decide.context import DecisionContext
from decider.decide.decision import DecisionKind, TableSignals, Trigger, TriggerSource
from decider.decide.evaluate import evaluate, evaluate_each, not_for_format
from decider.decide.index import INDEX_ACTION, IndexReason
from decider.decide.job_request import job_request
from decider.decide.signals_text import describe
from decider.decide.sorting import SORTING, predict
from decider.decide.table_action import evaluate_table, table_timer
from decider.optimize.plan_table import PlanSelection, plan_table
from shared.formats.qbeast.iterations import Strategy
from shared.formats.qbeast.status import index_status
from shared.index.signal import IndexSignal
from shared.index.status import IndexQuery
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import COMPACT, SORT, JobPayload, RewriteKind
from shared.layout.cells.counts import CellFiles
from shared.layout.clustered_files import ClusteredFiles, ClusterReason
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import PartitionStats, stats_of_files, stats_of_sizes
from shared.layout.sort_planner import SortReason
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, ClusteringOrder, ClusterMode, DmlPolicy, Policy
from shared.queue.model import TimerChange
from shared.table import DataFile, PartitionKey, Snapshot, TableMetadata, TableProtocol
from tests.support.decisions import context_of, contradictions, recompute
from tests.support.qbeast_tree import QbeastTree

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


def test_a_run_on_cells_is_decided_with_what_is_due_and_the_actor_gets_to_know_what_commits_bring() -> None:
    policy = replace(POLICY, cluster=ClusterMode.CELLS, target_bytes=16 * MIB)
    due = TableSignals(7, cells=CellFiles(ClusteredFiles(3, 12 * MIB, 40 * MIB), 8 * MIB, 1, 4 * MIB, MIB))
    made = evaluate_table(context_of(policy), due, TIMER, CLUSTER_ACTION)
    assert (made.verdict, made.reason) == (DecisionKind.ENQUEUE, ClusterReason.HALF_A_RUN)
    assert made.prediction is not None
    assert (made.prediction.files_replaced, made.prediction.bytes) == (2, 16 * MIB)
    assert ClusterOptions.decode(made.options) == ClusterOptions(commit_bytes=MIB)
    assert "New: 2 files with 8 MiB; due since the last run: 8 MiB; in cells: 40 MiB." in describe(due)
    at_rest = TableSignals(7, cells=CellFiles(ClusteredFiles(1, 4 * MIB, 40 * MIB), 0, 1, 4 * MIB))
    made = evaluate_table(context_of(policy), at_rest, TIMER, CLUSTER_ACTION)
    assert (made.verdict, made.reason) == (DecisionKind.SKIP, ClusterReason.NOTHING)


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


PARTITION = PartitionKey("{}")
SORTED = Policy(target_bytes=100, sort_by="k", max_depth=2)


def files(count: int) -> list[DataFile]:
    return [DataFile(f"f{at}", 100 + at, PARTITION, key_range=(0, 10 + at)) for at in range(count)]


def state(count: int) -> PartitionStats:
    return stats_of_files([*files(count), DataFile("small", 10, PARTITION)], SORTED.size_levels)


def test_a_table_without_an_order_is_not_evaluated_at_all() -> None:
    context = context_of(Policy(target_bytes=100))
    assert [made.action for made in evaluate_each(context, PARTITION, state(9), Trigger(1), ACTIONS)] == ["compact"]
    assert [action.kind for action in ACTIONS if action.is_on(SORTED)] == ["compact", "sort"]


def test_a_table_of_a_format_without_orders_is_not_sorted_and_its_record_says_so() -> None:
    policy = SORTED.with_traits(job_kinds=COMPACT, orders_rows=False)
    context = context_of(policy)
    of_compaction, made = evaluate_each(context, PARTITION, state(9), Trigger(1), ACTIONS)
    assert (made.action, made.verdict, made.reason) == (SORT, DecisionKind.SKIP, Reason.NOT_FOR_FORMAT)
    assert of_compaction.reason is not Reason.NOT_FOR_FORMAT
    record = ledger.decode(ledger.encode(made, context))
    assert Reason.NOT_FOR_FORMAT.message in record.message
    assert contradictions(record) == ()
    assert SORTING.plan(PARTITION, files(9), policy, RewriteKind.LEVELS).groups == ()
    snapshot = Snapshot(1, 0, TableMetadata("u"), TableProtocol(1, 2), tuple(files(9)))
    planned = plan_table(snapshot, PlanSelection(), policy, ACTIONS, 0)
    assert (planned.plans, planned.reasons[Reason.NOT_FOR_FORMAT]) == ((), 1)
    assert plan_table(snapshot, PlanSelection(), SORTED, ACTIONS, 0).plans


@pytest.mark.parametrize("order", [{"sort_by": "k"}, {"zorder_by": "k"}, {"clustering_order": ClusteringOrder.TIME}])
@pytest.mark.parametrize("kind", RewriteKind)
def test_a_format_without_orders_is_compacted_as_if_the_table_had_none(
    order: dict[str, Any], kind: RewriteKind
) -> None:
    plain = Policy(target_bytes=100, tolerance=Fraction(0), min_input_files=2)
    some = [DataFile(f"f{at:02}", 60 - at, PARTITION) for at in range(40)]
    unordered = COMPACTION.plan(PARTITION, some, replace(plain, **order).with_traits(orders_rows=False), kind)
    assert unordered.groups
    assert all(group.order is None for group in unordered.groups)
    assert unordered == COMPACTION.plan(PARTITION, some, plain, kind)
    ordered = COMPACTION.plan(PARTITION, some, replace(plain, **order), kind)
    assert ordered.groups != unordered.groups


def test_too_many_files_at_a_point_lead_to_a_job_that_says_what_it_will_sort() -> None:
    context = context_of(SORTED)
    made = evaluate(context, PARTITION, state(4), Trigger(7), SORTING)
    assert (made.verdict, made.reason) == (DecisionKind.ENQUEUE, SortReason.TOO_DEEP)
    assert made.prediction is not None
    assert (made.prediction.files_replaced, made.prediction.bytes) == (4, 406)
    assert (made.prediction.files_removed, made.prediction.benefit) == (0, Fraction(3))
    job = job_request(context, made)
    assert (job.key.kind, JobPayload.decode(job.payload).policy) == (SORT, SORTED)
    record = ledger.decode(ledger.encode(made, context))
    assert (record.action, record.reason, record.state) == (SORT, SortReason.TOO_DEEP, made.state)
    assert recompute(record) is made.verdict
    assert contradictions(record) == ()
    assert evaluate(context, PARTITION, state(2), Trigger(7), SORTING).reason is SortReason.WITHIN_DEPTH
    assert predict(state(2), SORTED) is None


def test_the_plan_of_a_dry_run_is_that_of_the_actor() -> None:
    made = SORTING.plan(PARTITION, files(4), SORTED, RewriteKind.LEVELS)
    assert [len(group.files) for group in made.groups] == [4]


INDEXED = Policy(index=True, index_every_s=60).with_traits(is_indexed=True, job_kinds="index vacuum checkpoint")
INDEX_DUE = IndexSignal(3, 4, 4_000, blocks=9, cubes=3, overhang_blocks=2, unindexed_files=1)


def index_signals(index: IndexSignal | None, commits: int = 0) -> TableSignals:
    return TableSignals(3, index=index, new_commits=commits)


def test_a_job_is_proposed_where_files_are_eligible_and_is_charged_with_their_bytes() -> None:
    found = INDEX_ACTION.evaluate(index_signals(INDEX_DUE), INDEXED, 0)
    assert found.reason is IndexReason.ELIGIBLE
    assert found.prediction is not None
    assert (found.prediction.files_replaced, found.prediction.bytes) == (4, 4_000)


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        (Strategy.SAMPLING, IndexReason.SAMPLE),
        (Strategy.UNINDEXED, IndexReason.NEW_FILES),
        (Strategy.LEVELED, IndexReason.ELIGIBLE),
    ],
)
def test_how_the_files_of_an_index_were_chosen_is_the_reason(strategy: Strategy, reason: IndexReason) -> None:
    found = INDEX_ACTION.evaluate(index_signals(replace(INDEX_DUE, next_strategy=strategy.value)), INDEXED, 0)
    assert found.reason is reason
    assert found.prediction is not None


def test_nothing_is_proposed_without_eligible_files_without_an_index_and_against_a_refusal() -> None:
    none = {
        IndexReason.NOTHING_ELIGIBLE: IndexSignal(3, blocks=9, cubes=9),
        IndexReason.NOT_INDEXED: None,
        IndexReason.REFUSED: IndexSignal(3, 4, 4_000, refusal="the table has no revision 9."),
        IndexReason.DOUBLED: IndexSignal(3, 4, 4_000, newest_by_others=3, doubled="version 3 …"),
    }
    for reason, index in none.items():
        found = INDEX_ACTION.evaluate(index_signals(index), INDEXED, 0)
        assert (found.reason, found.prediction) == (reason, None)


def test_commits_share_an_evaluation_some_time_after_the_first_of_them() -> None:
    timer = table_timer(INDEX_ACTION, index_signals(None, commits=2), INDEXED, 1_000)
    assert timer is not None
    assert (timer.fires_at_ms, timer.change) == (61_000, TimerChange.EARLIER)
    assert table_timer(INDEX_ACTION, index_signals(INDEX_DUE), INDEXED, 1_000) is None
    plain = Policy(index=True)
    assert table_timer(INDEX_ACTION, index_signals(None, commits=2), plain, 1_000) is None


def test_an_index_that_is_not_switched_on_is_left_alone_unless_a_person_requests_it() -> None:
    policy = Policy().with_traits(is_indexed=True, job_kinds="index")
    timed = evaluate_table(context_of(policy), index_signals(INDEX_DUE), Trigger(3, TriggerSource.TIMER), INDEX_ACTION)
    assert (timed.reason, timed.prediction) == (Reason.SWITCHED_OFF, None)
    request = Trigger(3, TriggerSource.REQUEST, is_forced=True)
    asked = evaluate_table(context_of(policy), index_signals(INDEX_DUE), request, INDEX_ACTION)
    assert asked.reason is Reason.REQUESTED


def test_the_signal_of_an_index_names_what_is_rewritten_next_and_how_it_was_chosen() -> None:
    tree = QbeastTree(random.Random(7), cube_size=5)
    for _ in range(10):
        tree.append(tree.new_rows(60))
    tree.append_plainly(tree.new_rows(9))
    status = index_status(tree.snapshot(), IndexQuery())
    assert status is not None
    assert status.rewrites.next is not None
    found = IndexSignal.of(status)
    assert status.rewrites.next.strategy == "unindexed"
    assert (found.next_files, found.next_bytes) == (len(status.rewrites.next.paths), status.rewrites.next.bytes)
    assert (found.unindexed_files, found.next_files, found.next_strategy) == (1, 1, "unindexed")
    fresh = index_status(QbeastTree(random.Random(7), cube_size=5).snapshot(), IndexQuery())
    assert fresh is not None
    assert IndexSignal.of(fresh).blocks == 0


def test_the_signals_are_described_for_people() -> None:
    text = describe(index_signals(INDEX_DUE))
    assert "9 blocks in 3 cubes (fragmentation 3.00), 2 of them overhanging; next: 4 files" in text
    assert "1 file not indexed." in text
    assert "not indexed" not in describe(index_signals(IndexSignal(3)))
    assert "Others" not in text
    assert "Samples" not in text
    hidden = describe(index_signals(replace(INDEX_DUE, hidden_blocks=3)))
    assert "Samples may miss rows of 3 blocks: `lakewright index --revision-rewrite true`." in hidden
    others = describe(index_signals(IndexSignal(9, newest_by_others=7)))
    assert others.endswith("Others rewrote it lately, the last time in version 7.")
    alarm = describe(index_signals(IndexSignal(9, newest_by_others=7, doubled="version 7 rewrote f")))
    assert alarm.endswith("the last time in version 7. Alarm: version 7 rewrote f.")
    assert describe(index_signals(IndexSignal(3, refusal="a reason."))).endswith(
        "The index is not optimized: a reason."
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy().with_traits(job_kinds="index", is_indexed=True), Reason.INDEXED_TABLE),
        (Policy().with_traits(job_kinds="cluster", is_clustered=True), Reason.CLUSTERED_TABLE),
        (Policy().with_traits(job_kinds="other"), Reason.NOT_FOR_FORMAT),
        (Policy().with_traits(is_indexed=True), None),
    ],
)
def test_a_partition_of_an_indexed_table_is_not_compacted_and_the_reason_says_so(
    policy: Policy, expected: Reason | None
) -> None:
    assert not_for_format(policy, COMPACT) is expected
