"""On-demand optimization: enqueue jobs or return a plan."""

from collections.abc import Mapping, Sequence
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import Field

from decider.api.dependencies import Http, KnownTable, Queue, Requests, Tables
from decider.api.openapi import failures
from decider.api.routes.partitions import LayoutView, layout_view
from decider.api.routes.tables import PropertyName, PropertyText
from decider.decide.signals_text import size
from decider.optimize import on_demand
from decider.optimize.on_demand import OptimizeCommand
from decider.optimize.partition_selector import label
from decider.optimize.run_terms import run_terms
from decider.requests.table_request import counted
from decider.web.base_model import RequestModel, ResponseModel, examples
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.planner import Plan
from shared.policy.levels import SizeLevels
from shared.queue.model import Band, Scope
from shared.table import PartitionColumn

MAX_PARTITIONS = 1_000
"""Maximum number of partitions in one request."""

MAX_ACTIONS = 20
"""Maximum number of actions in one request; a release has fewer."""

ModeName = Literal["levels", "minor", "major", "idle", "full"]

PriorityName = Literal["urgent", "high", "normal", "low"]


class OptimizeRequest(
    RequestModel,
    json_schema_extra=examples(
        {"partitions": ["dt=2026-01-01", {"dt": "2026-01-02", "country": None}], "priority": "high"},
        {"dry_run": True},
        {"mode": "full", "values": {"target-file-size": "256MiB"}},
    ),
):
    """Request to optimize a table now."""

    partitions: tuple[str | dict[str, str | None], ...] = Field(
        (),
        max_length=MAX_PARTITIONS,
        description="Partitions as `column=value` labels joined by `/`, or as objects; an omitted column matches all "
        "its values. Empty: the whole table.",
    )
    actions: tuple[str, ...] = Field(
        (), max_length=MAX_ACTIONS, description="Kinds of jobs, such as `compact` or `sort`. Empty: all."
    )
    mode: ModeName = Field(
        "levels",
        description="`levels`: as after a commit. `minor`: the same below the top level. `major`: on all levels, even "
        "where the table permits minor rewrites only. `idle`: merge all small files of a partition once. `full`: merge "
        "all files that are not full, and drop deleted rows.",
    )
    values: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=20,
        description="Property values for this run, such as `target-file-size`; a commit to the partition before the "
        "job starts brings back the table's own, and of two requests with different values for one version either may "
        "win. A value without effect is an error.",
    )
    priority: PriorityName = Field("urgent", description="Priority of the jobs; `urgent` runs first.")
    dry_run: bool = Field(default=False, description="Plan on the live snapshot without changing anything.")
    force: bool = Field(
        default=False,
        description="Ignore the tolerance and `enabled=false`, and rewrite files whose paths engines spell "
        "differently. The promotion rule still applies, except in the modes `idle` and `full`.",
    )


class RequestedJobView(ResponseModel):
    """A job created by the request."""

    id: str = Field(description="Job id.")
    action: str = Field(description="Kind of job.")
    partition_key: str = Field(description="Partition key: physical column names and values as in the table's log.")
    partition_label: str = Field(description="Partition label.")
    outcome: str = Field(
        description="`queued`: new job. `merged`: merged into the waiting job. `rerun`: follows the running job."
    )
    predicted_bytes: int = Field(description="Predicted bytes to rewrite.")
    predicted_files_replaced: int = Field(description="Predicted number of replaced files.")


class OptimizeResponse(ResponseModel):
    """Jobs created by a request, or the reason for none."""

    version: int = Field(description="Table version that the decision is based on.")
    jobs: tuple[RequestedJobView, ...] = Field(description="Jobs.")
    ignored: str | None = Field(
        description="Reason for changing nothing: `nothing_to_do`, `already_running`, `disabled` or `refused`; null "
        "otherwise."
    )
    message: str = Field(description="Human-readable outcome.")
    paused: Scope | None = Field(
        description="What is paused so that the jobs wait until it is resumed: `queue`, `band`, `tenant` or `table`."
    )
    reasons: dict[str, int] = Field(description="Number of partitions for which an action has no job, by reason.")
    running: int = Field(description="Number of partitions with a running rewrite.")
    running_jobs: tuple[str, ...] = Field(description="Ids of the jobs that rewrite them.")
    remaining: int = Field(description="Jobs beyond the limit of one request; repeat the request for them.")


class PlannedGroup(ResponseModel):
    """Input files that are rewritten together."""

    files: int = Field(description="Number of input files.")
    bytes: int = Field(description="Total input size in bytes.")
    largest_bytes: int = Field(description="Size of the largest input in bytes.")
    mode: str = Field(description="`minor` stays below the top level, `major` does not; `sort` sorts full files.")


class PartitionPlan(ResponseModel):
    """Planned rewrite of one partition."""

    action: str = Field(description="Kind of job that would run it.")
    partition_key: str = Field(description="Partition key: physical column names and values as in the table's log.")
    partition_label: str = Field(description="Partition label.")
    groups: tuple[PlannedGroup, ...] = Field(description="File groups.")
    files_replaced: int = Field(description="Number of input files.")
    files_removed: int = Field(description="Predicted decrease of the file count.")
    bytes: int = Field(description="Bytes to rewrite.")
    entropy_removed_bytes2: float = Field(description="Predicted decrease of the squared shortfall, in bytes squared.")
    before: LayoutView = Field(description="Current layout.")
    after: LayoutView = Field(description="Predicted layout.")


