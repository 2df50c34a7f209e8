"""Schemas of table discovery."""

from datetime import datetime

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class RootProgress(ResponseModel):
    """Progress of the scan of one root."""

    root: str = Field(description="Allowed root.")
    state: str = Field(description="`waiting` before the first scan, then `running`, `done` or `failed`.")
    path: str = Field(description="Path below the root that was scanned last; any decider resumes from here.")
    folders: int = Field(description="Folders scanned.")
    tables: int = Field(description="Tables found.")
    new_tables: int = Field(description="Tables found that were not registered.")
    started_at: datetime | None = Field(description="Start of the scan.")
    updated_at: datetime | None = Field(description="Last progress.")
    finished_at: datetime | None = Field(description="End of the scan; null while it runs or is requested.")
    unreadable_folders: int = Field(description="Folders skipped because they could not be read.")
    error: str = Field(
        description="Error that ended the scan, or the reason for the last skipped folder; empty otherwise."
    )


class Discoveries(ResponseModel):
    """Table discovery below every allowed root."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "interval_s": 3600.0,
                    "requests_per_s": 10.0,
                    "max_depth": 5,
                    "roots": [
                        {
                            "root": "s3://lake",
                            "state": "running",
                            "path": "sales/orders",
                            "folders": 120,
                            "tables": 84,
                            "new_tables": 2,
                            "started_at": "2026-01-01T14:00:00Z",
                            "updated_at": "2026-01-01T14:00:24Z",
                            "finished_at": None,
                            "unreadable_folders": 0,
                            "error": "",
                        }
                    ],
                }
            ]
        },
    )

    interval_s: float = Field(description="Seconds between two scans; 0 disables discovery.")
    requests_per_s: float = Field(description="Maximum object store requests per second during a scan.")
    max_depth: int = Field(description="Maximum folder depth below a root.")
    roots: tuple[RootProgress, ...] = Field(description="Allowed roots.")
