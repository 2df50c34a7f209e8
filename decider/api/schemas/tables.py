"""Schemas of tables: registration, status, partitions and decisions."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from decider.api.schemas.calibration import CALIBRATION_EXAMPLE, TableCalibration
from decider.api.schemas.jobs import JobSummary
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
        description="Seconds to wait for the first read of the table. A new location where no table lies is then "
        "refused and not registered.",
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


class TableView(ResponseModel):
    """A registered table."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "sales-orders-1f0c7a52",
                    "name": "sales.orders",
                    "location": "s3://lake/sales/orders",
                    "tenant": "default",
                    "properties": {},
                }
            ]
        },
    )

    id: str = Field(description="Stable id, derived from the location.")
    name: str = Field(description="Display name; the id if none was given.")
    location: str = Field(description="Canonical URI of the table.")
    tenant: str = Field(description="Tenant.")
    properties: dict[str, str] = Field(
        description="Property overrides; they take precedence over the table's own properties."
    )


_TABLE_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52",
    "name": "sales.orders",
    "location": "s3://lake/sales/orders",
    "tenant": "default",
    "properties": {},
}
_LISTED_EXAMPLE: dict[str, Any] = {**_TABLE_EXAMPLE, "version": 41, "refusal": None, "error": ""}


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
        json_schema_extra={"examples": [{**_TABLE_EXAMPLE, "reading": {"version": 41, "refusal": None, "error": ""}}]},
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


class PolicyValue(ResponseModel):
    """One value of a table's policy and its source."""

    property: str = Field(description="Table property.")
    value: bool | int | float | str | None = Field(description="Value in effect; null means off.")
    unit: str = Field(description="Unit: bytes, seconds, files, jobs, slots, ratio or share; empty if none.")
    source: str = Field(description="`request` (override), `table`, `tenant`, `service` or `default`.")
    set_by: str = Field(description="Property or variable that sets the value; `default` if none does.")
    description: str = Field(description="Description.")


class PolicyIssue(ResponseModel):
    """A property that cannot be applied. A blocking issue keeps the last valid policy in effect."""

    property: str = Field(description="Property.")
    value: str = Field(description="Configured value.")
    reason: str = Field(description="Reason.")
    blocking: bool = Field(
        description="Whether the issue keeps the last valid policy in effect; otherwise the property is ignored."
    )


class PolicyInForce(ResponseModel):
    """Policy in effect."""

    version: str = Field(description="Digest of all values; decisions refer to it.")
    values: tuple[PolicyValue, ...] = Field(description="Values.")
    issues: tuple[PolicyIssue, ...] = Field(description="Properties that cannot be applied.")
    notes: tuple[str, ...] = Field(description="Further notes.")


class SizeLevelView(ResponseModel):
    """Files of one size class."""

    level: int = Field(description="Level; 0 to 5 are small files, 6 is full.")
    from_bytes: int = Field(description="Minimum size in bytes.")
    below_bytes: int | None = Field(description="Minimum size of the next level in bytes; null for the last.")
    files: int = Field(description="Number of files.")
    bytes: int = Field(description="Total size in bytes.")


class LayoutView(ResponseModel):
    """File layout of a table or partition, from the incremental state."""

    files: int = Field(description="Number of live files.")
    bytes: int = Field(description="Total size in bytes.")
    small_files: int = Field(description="Number of files below the full size.")
    small_bytes: int = Field(description="Total size of small files in bytes.")
    deletion_vector_files: int = Field(description="Number of files with a deletion vector.")
    deleted_rows: int = Field(description="Rows hidden by deletion vectors.")
    mse_bytes2: float = Field(description="Entropy: mean squared shortfall against the target, in bytes squared.")
    rms_shortfall: float = Field(description="Root of the entropy as a share of the target: 0 is optimal, 1 is worst.")
    levels: tuple[SizeLevelView, ...] = Field(description="Files per level.")


