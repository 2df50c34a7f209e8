"""The plan of a whole table, for all callers that show or run one: the dry run over REST and the command line.

Each action plans as the actors that run it do, so the groups that a dry run lists are those that a run on the same
snapshot rewrites.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from decider.decide.action import Action
from decider.decide.evaluate import excluded, not_for_format
from decider.optimize.partition_selector import Selector, select
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.planner import Plan
from shared.policy.policy import Policy
from shared.table import PartitionColumn, Snapshot


@dataclass(frozen=True, slots=True)
class PlanSelection:
    """The part of a table that is planned: some partitions (none named: all), and the extent of the rewrite."""

    partitions: tuple[Selector, ...] = ()
    rewrite_kind: RewriteKind = RewriteKind.LEVELS


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The plans with work on one snapshot, by partition key and action.

    partitions: how many were selected. reasons: number of selected partitions by why an action, or all, has no work.
    """

    version: int
    columns: tuple[PartitionColumn, ...]
    plans: tuple[Plan, ...]
    partitions: int
    reasons: Mapping[DecisionReason, int]


def plan_table(
    snapshot: Snapshot, selection: PlanSelection, policy: Policy, actions: Iterable[Action], at_ms: int
) -> TablePlan:
    """Plan the selected partitions of a snapshot for each action; the policy may refuse, switch off or filter them.

    at_ms: as of when it filters them.

    Raises InvalidInput for a selector that names no partition column of the table.
    """
    columns = snapshot.metadata.partition_columns
    files = sorted(snapshot.files, key=lambda file: file.partition)
    by_partition = {partition: tuple(group) for partition, group in groupby(files, key=lambda file: file.partition)}
    selected = select(by_partition, columns, selection.partitions)
    exclusions = {partition: excluded(policy, partition, columns, at_ms) for partition in selected}
    wanted = [action for action in actions if action.is_on(policy)]
    planned = [
        action.plan(partition, by_partition[partition], policy, selection.rewrite_kind)
        for action in wanted
        for partition in selected
        if exclusions[partition] is None and policy.runs(action.kind)
    ]
    without_work = {(made.partition, made.evaluation.reason) for made in planned if not made.groups}
    without_work |= {(partition, reason) for partition, reason in exclusions.items() if reason is not None}
    for action in wanted:
        reason = not_for_format(policy, action.kind)
        without_work |= {(partition, reason) for partition in selected if reason and exclusions[partition] is None}
    if not wanted:
        without_work |= {(partition, Reason.SWITCHED_OFF) for partition in selected}
    reasons: Counter[DecisionReason] = Counter(reason for _, reason in without_work)
    work = sorted((made for made in planned if made.groups), key=lambda made: made.partition)
    return TablePlan(snapshot.version, columns, tuple(work), len(selected), reasons)
