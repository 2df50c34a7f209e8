"""Schemas of a table's layout over time."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel

POINT_EXAMPLE: dict[str, Any] = {
    "version": 41,
    "at": "2026-01-01T14:03:06Z",
    "rewrite": False,
    "files_added": 1,
    "files_removed": 0,
    "files": 120,
    "small_files": 96,
    "bytes": 1073741824,
    "rms_shortfall": 0.83,
}


class LayoutPointView(ResponseModel):
    """File layout of a table after one commit."""

    version: int = Field(description="Table version.")
    at: datetime | None = Field(description="Commit time, by the writer's clock.")
    rewrite: bool = Field(description="Whether the commit changed no data, as a rewrite does.")
    files_added: int = Field(description="Number of files that the commit added.")
    files_removed: int = Field(description="Number of files that the commit removed.")
    files: int = Field(description="Number of live files.")
    small_files: int = Field(description="Number of files below the full size.")
    bytes: int = Field(description="Total size in bytes.")
    rms_shortfall: float = Field(
        description="Root of the entropy as a share of the target: 0 is optimal, 1 is worst; by the present target."
    )


class LayoutHistory(ResponseModel):
    """File layout over the newest commits."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"version": 41, "points": [POINT_EXAMPLE], "complete": True}]}
    )

    version: int | None = Field(description="Table version of the last point; null before the first read.")
    points: tuple[LayoutPointView, ...] = Field(description="Points, oldest first.")
    complete: bool = Field(
        description="Whether all requested commits are covered; false where the log was cleaned up, or a commit does "
        "not record sizes."
    )
