"""Schemas of the queue: depth, dispatch order and administration."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from decider.web.base_model import RequestModel, ResponseModel

SCOPE: dict[str, Any] = {"scope": "tenant", "name": "sales"}


class NextJobView(ResponseModel):
    """A job to be dispatched next, with the reason for its position."""

    id: str = Field(description="Job id.")
    table: str = Field(description="Table id.")
    tenant: str = Field(description="Tenant.")
    band: str = Field(description="`urgent`, `high`, `normal`, `low` or `background`.")
    priority: int = Field(
        description="Priority within the band, 0 (first) to 31 (last): benefit per cost, a factor of two per step."
    )
    reason: str = Field(
        description="`strict_priority`, `fair_share`, `starvation_guard` (a weighted band after a run of strict "
        "claims), or `background` (no other band has a job that may start)."
    )
    virtual_start: tuple[int, int, int] = Field(
        description="Virtual start times of band and tenant, and the table's turn in milliseconds since 1970: the "
        "arrival of its best job, later by `aging` for each step of priority and by what the table owes. The smallest "
        "is served first."
    )
    enqueued_at: datetime | None = Field(description="Time of the first enqueue.")
    message: str = Field(description="Human-readable reason.")


NEXT_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
    "table": "sales-orders-1f0c7a52",
    "tenant": "sales",
    "band": "normal",
    "priority": 5,
    "reason": "fair_share",
    "virtual_start": [4000, 2000, 1767312187000],
    "enqueued_at": "2026-01-01T14:03:07Z",
    "message": "Band normal and tenant sales are furthest below fair share; its table sales-orders-1f0c7a52 is next.",
}


class QueueView(ResponseModel):
    """Current state of the queue."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "depth": {"queued": 3, "delayed": 0, "leased": 1, "quarantined": 0},
                    "oldest_wait_s": 12.5,
                    "bands": {"normal": 3},
                    "tenants": {"sales": 3},
                    "tables": {"sales-orders-1f0c7a52": 3},
                    "table_names": {"sales-orders-1f0c7a52": "sales.orders"},
                    "oldest_waits_s": {
                        "bands": {"normal": 12.5},
                        "tenants": {"sales": 12.5},
                        "tables": {"sales-orders-1f0c7a52": 12.5},
                    },
                    "slots": 4,
                    "occupancy_window_s": 3600.0,
                    "occupancy": {"tenants": {"sales": 0.31}, "tables": {"sales-orders-1f0c7a52": 0.31}},
                    "quota_occupation": {"tenants": {}, "tables": {"sales-orders-1f0c7a52": 0.62}},
                    "settings": {"limit:table|sales-orders-1f0c7a52": "2"},
                    "next": [NEXT_EXAMPLE],
                }
            ]
        },
    )

    depth: dict[str, int] = Field(description="Number of jobs by state.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued job in seconds.")
    bands: dict[str, int] = Field(description="Queued jobs by band.")
    tenants: dict[str, int] = Field(description="Queued jobs by tenant.")
    tables: dict[str, int] = Field(description="Queued jobs by table id.")
    table_names: dict[str, str] = Field(description="Names of the tables that this answer mentions, by id.")
    oldest_waits_s: dict[str, dict[str, float]] = Field(
        description="Wait of the oldest queued job in seconds, by `bands`, `tenants` and `tables`, where known."
    )
    slots: int = Field(description="Total slots of all actors, the base of quotas; 0 if unknown.")
    occupancy_window_s: float = Field(
        description="Length of the window that `occupancy` covers, in seconds; at most an hour."
    )
    occupancy: dict[str, dict[str, float]] = Field(
        description="Share of slot time used, by `tenants` and `tables`; empty while `slots` is 0."
    )
    quota_occupation: dict[str, dict[str, float]] = Field(
        description="Slot time used as a share of the quota or limit, by `tenants` and `tables` that have one: near 1 "
        "with enough work, above 1 where a scope is oversold; empty while `slots` is 0."
    )
    settings: dict[str, str] = Field(description="Weights, limits and pauses (`!` marks a paused tenant or table).")
    next: tuple[NextJobView, ...] = Field(description="Next claims in order, assuming no arrivals and no completions.")


class PauseRequest(RequestModel):
    """Scope to pause or resume."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [SCOPE]})

    scope: Literal["queue", "band", "tenant", "table"] = Field(description="Kind of scope.")
    name: str = Field("", max_length=300, description="Band 0 to 4, tenant, or table id; empty for the queue.")


class ShareRequest(RequestModel):
    """Weight, limit or quota of a scope; omitted fields stay unchanged."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [SCOPE | {"weight": 2.0}]})

    scope: Literal["band", "tenant", "table"] = Field(description="Kind of scope.")
    name: str = Field(max_length=300, description="Band 0 to 4, tenant, or table id.")
    weight: float | None = Field(None, description="Weight, 0.01 to 100; default 1.")
    limit: int | None = Field(None, ge=0, description="Maximum number of concurrent jobs; 0 removes the limit.")
    quota_percent: int | None = Field(None, ge=1, le=100, description="Maximum share of all slots, in percent.")


class AdminResult(ResponseModel):
    """Result of an administrative request."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"message": "Tenant sales is paused."}]})

    message: str = Field(description="Human-readable outcome.")


class AuditReport(ResponseModel):
    """Result of an audit."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"keys_checked": 1200, "repaired": 0}]})

    keys_checked: int = Field(description="Number of keys checked.")
    repaired: int = Field(description="Number of repairs; 0 for a consistent queue.")


class MoveResult(ResponseModel):
    """Result of expediting or requeueing a job."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"state": "queued", "message": "The job is ready."}]}
    )

    state: str = Field(description="`queued`, or `leased` if the job is running.")
    message: str = Field(description="Human-readable outcome.")
