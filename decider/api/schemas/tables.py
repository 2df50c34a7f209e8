"""Schemas of tables: registration, update and list."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from decider.web.base_model import RequestModel, ResponseModel, TableName

Tenant = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
PropertyName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9.-]*$", max_length=100)]
PropertyText = Annotated[str, Field(max_length=2_000)]

MAX_WAIT_S = 20.0
"""Longest wait for the first read of a table: below the time after which clients give an answer up."""


class TableRegistration(RequestModel):
    """A table to register."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"location": "s3://lake/sales/orders", "name": "sales.orders"}]},
    )

    location: str = Field(
        min_length=1,
        max_length=2048,
        description="Table location: an absolute path or a URI (file, s3, gs, az, abfss).",
    )
    name: TableName | None = Field(None, description="Display name; default: the id.")
    tenant: Tenant | None = Field(
        None, description="Tenant; tenants share the actors fairly. Default: derived from the location."
    )

    properties: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=100,
        description="Properties that override the table's own properties.",
    )

    paused: bool = Field(default=False, description="Whether its jobs wait until the table is resumed.")
    wait_s: float = Field(
        0.0,
        ge=0,
        le=MAX_WAIT_S,
        description="Seconds to wait for the first read of the table. A new location without a table is then "
        "rejected and not registered.",
    )


class TableUpdate(RequestModel):
    """Changes to a registered table; omitted fields stay unchanged."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"name": "sales.orders_v2", "properties": {"lakewright.priority": "high"}}]},
    )

    name: TableName | None = Field(None, description="New display name.")
    tenant: Tenant | None = Field(None, description="New tenant; waiting jobs keep their tenant.")
    properties: dict[PropertyName, PropertyText] | None = Field(
        None, max_length=100, description="All property overrides; overrides that are not listed are removed."
    )


TABLE_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52",
    "name": "sales.orders",
    "location": "s3://lake/sales/orders",
    "tenant": "default",
    "properties": {},
    "declared": False,
}

_LISTED_EXAMPLE: dict[str, Any] = {**TABLE_EXAMPLE, "version": 41, "refusal": None, "error": ""}


class TableView(ResponseModel):
    """A registered table."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [TABLE_EXAMPLE]})

    id: str = Field(description="Stable id, derived from the location.")
    name: str = Field(description="Display name; the id if none was given.")
    location: str = Field(description="Canonical URI of the table.")
    tenant: str = Field(description="Tenant.")
    properties: dict[str, str] = Field(
        description="Property overrides; they take precedence over the table's own properties."
    )
    declared: bool = Field(description="Whether the tables file declares it; calls then do not change it.")


class TableRefusal(ResponseModel):
    """Reason why a table is not optimized; checked again with every event and sweep."""

    at: datetime = Field(description="Time of the last check.")
    since: datetime = Field(description="Time since which the table has been refused without interruption.")
    missing: bool = Field(description="Whether there is no table at the location; its jobs and state are deleted.")
    code: str = Field(
        description="`unsafe_feature`, `unknown_protocol`, `qbeast` or `unreadable_log`; empty if the log is damaged "
        "or missing."
    )
    reason: str = Field(description="Reason and remedy.")


class TableReading(ResponseModel):
    """Result of the first read of a table."""

    version: int | None = Field(description="Table version that was read; null if the read did not finish in time.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    error: str = Field(description="Error of a temporary failure; empty otherwise.")


class ListedTable(TableView):
    """A registered table and the result of its last read."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_LISTED_EXAMPLE]})

    version: int | None = Field(description="Table version of the rolling state; null if the table was not read yet.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    error: str = Field(description="Error of this decider's last read if it failed temporarily; empty otherwise.")


class RegisteredTable(TableView):
    """A registered table and the result of its first read."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{**TABLE_EXAMPLE, "reading": {"version": 41, "refusal": None, "error": ""}}]},
    )

    reading: TableReading | None = Field(description="Result of the first read; null if `wait_s` is 0.")


class TableList(ResponseModel):
    """A page of tables, ordered by name."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "tables": [_LISTED_EXAMPLE],
                    "next_page_token": None,
                }
            ]
        },
    )

    tables: tuple[ListedTable, ...] = Field(description="Tables.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")
