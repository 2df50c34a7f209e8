"""Views of a table: pure functions, so that every number can be checked against its source."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from decider.api.schemas.decision_records import DecisionRecord
from decider.api.schemas.optimize import OptimizePlan, OptimizeResponse, PartitionPlan, PlannedGroup, RequestedJobView
from decider.api.schemas.partition_layout import LayoutView, PartitionDecision, PartitionView, SizeLevelView
from decider.api.schemas.policy_in_force import PolicyInForce, PolicyIssue, PolicyValue
from decider.api.schemas.tables import TableRefusal, TableView
from decider.decide.action import Action
from decider.decide.context import DecisionContext
from decider.decide.decision import Trigger
from decider.decide.evaluate import evaluate_each
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from decider.optimize import on_demand
from decider.optimize.partition_selector import label, named_values
from decider.state.effective_policy import EffectivePolicy, PolicySource
from decider.store.table_registry import StoredRefusal
from shared.layout.levels import FULL, SizeLevels
from shared.layout.partition_stats import PartitionStats
from shared.layout.planner import Plan
from shared.property_names import PREFIX
from shared.property_table import PROPERTIES
from shared.table import PartitionColumn, PartitionKey, TableRef

MAX_PLANS = 200
"""Partitions that a dry run lists with their groups; the totals count all of them."""

UNREADABLE = "unreadable"
"""Verdict and reason of a record that this release cannot read, as one of a newer release may be."""

_SOURCE_NAMES = {PolicySource.SERVICE: "LAKEWRIGHT_POLICY", PolicySource.DEFAULT: "default"}
"""Name of the source for a value that no property sets."""


def table_view(table: TableRef) -> TableView:
    """Show a registered table."""
    overrides = dict(table.properties)
    return TableView(
        id=table.id,
        name=table.name,
        location=table.location,
        tenant=table.tenant,
        properties=overrides,
        declared=table.is_declared,
    )


def refusal_view(refusal: StoredRefusal) -> TableRefusal:
    """Show why a table is refused."""
    at, since = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (refusal.at_ms, refusal.since_ms))
    return TableRefusal(at=at, since=since, missing=refusal.is_missing, code=refusal.code, reason=refusal.reason)


def layout_view(state: PartitionStats, size_levels: SizeLevels) -> LayoutView:
    """Show the files of a partition, or of many partitions added up, level by level."""
    floors = size_levels.floors
    counts = (*state.counts, state.files - state.small_files)
    sizes = (*state.sizes, state.bytes - state.small_bytes)
    levels = tuple(
        SizeLevelView(
            level=level,
            from_bytes=floors[level],
            below_bytes=floors[level + 1] if level < FULL else None,
            files=counts[level],
            bytes=sizes[level],
        )
        for level in range(FULL + 1)
    )
    mse = state.mse()
    return LayoutView(
        files=state.files,
        bytes=state.bytes,
        small_files=state.small_files,
        small_bytes=state.small_bytes,
        deletion_vector_files=state.dv_files,
        deleted_rows=state.deleted_rows,
        mse_bytes2=float(mse),
        rms_shortfall=round(math.sqrt(mse) / size_levels.target_bytes, 6),
        depth=max((depth.deepest[0] for _, depth in state.depths), default=0),
        levels=levels,
    )


def policy_view(in_force: EffectivePolicy) -> PolicyInForce:
    """Show the policy, and for each value the property that set it."""
    values = tuple(
        PolicyValue(
            property=PREFIX + prop.name,
            value=_plain(getattr(in_force.policy, prop.policy_field)),
            unit=prop.unit,
            source=in_force.origins[prop.policy_field].source,
            set_by=in_force.origins[prop.policy_field].name
            or _SOURCE_NAMES[in_force.origins[prop.policy_field].source],
            description=prop.description,
        )
        for prop in PROPERTIES
    )
    issues = tuple(
        PolicyIssue(property=issue.property, value=issue.value, reason=issue.reason, blocking=issue.is_blocking)
        for issue in in_force.issues
    )
    return PolicyInForce(version=in_force.policy.version, values=values, issues=issues, notes=in_force.notes)


def partition_view(
    context: DecisionContext, partition: PartitionKey, state: PartitionStats, actions: Iterable[Action]
) -> PartitionView:
    """Show one partition, and what would be decided about it now for each action."""
    decisions = evaluate_each(context, partition, state, Trigger(0), actions)
    return PartitionView(
        partition_key=partition,
        partition_label=label(partition, context.columns),
        partition=named_values(partition, context.columns),
        layout=layout_view(state, context.policy.size_levels),
        decisions=tuple(
            PartitionDecision(
                action=made.action, decision=made.verdict, reason=made.reason, reason_text=made.reason.message
            )
            for made in decisions
        ),
    )


def decision_view(record: LedgerRecord | UnreadableRecord, columns: Sequence[PartitionColumn]) -> DecisionRecord:
    """Show one entry of the ledger; of one that this release cannot read, its readable fields and its text."""
    at = datetime.fromtimestamp(record.at_ms / 1000, UTC)
    if isinstance(record, UnreadableRecord):
        return DecisionRecord(
            at=at,
            at_ms=record.at_ms,
            version=record.version,
            action=record.action,
            partition_key=record.partition,
            partition_label=None if record.partition is None else label(record.partition, columns),
            partition={} if record.partition is None else named_values(record.partition, columns),
            decision=UNREADABLE,
            reason=UNREADABLE,
            reason_text="This release cannot read the record.",
            message=record.message,
            outcome=record.outcome,
            record=record.text,
        )
    return DecisionRecord(
        at=at,
        at_ms=record.at_ms,
        version=record.version,
        action=record.action,
        partition_key=record.partition,
        partition_label=label(record.partition, columns),
        partition=named_values(record.partition, columns),
        decision=record.verdict,
        reason=record.reason,
        reason_text=record.reason.message,
        message=record.message,
        outcome=record.outcome,
        files=record.state.files,
        small_files=record.state.small_files,
        mse_bytes2=float(record.state.mse()),
        policy_version=record.policy.version,
        predicted={name: float(value) for name, value in record.predicted.items()},
    )


def optimized_view(answer: on_demand.OptimizeResult) -> OptimizeResponse:
    """Show the jobs that a request led to."""
    jobs = tuple(
        RequestedJobView(
            id=job.id,
            action=job.action,
            partition_key=job.partition,
            partition_label=label(job.partition, answer.columns),
            outcome=job.outcome,
            predicted_bytes=job.bytes,
            predicted_files_replaced=job.files_replaced,
        )
        for job in answer.jobs
    )
    refused = f" {answer.refusal.message}" if answer.refusal else ""
    more = f" {_count(answer.left_out, 'job')} beyond the limit; repeat the request." if answer.left_out else ""
    return OptimizeResponse(
        version=answer.version,
        jobs=jobs,
        ignored=answer.ignored,
        message=f"{answer.ignored.message}{refused}" if answer.ignored else f"{_count(len(jobs), 'job')}.{more}",
        reasons={str(reason): count for reason, count in answer.reasons.items()},
        running=answer.running,
        remaining=answer.left_out,
    )


def dry_run_view(found: on_demand.DryRun) -> OptimizePlan:
    """Show what a rewrite would do."""
    plans = found.plans
    replaced = sum(plan.files_replaced for plan in plans)
    removed = sum(plan.files_removed for plan in plans)
    total = sum(plan.bytes for plan in plans)
    partitions = len({plan.partition for plan in plans})
    refused = f" {found.refusal.message}" if found.refusal else ""
    message = (
        f"{_count(replaced, 'file')} would be replaced, the file count would decrease by {removed}, and {_size(total)} "
        f"would be read in {_count(partitions, 'partition')}."
    )
    return OptimizePlan(
        version=found.version,
        ignored=found.ignored,
        message=f"{found.ignored.message}{refused}" if found.ignored else message,
        partitions=partitions,
        files_replaced=replaced,
        files_removed=removed,
        bytes=total,
        plans=tuple(_plan_view(plan, found.policy.size_levels, found.columns) for plan in plans[:MAX_PLANS]),
        remaining=max(0, len(plans) - MAX_PLANS),
        reasons={str(reason): count for reason, count in found.reasons.items()},
    )


def _plan_view(plan: Plan, size_levels: SizeLevels, columns: Sequence[PartitionColumn]) -> PartitionPlan:
    groups = tuple(
        PlannedGroup(
            files=len(group.files),
            bytes=group.bytes,
            largest_bytes=max(file.size_bytes for file in group.files),
            mode=group.mode,
        )
        for group in plan.groups
    )
    return PartitionPlan(
        action=plan.action,
        partition_key=plan.partition,
        partition_label=label(plan.partition, columns),
        groups=groups,
        files_replaced=plan.files_replaced,
        files_removed=plan.files_removed,
        bytes=plan.bytes,
        entropy_removed_bytes2=float(plan.entropy_removed),
        before=layout_view(plan.before, size_levels),
        after=layout_view(plan.predicted, size_levels),
    )


def _plain(value: Any) -> bool | int | float | str | None:
    return value if value is None or isinstance(value, bool | int | str) else float(value)


def _size(count_bytes: int) -> str:
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count_bytes >= unit:
            return f"{count_bytes / unit:.1f} {name}"
    return f"{count_bytes} B"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
