"""Schemas of the list of all tables with their figures."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.api.schemas.tables import TableRefusal
from decider.web.base_model import ResponseModel

ROW_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52",
    "name": "sales.orders",
    "tenant": "sales",
    "condition": "waiting",
    "version": 41,
    "files": 120,
    "bytes": 1073741824,
    "small_files": 96,
    "rms_shortfall": 0.83,
    "committed_at": "2026-01-01T14:03:06Z",
    "rewritten_at": "2026-01-01T13:40:12Z",
    "jobs_waiting": 2,
    "jobs_running": 0,
    "refusal": None,
}


class TableRowView(ResponseModel):
    """One table with the figures of its state; null where it was not read yet."""

    id: str = Field(description="Table id.")
    name: str = Field(description="Table name.")
    tenant: str = Field(description="Tenant.")
    condition: str = Field(
        description="`refused`, `unread`, `disabled`, `failing` (a job is quarantined), `running`, `waiting`, "
        "`backing_off` after a failure or conflict, or `idle`."
    )
    version: int | None = Field(description="Table version of the state.")
    files: int | None = Field(description="Number of live files.")
    bytes: int | None = Field(description="Total size in bytes.")
    small_files: int | None = Field(description="Number of files below the full size.")
    rms_shortfall: float | None = Field(
        description="Root of the entropy as a share of the target: 0 is optimal, 1 is worst."
    )
    committed_at: datetime | None = Field(description="Time of the newest applied commit, by the writer's clock.")
    rewritten_at: datetime | None = Field(description="Time of the newest applied Lakewright commit.")
    jobs_waiting: int = Field(description="Number of queued, delayed and quarantined jobs.")
    jobs_running: int = Field(description="Number of running jobs.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")


class TableRows(ResponseModel):
    """A part of a sorted and filtered list of tables."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "rows": [ROW_EXAMPLE],
                    "offset": 0,
                    "matching": 1,
                    "total": 12,
                    "complete": True,
                    "conditions": {"waiting": 1},
                    "tenants": {"sales": 1},
                }
            ]
        },
    )

    rows: tuple[TableRowView, ...] = Field(description="Rows from `offset` on.")
    offset: int = Field(description="Position of the first row.")
    matching: int = Field(description="Number of tables that match the search and the filters.")
    total: int = Field(description="Number of registered tables.")
    complete: bool = Field(description="Whether the figures of all tables have been read; if not, repeat the request.")
    conditions: dict[str, int] = Field(description="Number of matching tables by condition, whatever the `condition`.")
    tenants: dict[str, int] = Field(description="Number of matching tables by tenant, largest first, at most 100.")
