"""Ad-hoc requests over the wire: what is asked for, the jobs it led to, or the plan of a dry run."""

from typing import Literal

from pydantic import ConfigDict, Field

from decider.api.schemas.tables import LayoutView
from decider.web.base_model import RequestModel, ResponseModel

MAX_PARTITIONS = 1_000
"""Partitions that one request may name; whoever wants more means the table."""

PriorityName = Literal["urgent", "high", "normal", "low"]


class OptimizeRequest(RequestModel):
    """A wish for a rewrite now."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {"partitions": ["dt=2026-01-01", {"dt": "2026-01-02", "country": None}], "priority": "high"},
                {"dry_run": True},
            ]
        },
    )

    partitions: tuple[str | dict[str, str | None], ...] = Field(
        (),
        max_length=MAX_PARTITIONS,
        description="Partitions, as `column=value` labels joined by `/` or as objects; a column left out means all its "
        "values. None named: the whole table.",
    )
    priority: PriorityName = Field("urgent", description="How it stands to other jobs; `urgent` goes first.")
    dry_run: bool = Field(default=False, description="Only plan on the live snapshot, and change nothing.")
    force: bool = Field(
        default=False,
        description="Set aside the tolerance and `enabled=false`. The promotion rule, which bounds the bytes "
        "rewritten, always holds.",
    )


class RequestedJobView(ResponseModel):
    """A job that the request led to."""

    id: str = Field(description="The job's id.")
    partition_key: str = Field(
        description="Key of the cell: its partition values by column, as the table's log spells them."
    )
    partition_label: str = Field(description="The partition as people write it.")
    outcome: str = Field(
        description="`queued`: new. `merged`: joined the job that was waiting. `rerun`: follows the running one."
    )
    predicted_bytes: int = Field(description="Bytes expected to be rewritten.")
    predicted_files_replaced: int = Field(description="Files expected to be replaced.")


class OptimizeResponse(ResponseModel):
    """The jobs that a request led to, or why there are none."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "jobs": [
                        {
                            "id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
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

    version: int = Field(description="Version of the table that the request was decided on.")
    jobs: tuple[RequestedJobView, ...] = Field(description="The jobs.")
    ignored: str | None = Field(
        description="Why the request changed nothing: `nothing_to_do`, `already_running`, `disabled`; null if it did."
    )
    message: str = Field(description="The outcome in words.")
    reasons: dict[str, int] = Field(description="Cells that got no job, by reason.")
    running: int = Field(description="Cells whose rewrite is running already.")
    remaining: int = Field(description="Cells beyond the bound of one request; ask again when these are done.")


class PlannedGroup(ResponseModel):
    """Files that would become one file."""

    files: int = Field(description="Input files.")
    bytes: int = Field(description="Their total size in bytes.")
    largest_bytes: int = Field(description="Size of the largest input in bytes.")
    mode: str = Field(description="`minor` stays below the top level, `major` does not.")


class PartitionPlan(ResponseModel):
    """What would be done to one cell."""

    partition_key: str = Field(
        description="Key of the cell: its partition values by column, as the table's log spells them."
    )
    partition_label: str = Field(description="The partition as people write it.")
    groups: tuple[PlannedGroup, ...] = Field(description="The file groups, each one output file.")
    files_replaced: int = Field(description="Input files over all groups.")
    files_removed: int = Field(description="Predicted decrease of the number of files.")
    bytes: int = Field(description="Bytes to rewrite.")
    entropy_removed_bytes2: float = Field(description="Predicted decrease of the squared shortfall, bytes squared.")
    before: LayoutView = Field(description="The cell as it is.")
    after: LayoutView = Field(description="The cell as it is predicted.")


class OptimizePlan(ResponseModel):
    """The plan of a dry run; nothing was changed."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "ignored": None,
                    "message": "12 files would be replaced and 11 of them removed, reading 12582912 bytes in 1 cell.",
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

    version: int = Field(description="Version of the table that was planned on.")
    ignored: str | None = Field(description="Why nothing would be done; null if something would.")
    message: str = Field(description="The plan in words.")
    partitions: int = Field(description="Cells with work.")
    files_replaced: int = Field(description="Input files over all cells.")
    files_removed: int = Field(description="Predicted decrease of the number of files over all cells.")
    bytes: int = Field(description="Bytes to rewrite over all cells.")
    plans: tuple[PartitionPlan, ...] = Field(description="The cells with work, those that lose most files first.")
    remaining: int = Field(description="Cells with work beyond those listed.")
    reasons: dict[str, int] = Field(description="Cells without work, by reason.")
