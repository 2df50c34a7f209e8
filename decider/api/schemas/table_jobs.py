"""Schemas of requests about whole tables: vacuum, checkpoint, reclaim, deduplicate, cluster and rewrite manifests."""

from typing import Literal

from pydantic import ConfigDict, Field

from decider.web.base_model import RequestModel, ResponseModel

MAX_HOURS = 24 * 3_660
"""Maximum retention of one request: ten years."""

LISTED_FILES = 100_000
"""Files that the response of a dry run lists; the totals count all."""


class VacuumRequest(RequestModel):
    """Request to delete files that no version inside the retention needs."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"dry_run": True, "orphans": True}, {"retain_hours": 24, "force": True}]},
    )

    dry_run: bool = Field(default=False, description="List what would be deleted without changing anything.")
    orphans: bool = Field(default=False, description="Also list the store for files that no commit names.")
    retain_hours: int | None = Field(
        default=None, ge=0, le=MAX_HOURS, description="Retention of this run in hours; null: that of the table."
    )
    force: bool = Field(default=False, description="Allow `retain_hours` below the table's retention.")


class ReclaimRequest(RequestModel):
    """Request to delete all history outside the retention, immediately and permanently."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"confirm": "sales.orders", "retain_hours": 24}]},
    )

    confirm: str = Field(max_length=500, description="The table's name, as a confirmation.")
    retain_hours: int | None = Field(
        default=None,
        ge=0,
        le=MAX_HOURS,
        description="Hours of history that stay, even below the table's retention; null: its whole retention.",
    )


class DeduplicateRequest(RequestModel):
    """Request to remove rows for which a newer row of the same key exists."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"dry_run": True}]},
    )

    dry_run: bool = Field(default=False, description="Count the rows in a job that changes nothing.")


class ClusterRequest(RequestModel):
    """Request to cluster a table with `CLUSTER BY` by its format's own OPTIMIZE."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"dry_run": True}]},
    )

    dry_run: bool = Field(default=False, description="Count what would be rewritten without changing anything.")


class IndexRequest(RequestModel):
    """Request to optimize the index of a table."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"revision": 1, "bytes_per_iter": 500_000_000}]},
    )

    revision: int | None = Field(
        default=None, ge=1, lt=2**31, description="Revision to optimize; default: that of the table's properties."
    )
    bytes_per_iter: int | None = Field(
        default=None, ge=0, lt=2**63, description="Bytes of one iteration, 0 for its first group; default: as revision."
    )
    revision_rewrite: Literal[False] = Field(
        default=False, description="Whole revisions are never rewritten: leveled compaction takes what is eligible."
    )


class ClusterDryRun(ResponseModel):
    """Dry run of clustering; nothing is changed."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "message": "12 files with 48000 bytes are not clustered; a run would rewrite 208000 bytes.",
                    "due": True,
                    "reason": "unclustered_bytes",
                    "unclustered_files": 12,
                    "unclustered_bytes": 48_000,
                    "clustered_bytes": 160_000,
                    "rewritten_bytes": 208_000,
                }
            ]
        },
    )

    version: int = Field(description="Table version that was counted.")
    message: str = Field(description="Human-readable outcome.")
    due: bool = Field(description="Whether an automatic run is due.")
    reason: str = Field(description="Machine-readable reason.")
    unclustered_files: int = Field(description="Files outside of Z-cubes.")
    unclustered_bytes: int = Field(description="Their size in bytes.")
    clustered_bytes: int = Field(description="Size of the files in Z-cubes, in bytes.")
    rewritten_bytes: int = Field(description="Bytes that a run would read and write, at most.")


class ManifestsRequest(RequestModel):
    """Request to rewrite the manifests of an Iceberg table."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"dry_run": True}]},
    )

    dry_run: bool = Field(default=False, description="Count the manifests without changing anything.")


class ManifestsDryRun(ResponseModel):
    """Dry run of a rewrite of manifests; nothing is changed."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 1_767_225_600_000,
                    "message": "240 manifests with 1680000 bytes; 1 would be enough.",
                    "due": True,
                    "reason": "many_manifests",
                    "manifests": 240,
                    "bytes": 1_680_000,
                    "needed": 1,
                    "mean_bytes": 7_000,
                }
            ]
        },
    )

    version: int = Field(description="Table version that was counted.")
    message: str = Field(description="Human-readable outcome.")
    due: bool = Field(description="Whether a rewrite is due by `rewrite-manifests-at`.")
    reason: str = Field(description="Machine-readable reason.")
    manifests: int = Field(description="Manifests of the newest snapshot.")
    bytes: int = Field(description="Their size in bytes.")
    needed: int = Field(description="Manifests of the target size that hold as many bytes.")
    mean_bytes: int = Field(description="Mean size of a manifest in bytes.")


class TableJobView(ResponseModel):
    """A job created by the request."""

    id: str = Field(description="Job id.")
    action: str = Field(description="Kind of job.")
    outcome: str = Field(
        description="`queued`: new job. `merged`: merged into the waiting job. `rerun`: follows the running job."
    )


class TableJobResponse(ResponseModel):
    """Jobs created by a request, or the reason for none."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "jobs": [
                        {
                            "id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.vacuum",
                            "action": "vacuum",
                            "outcome": "queued",
                        }
                    ],
                    "message": "1 job.",
                }
            ]
        },
    )

    version: int = Field(description="Table version that the decision is based on.")
    jobs: tuple[TableJobView, ...] = Field(description="Jobs.")
    message: str = Field(description="Human-readable outcome.")


class DeletionView(ResponseModel):
    """A file that would be deleted."""

    name: str = Field(description="Name below the table's folder.")
    bytes: int = Field(description="Size in bytes.")
    orphan: bool = Field(description="Whether no commit names it.")


class VacuumDryRun(ResponseModel):
    """Dry run of a vacuum; nothing is changed."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": 41,
                    "message": "2 files with 5210 bytes would be deleted.",
                    "removed_before_ms": 1_767_225_600_000,
                    "files": 2,
                    "bytes": 5_210,
                    "orphan_files": 1,
                    "orphan_bytes": 1_210,
                    "deletions": [
                        {"name": "day=1/part-00000-6d1e.snappy.parquet", "bytes": 4_000, "orphan": False},
                        {"name": "day=2/part-00001-90af.snappy.parquet", "bytes": 1_210, "orphan": True},
                    ],
                }
            ]
        },
    )

    version: int = Field(description="Table version that the plan is based on.")
    message: str = Field(description="Human-readable plan.")
    removed_before_ms: int = Field(description="Files removed before this moment go, in milliseconds since 1970.")
    files: int = Field(description="Number of files that would be deleted.")
    bytes: int = Field(description="Their size in bytes.")
    orphan_files: int = Field(description="Number of them that no commit names.")
    orphan_bytes: int = Field(description="Their size in bytes.")
    deletions: tuple[DeletionView, ...] = Field(description="The files; at most 100,000 are listed.")