class PartitionView(ResponseModel):
    """One partition: files that may be merged with each other."""

    partition_key: str = Field(description="Partition key: physical column names and values as in the table's log.")
    partition_label: str = Field(description="Partition label.")
    partition: dict[str, str | None] = Field(description="Partition values by column.")
    layout: LayoutView = Field(description="File layout.")
    decision: str = Field(description="Decision for the current state: `skip` or `enqueue`.")
    reason: str = Field(description="Machine-readable reason.")
    reason_text: str = Field(description="Human-readable reason.")


PARTITION_EXAMPLE: dict[str, Any] = {
    "partition_key": '{"dt":"2026-01-01"}',
    "partition_label": "dt=2026-01-01",
    "partition": {"dt": "2026-01-01"},
    "layout": {
        "files": 12,
        "bytes": 12582912,
        "small_files": 12,
        "small_bytes": 12582912,
        "deletion_vector_files": 0,
        "deleted_rows": 0,
        "mse_bytes2": 1.7732923532771328e16,
        "rms_shortfall": 0.9921875,
        "levels": [{"level": 3, "from_bytes": 262144, "below_bytes": 2097152, "files": 12, "bytes": 12582912}],
    },
    "decision": "enqueue",
    "reason": "eligible",
    "reason_text": "The expected gain exceeds the tolerance, and a file group reaches a higher level.",
}


class PartitionList(ResponseModel):
    """A page of partitions, ordered by key."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"version": 41, "partitions": [PARTITION_EXAMPLE], "next_page_token": None}]},
    )

    version: int = Field(description="Table version of the state.")
    partitions: tuple[PartitionView, ...] = Field(description="Partitions.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")


class DecisionRecord(ResponseModel):
    """One decision of the ledger with its input.

    For a record that this release cannot read, the numbers are null and `record` holds its text.
    """

    at: datetime = Field(description="Decision time, by the decider's clock.")
    at_ms: int = Field(description="Decision time in milliseconds since 1970-01-01 UTC.")
    version: int | None = Field(description="Table version of the commit that led to it.")
    action: str = Field(description="Kind of job.")
    partition_key: str | None = Field(
        description="Partition key: physical column names and values as in the table's log."
    )
    partition_label: str | None = Field(description="Partition label.")
    partition: dict[str, str | None] = Field(description="Partition values by column.")
    decision: str = Field(
        description="`skip`, `enqueue`, `defer` (the job waits for the table's own commands), or `unreadable`."
    )
    reason: str = Field(description="Machine-readable reason.")
    reason_text: str = Field(description="Human-readable reason.")
    message: str = Field(description="Human-readable decision with its numbers.")
    outcome: str = Field(description="Outcome of the enqueue: `queued`, `merged`, `rerun`; empty for a skip.")
    files: int | None = Field(default=None, description="Number of files in the partition.")
    small_files: int | None = Field(default=None, description="Number of small files.")
    mse_bytes2: float | None = Field(default=None, description="Entropy of the partition, in bytes squared.")
    policy_version: str | None = Field(default=None, description="Digest of the policy.")
    predicted: dict[str, float] = Field(default={}, description="Predicted effect of the rewrite; empty for a skip.")
    record: str | None = Field(default=None, description="Stored record, if it cannot be read.")


DECISION_EXAMPLE: dict[str, Any] = {
    "at": "2026-01-01T14:03:07Z",
    "at_ms": 1767276187000,
    "version": 41,
    "action": "compact",
    "partition_key": '{"dt":"2026-01-01"}',
    "partition_label": "dt=2026-01-01",
    "partition": {"dt": "2026-01-01"},
    "decision": "skip",
    "reason": "no_promotion",
    "reason_text": "No group of files reaches the next level yet; a rewrite now would be repeated later.",
    "message": "Version 41, dt=2026-01-01: skip. No group of files reaches the next level yet; a rewrite now would "
    "be repeated later. The partition has 5 files, 5 of them small.",
    "outcome": "",
    "files": 5,
    "small_files": 5,
    "mse_bytes2": 1.8e16,
    "policy_version": "9ad1c2f0",
    "predicted": {},
}


class DecisionList(ResponseModel):
    """Decisions about a table, newest first."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"decisions": [DECISION_EXAMPLE]}]})

    decisions: tuple[DecisionRecord, ...] = Field(description="Decisions.")


