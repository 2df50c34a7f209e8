"""Plan of `lakewright optimize LOCATION`, as a value: made from one snapshot, shown, and then run unchanged.

The planner is the one that actors use. What a dry run lists is what a run rewrites, group by group, for the run takes
these very groups; a group whose files others took meanwhile is left alone, never replaced by another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from decider.decide.compaction import COMPACTION
from decider.optimize.partition_selector import label
from decider.optimize.plan_table import PlanSelection, plan_table
from decider.state.effective_policy import resolve_unregistered
from decider.state.table_summary import TableSummary
from shared.errors import Unsupported
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import DecisionReason
from shared.layout.partition_count import count_partitions
from shared.layout.planner import FileGroup, Plan
from shared.policy.partition_filter import describe_moving
from shared.policy.policy import Policy, PropertyIssue, apply
from shared.policy.properties import read_settings
from shared.table import PartitionColumn, Snapshot

NO_CUT_BYTES = 2**62
"""Bytes of one job: nothing is cut, for here the person who confirms is the bound."""


@dataclass(frozen=True, slots=True)
class LocalRequest:
    """A requested run; `properties` are policy values by their names without prefix, laid over the table's own."""

    kind: RewriteKind = RewriteKind.LEVELS
    partitions: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    force: bool = False


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """The plans with work, partitions in the order of their keys; `before` and `after` are of the whole table.

    reasons: partitions without work, by why. issues: properties of the table that cannot be used. notes: what a filter
    that moves with the time is now.
    """

    location: str
    version: int
    kind: RewriteKind
    columns: tuple[PartitionColumn, ...]
    policy: Policy
    plans: tuple[Plan, ...]
    partitions: int
    before: TableSummary
    after: TableSummary
    reasons: Mapping[DecisionReason, int]
    issues: tuple[PropertyIssue, ...]
    table_uuid: str = ""
    format: str = ""
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[FileGroup, ...]:
        """All groups in the order in which they are written."""
        return tuple(group for plan in self.plans for group in plan.groups)

    @property
    def bytes(self) -> int:
        """Bytes to read, and at most to write."""
        return sum(plan.bytes for plan in self.plans)

    @property
    def files_replaced(self) -> int:
        """Input files over all groups."""
        return sum(plan.files_replaced for plan in self.plans)


def make_plan(location: str, snapshot: Snapshot, request: LocalRequest, default: Policy, *, now_ms: int) -> LocalPlan:
    """Plan a table on a snapshot of it, as of a time in ms since 1970.

    Raises Unsupported for a table that a rewrite could damage, whatever is forced; InvalidInput for a property that
    cannot be used and for a partition that the table does not have.
    """
    refused = snapshot.refusal
    if refused is not None:
        raise Unsupported(f"{location}: {refused.message}", field=refused.subject)
    in_force = resolve_unregistered(default, snapshot.metadata.configuration, {}, snapshot.metadata.format)
    policy = _overridden(in_force.policy, request)
    # A person who runs the command wants this table planned, even if it is disabled for the decider.
    selection = PlanSelection(request.partitions, request.kind)
    # Of all actions, this process can only run compaction.
    planned = plan_table(snapshot, selection, replace(policy, enabled=True), [COMPACTION], now_ms)
    now = {partition: one.state for partition, one in count_partitions(snapshot.files, policy).items()}
    then = now | {one.partition: one.predicted for one in planned.plans}
    before, after = (TableSummary.of(states.values(), policy) for states in (now, then))
    return LocalPlan(
        location, snapshot.version, request.kind, planned.columns, policy, planned.plans, planned.partitions, before,
        after, planned.reasons, in_force.issues, snapshot.metadata.table_uuid, snapshot.metadata.format,
        describe_moving(policy.filter, now_ms),
    )  # fmt: skip


def describe(made: LocalPlan) -> dict[str, Any]:
    """Return a plan as plain values, every group with its files."""
    return {
        "location": made.location,
        "version": made.version,
        "mode": made.kind,
        "target_bytes": made.policy.target_bytes,
        "policy_version": made.policy.version,
        "partitions": made.partitions,
        "files_replaced": made.files_replaced,
        "files_removed": made.before.files - made.after.files,
        "bytes": made.bytes,
        "files_needed": {"before": made.before.files_needed, "after": made.after.files_needed},
        "excess_ratio": {"before": round(made.before.excess_ratio, 6), "after": round(made.after.excess_ratio, 6)},
        "plans": [_described(one, made.columns) for one in made.plans],
        "without_work": {reason.value: count for reason, count in made.reasons.items()},
        "issues": [{"property": one.property, "value": one.value, "reason": one.reason} for one in made.issues],
        "notes": list(made.notes),
    }


def batches(made: LocalPlan, groups_per_commit: int) -> Iterator[tuple[Plan, tuple[FileGroup, ...]]]:
    """Yield what one commit takes: a few groups of one partition."""
    for one in made.plans:
        for first in range(0, len(one.groups), groups_per_commit):
            yield one, one.groups[first : first + groups_per_commit]


def _overridden(policy: Policy, request: LocalRequest) -> Policy:
    policy = replace(apply(policy, read_settings(request.properties)), max_bytes_per_job=NO_CUT_BYTES)
    policy = policy.for_manual_rewrite if request.force or request.kind is RewriteKind.FULL else policy
    return replace(policy, tolerance=Fraction(0)) if request.force else policy


def _described(one: Plan, columns: Sequence[PartitionColumn]) -> dict[str, Any]:
    return {
        "partition_key": one.partition,
        "partition_label": label(one.partition, columns),
        "files": one.before.files,
        "files_replaced": one.files_replaced,
        "files_removed": one.files_removed,
        "bytes": one.bytes,
        "entropy_removed_bytes2": float(one.entropy_removed),
        "groups": [
            {"mode": group.mode.value, "bytes": group.bytes, "files": [file.path for file in group.files]}
            for group in one.groups
        ],
    }
