"""Sorting as an action: only tables with an order are evaluated, on the depths that folding keeps."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from decider.decide import ledger
from decider.decide.actions import ACTIONS
from decider.decide.compaction import COMPACTION
from decider.decide.decision import DecisionKind, Trigger
from decider.decide.evaluate import evaluate, evaluate_each
from decider.decide.job_request import job_request
from decider.decide.sorting import SORTING, predict
from decider.optimize.plan_table import PlanSelection, plan_table
from shared.jobs.payload import COMPACT, SORT, JobPayload, RewriteKind
from shared.layout.eligibility import Reason
from shared.layout.partition_stats import PartitionStats, stats_of_files
from shared.layout.sort_planner import SortReason
from shared.policy.policy import ClusteringOrder, Policy
from shared.table import DataFile, PartitionKey, Snapshot, TableMetadata, TableProtocol
from tests.support.decisions import context_of
from tests.support.recomputing import contradictions, recompute

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
    planned = plan_table(snapshot, PlanSelection(), policy, ACTIONS)
    assert (planned.plans, planned.reasons[Reason.NOT_FOR_FORMAT]) == ((), 1)
    assert plan_table(snapshot, PlanSelection(), SORTED, ACTIONS).plans


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