class OptimizePlan(ResponseModel):
    """Plan of a dry run; nothing is changed."""

    version: int = Field(description="Table version that the plan is based on.")
    ignored: str | None = Field(description="Reason for an empty plan; null otherwise.")
    message: str = Field(description="Human-readable plan.")
    partitions: int = Field(description="Number of partitions to rewrite.")
    files_replaced: int = Field(description="Number of input files.")
    files_removed: int = Field(description="Predicted decrease of the file count.")
    bytes: int = Field(description="Bytes to rewrite.")
    plans: tuple[PartitionPlan, ...] = Field(
        description="Plans by partition and action, largest decrease of the file count first."
    )
    remaining: int = Field(description="Number of plans that are not listed.")
    reasons: dict[str, int] = Field(description="Number of partitions for which an action has no plan, by reason.")


router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.post(
    "/{name}/optimize",
    status_code=202,
    response_model=OptimizeResponse,
    summary="Optimize a table",
    responses=failures(400, 404, 409, 413, 422, 502)
    | {200: {"model": OptimizePlan, "description": "Plan of a dry run; nothing was changed."}},
)
async def optimize_table(
    table: KnownTable, asked: OptimizeRequest, tables: Tables, requests: Requests, queue: Queue, http: Http
) -> OptimizeResponse | JSONResponse:
    """Enqueue a job for every eligible partition, or return the plan with `dry_run`.

    A request that changes nothing returns the reason in `ignored`. In the modes `levels`, `minor` and `major` the
    promotion rule applies, so repeated requests do not rewrite more; `force` ignores only the tolerance and
    `enabled=false`. Follow the jobs by `GET /v1/jobs/{job}?wait_s=30`, or by `GET /v1/stream?about=jobs&job=...`.
    """
    terms = run_terms(asked.mode, asked.values, force=asked.force)
    request = OptimizeCommand(tuple(asked.partitions), tuple(asked.actions), Band[asked.priority.upper()], terms)
    async with http.expensive_calls.optimize.turn():
        if asked.dry_run:
            plan = dry_run_view(await requests.on_demand.dry_run(table, request))
            return JSONResponse(plan.model_dump(mode="json"))
        made = await requests.on_demand.optimize(table, request)
        if not made.jobs:
            return optimized_view(made, None)
        group = (await tables.states.groups([table.id]))[table.id]
        return optimized_view(made, await queue.of(group).admin.paused_by(request.band, table))


MAX_PLANS = 200
"""Partitions that a dry run lists with their groups; the totals count all of them."""


def optimized_view(answer: on_demand.OptimizeResult, paused: Scope | None = None) -> OptimizeResponse:
    """Show the jobs that a request led to, and what is paused so that they wait."""
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
    more = f" {counted(answer.left_out, 'job')} beyond the limit; repeat the request." if answer.left_out else ""
    more += f" The {paused} is paused, so nothing runs until it is resumed." if paused else ""
    return OptimizeResponse(
        version=answer.version,
        jobs=jobs,
        ignored=answer.ignored,
        message=_why_ignored(answer) or f"{counted(len(jobs), 'job')}.{more}",
        paused=paused,
        reasons={str(reason): count for reason, count in answer.reasons.items()},
        running=len(answer.running),
        running_jobs=answer.running,
        remaining=answer.left_out,
    )


def dry_run_view(found: on_demand.DryRun) -> OptimizePlan:
    """Show what a rewrite would do."""
    plans = found.plans
    replaced = sum(plan.files_replaced for plan in plans)
    removed = sum(plan.files_removed for plan in plans)
    total = sum(plan.bytes for plan in plans)
    partitions = len({plan.partition for plan in plans})
    message = (
        f"{counted(replaced, 'file')} would be replaced, the file count would decrease by {removed}, and "
        f"{size(total)} would be read in {counted(partitions, 'partition')}."
    )
    effect = _why_ignored(found) or " ".join((message, *_in_words(_answers(found.reasons))))
    return OptimizePlan(
        version=found.version,
        ignored=found.ignored,
        message=" ".join((effect, *(f"{note}." for note in found.notes))),
        partitions=partitions,
        files_replaced=replaced,
        files_removed=removed,
        bytes=total,
        plans=tuple(_plan_view(plan, found.policy.size_levels, found.columns) for plan in plans[:MAX_PLANS]),
        remaining=max(0, len(plans) - MAX_PLANS),
        reasons={str(reason): count for reason, count in found.reasons.items()},
    )


_HINTS: Mapping[DecisionReason, str] = {
    Reason.NO_PROMOTION: "The mode `idle` would merge them now.",
    Reason.WITHIN_TOLERANCE: "With `force`, the tolerance is ignored.",
}
"""The mode or option that would act on partitions that a request leaves as they are."""

_NO_ANSWERS = frozenset({Reason.SWITCHED_OFF, Reason.NOT_FOR_FORMAT})
"""Reasons of actions that are not expected to run, unless no other action was requested."""


def _why_ignored(answer: on_demand.OptimizeResult | on_demand.DryRun) -> str:
    """Return why a request changes nothing, with the reason of each partition and what would act; empty: it does."""
    if answer.ignored is None:
        return ""
    refused = () if answer.refusal is None else (answer.refusal.message,)
    return " ".join((answer.ignored.message, *refused, *_in_words(_answers(answer.reasons) or answer.reasons)))


def _answers(reasons: Mapping[DecisionReason, int]) -> Mapping[DecisionReason, int]:
    return {reason: count for reason, count in reasons.items() if reason not in _NO_ANSWERS}


def _in_words(reasons: Mapping[DecisionReason, int]) -> tuple[str, ...]:
    """Return sentences on how many partitions are left as they are, why, and what would act on them."""
    return tuple(
        f"{counted(count, 'partition')}: {reason.message} {_HINTS.get(reason, '')}".rstrip()
        for reason, count in reasons.items()
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
