"""Schemas of on-demand optimization: request, jobs, and the plan of a dry run."""

from typing import Literal

from pydantic import ConfigDict, Field

from decider.api.schemas.partition_layout import LayoutView
from decider.api.schemas.tables import PropertyName, PropertyText
from decider.web.base_model import RequestModel, ResponseModel

MAX_PARTITIONS = 1_000
"""Maximum number of partitions in one request."""

MAX_ACTIONS = 20
"""Maximum number of actions in one request; a release has fewer."""

ModeName = Literal["levels", "minor", "major", "idle", "full"]

PriorityName = Literal["urgent", "high", "normal", "low"]


class OptimizeRequest(RequestModel):
    """Request to optimize a table now."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {"partitions": ["dt=2026-01-01", {"dt": "2026-01-02", "country": None}], "priority": "high"},
                {"dry_run": True},
                {"mode": "full", "values": {"target-file-size": "256MiB"}},
            ]
        },
    )

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

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "jobs": [
                        {
                            "id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
                            "action": "compact",
                            "partition_key": '{"dt":"2026-01-01"}',
                            "partition_label": "dt=2026-01-01",
                            "outcome": "queued",
                            "predicted_bytes": 12582912,
                            "predicted_files_replaced": 12,
                        }
                    ],
                    "ignored": None,
                    "message": "1 job.",
                    "reasons": {"no_promotion": 29},
                    "running": 0,
                    "remaining": 0,
                }
            ]
        },
    )

    version: int = Field(description="Table version that the decision is based on.")
    jobs: tuple[RequestedJobView, ...] = Field(description="Jobs.")
    ignored: str | None = Field(
        description="Reason for changing nothing: `nothing_to_do`, `already_running`, `disabled` or `refused`; null "
        "otherwise."
    )
    message: str = Field(description="Human-readable outcome.")
    reasons: dict[str, int] = Field(description="Number of partitions for which an action has no job, by reason.")
    running: int = Field(description="Number of partitions with a running rewrite.")
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

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "ignored": None,
                    "message": "12 files would be replaced, the file count would decrease by 11, and 12.0 MiB "
                    "would be read in 1 partition.",
                    "partitions": 1,
                    "files_replaced": 12,
                    "files_removed": 11,
                    "bytes": 12582912,
                    "plans": [],
                    "remaining": 0,
                    "reasons": {"no_promotion": 29},
                }
            ]
        },
    )

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