class ManualRun(ResponseModel):
    """Outcome of the latest run requested through the property `use.optimization.type`."""

    requested: str = Field(description="Property value, with the bytes per iteration if given.")
    version: int = Field(description="Table version of the request.")
    at: datetime = Field(description="Time of the request.")
    outcome: str = Field(description="Machine-readable outcome.")
    message: str = Field(description="Human-readable outcome.")
    jobs: int = Field(description="Number of jobs queued.")


class CursorView(ResponseModel):
    """Incremental state of a table."""

    version: int = Field(description="Table version of the state.")
    applied_at: datetime | None = Field(description="Time at which the commit was applied.")
    committed_at: datetime | None = Field(description="Commit time, by the writer's clock.")
    lag_s: float | None = Field(description="Seconds from commit to application, over both clocks.")
    rebuilds: int = Field(description="Number of rebuilds of the state from the log.")
    rebuild_reason: str = Field(description="Reason for the latest rebuild.")


class PartitionContention(ResponseModel):
    """Recent MERGE, UPDATE and DELETE activity in a partition."""

    partition_key: str = Field(description="Partition key; `*` means all partitions.")
    partition_label: str = Field(description="Partition label.")
    busy_ratio: float = Field(
        description="Share of the last hour with DML, 0 to 1; above `max-write-contention` jobs are deferred."
    )


class TableStatus(TableView):
    """Status of a table."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "sales-orders-1f0c7a52",
                    "name": "sales.orders",
                    "location": "s3://lake/sales/orders",
                    "tenant": "default",
                    "properties": {},
                    "state": {
                        "version": 41,
                        "applied_at": "2026-01-01T14:03:07Z",
                        "committed_at": "2026-01-01T14:03:06Z",
                        "lag_s": 0.9,
                        "rebuilds": 0,
                        "rebuild_reason": "first read of the table",
                    },
                    "partitions": 30,
                    "eligible_partitions": 1,
                    "layout": PARTITION_EXAMPLE["layout"],
                    "policy": {
                        "version": "9ad1c2f0",
                        "values": [
                            {
                                "property": "lakewright.target-file-size",
                                "value": 134217728,
                                "unit": "bytes",
                                "source": "default",
                                "set_by": "default",
                                "description": "target size of data files",
                            }
                        ],
                        "issues": [],
                        "notes": [],
                    },
                    "last_decision": DECISION_EXAMPLE,
                    "last_job": None,
                    "refusal": None,
                    "manual_run": None,
                    "counters": {"commits": 42, "pruned_by_levels": 37},
                    "write_contention": [
                        {"partition_key": '{"dt":"2026-01-01"}', "partition_label": "dt=2026-01-01", "busy_ratio": 0.42}
                    ],
                    "calibration": CALIBRATION_EXAMPLE,
                }
            ]
        },
    )

    state: CursorView | None = Field(description="Incremental state; null before the first read of the log.")
    partitions: int = Field(description="Number of partitions with files.")
    eligible_partitions: int = Field(description="Number of partitions eligible for a rewrite.")
    layout: LayoutView = Field(description="File layout over all partitions.")
    policy: PolicyInForce = Field(description="Policy in effect with the source of each value.")
    last_decision: DecisionRecord | None = Field(description="Latest decision.")
    last_job: JobSummary | None = Field(description="Latest job, if it exists or its run is still stored.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    manual_run: ManualRun | None = Field(description="Latest run requested by a property; null if none.")
    counters: dict[str, int] = Field(description="Funnel counts of the table.")
    write_contention: tuple[PartitionContention, ...] = Field(
        description="Partitions with MERGE, UPDATE or DELETE in the last hour, busiest first."
    )
    calibration: TableCalibration = Field(
        description="Predicted and measured cost, and the correction for the next job."
    )
