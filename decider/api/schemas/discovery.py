"""The search for tables over the wire."""

from datetime import datetime

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class RootProgress(ResponseModel):
    """How far the search below one root has come."""

    root: str = Field(description="The allowed root.")
    state: str = Field(description="`waiting` before the first walk, then `running`, `done` or `failed`.")
    path: str = Field(description="Path below the root that was looked at last; from here any decider goes on.")
    folders: int = Field(description="Folders looked at.")
    tables: int = Field(description="Tables found.")
    new_tables: int = Field(description="Tables that were not registered before.")
    started_at: datetime | None = Field(description="When the walk began.")
    updated_at: datetime | None = Field(description="When it last came further.")
    finished_at: datetime | None = Field(description="When it ended; null while it runs or is called for.")
    unreadable_folders: int = Field(description="Folders that were left out because they could not be read.")
    error: str = Field(description="Why it failed, or why the last folder was left out; empty if neither.")


class Discoveries(ResponseModel):
    """The search for tables below every allowed root."""

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

    interval_s: float = Field(description="Seconds between two walks; 0 is never.")
    requests_per_s: float = Field(description="Requests to the store per second while walking.")
    max_depth: int = Field(description="Folders below a root in which tables are looked for.")
    roots: tuple[RootProgress, ...] = Field(description="Every allowed root.")
