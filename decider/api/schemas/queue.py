"""The queue over the wire: who waits, who is next and why, and the levers."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from decider.web.base_model import RequestModel, ResponseModel

LEVER: dict[str, Any] = {"scope": "tenant", "name": "sales"}


class NextJobView(ResponseModel):
    """One of the next jobs, and why it is where it is."""

    id: str = Field(description="Id of the job.")
    table: str = Field(description="Id of its table.")
    tenant: str = Field(description="Whose table it is.")
    band: str = Field(description="`urgent`, `high`, `normal` or `low`.")
    priority: int = Field(description="Priority within the band, 0 first to 9 last.")
    reason: str = Field(
        description="Its band is `strict`, next by its `share`, or let in by the `guard` against strict."
    )
    virtual_start: tuple[int, int, int] = Field(
        description="Start tags of band, tenant and table; the least is served."
    )
    enqueued_at: datetime | None = Field(description="When it was first asked for.")
    message: str = Field(description="The same in words.")


NEXT_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
    "table": "sales-orders-1f0c7a52",
    "tenant": "sales",
    "band": "normal",
    "priority": 5,
    "reason": "fair_share",
    "virtual_start": [4000, 2000, 1000],
    "enqueued_at": "2026-01-01T14:03:07Z",
    "message": "Band normal, tenant sales and table sales-orders-1f0c7a52 are furthest below their share.",
}


class QueueView(ResponseModel):
    """The queue as it is."""

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
                    "oldest_waits_s": {
                        "bands": {"normal": 12.5},
                        "tenants": {"sales": 12.5},
                        "tables": {"sales-orders-1f0c7a52": 12.5},
                    },
                    "slots": 4,
                    "occupancy_window_s": 3600.0,
                    "occupancy": {"tenants": {"sales": 0.31}, "tables": {"sales-orders-1f0c7a52": 0.31}},
                    "settings": {"limit:table|sales-orders-1f0c7a52": "2"},
                    "next": [NEXT_EXAMPLE],
                }
            ]
        },
    )

    depth: dict[str, int] = Field(description="Jobs by state.")
    oldest_wait_s: float = Field(description="How long the oldest queued job has been waiting, in seconds.")
    bands: dict[str, int] = Field(description="Queued jobs by band.")
    tenants: dict[str, int] = Field(description="Queued jobs by tenant.")
    tables: dict[str, int] = Field(description="Queued jobs by table id.")
    oldest_waits_s: dict[str, dict[str, float]] = Field(
        description="Wait of the oldest queued job in seconds, by `bands`, `tenants`, `tables`, where a look finds it."
    )
    slots: int = Field(description="All slots of the actors, of which quotas are shares; 0 if nobody has said it.")
    occupancy_window_s: float = Field(description="How far back `occupancy` reaches, in seconds; an hour where it can.")
    occupancy: dict[str, dict[str, float]] = Field(
        description="Share of all slots' time in that time, by `tenants` and `tables`; empty while `slots` is 0."
    )
    settings: dict[str, str] = Field(description="Weights, limits and pauses (`!` marks a paused tenant or table).")
    next: tuple[NextJobView, ...] = Field(description="The next claims in order, if nothing arrived and nothing ended.")


class PauseRequest(RequestModel):
    """What is paused or resumed."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [LEVER]})

    scope: Literal["queue", "band", "tenant", "table"] = Field(description="What it is.")
    name: str = Field("", max_length=300, description="Band 0 to 3, tenant, or table id; empty for the queue.")


class ShareRequest(RequestModel):
    """A share: a weight, or a limit, or both; what is left out stays."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [LEVER | {"weight": 2.0}]})

    scope: Literal["band", "tenant", "table"] = Field(description="What it is.")
    name: str = Field(max_length=300, description="Band 0 to 3, tenant, or table id.")
    weight: float | None = Field(None, description="Share relative to its siblings, 0.01 to 100; 1 is the default.")
    limit: int | None = Field(None, ge=0, description="Jobs at once at most; 0 lifts the limit.")
    quota_percent: int | None = Field(None, ge=1, le=100, description="The same as a share of all slots, in percent.")


class AdminResult(ResponseModel):
    """What a lever did."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"message": "Tenant sales is paused."}]})

    message: str = Field(description="What is so now.")


class AuditReport(ResponseModel):
    """What an audit found."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"keys_checked": 1200, "repaired": 0}]})

    keys_checked: int = Field(description="Keys that were looked at.")
    repaired: int = Field(description="Things that were mended; 0 on a sound queue.")


class MoveResult(ResponseModel):
    """Where a promoted or requeued job is now."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"state": "queued", "message": "The job is ready now."}]}
    )

    state: str = Field(description="`queued`, or `leased` if it runs already.")
    message: str = Field(description="The same in words.")
