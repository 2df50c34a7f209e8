"""Tables over the wire: registration, status, cells and decisions."""

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
    """A table to look after."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"location": "s3://lake/sales/orders", "name": "sales.orders"}]},
    )

    location: str = Field(
        min_length=1,
        max_length=2048,
        description="Where the table lies: an absolute path or a URI (file, s3, gs, az, abfss).",
    )
    name: TableName | None = Field(None, description="What to call it; without one, the id is the name.")
    tenant: Tenant | None = Field(
        None, description="Whose table it is: tenants share the actors fairly. Without one, its place says it."
    )

    properties: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=100,
        description="Properties that win over the table's own, for a table that you may not alter.",
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
    """What is to be different about a registered table; what is left out stays."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"name": "sales.orders_v2", "properties": {"lakewright.priority": "high"}}]},
    )

    name: TableName | None = Field(None, description="What to call it from now on.")
    tenant: Tenant | None = Field(None, description="Whose table it is from now on; waiting jobs keep their place.")
    properties: dict[PropertyName, PropertyText] | None = Field(
        None, max_length=100, description="All properties that win over the table's own; those not given are dropped."
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

    id: str = Field(description="Stable id, made from the location.")
    name: str = Field(description="Name in URLs; the id where none was given.")
    location: str = Field(description="Canonical URI of the table.")
    tenant: str = Field(description="Whose table it is.")
    properties: dict[str, str] = Field(description="Properties said at its registration; they win over its own.")


_TABLE_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52",
    "name": "sales.orders",
    "location": "s3://lake/sales/orders",
    "tenant": "default",
    "properties": {},
}
_LISTED_EXAMPLE: dict[str, Any] = {**_TABLE_EXAMPLE, "version": 41, "refusal": None, "error": ""}


class TableRefusal(ResponseModel):
    """Why a table is not looked after at present; it is tried again with every event and sweep."""

    at: datetime = Field(description="When it was last refused.")
    since: datetime = Field(description="Since when it has been refused without a break.")
    missing: bool = Field(
        description="Whether there is no table at its place: jobs were withdrawn, the state was dropped."
    )
    code: str = Field(
        description="Why: `unsafe_feature`, `unknown_protocol`, `qbeast`, `unreadable_log`; empty where the log is "
        "damaged or gone."
    )
    reason: str = Field(description="Why, and what to do.")


class TableReading(ResponseModel):
    """What the first read of a table found."""

    version: int | None = Field(description="Version that was read; null if none could be in time.")
    refusal: TableRefusal | None = Field(description="Why the table is not looked after; null if it is.")
    error: str = Field(description="Why reading it failed for the moment; empty if it did not.")


class ListedTable(TableView):
    """A registered table with what its last read found."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_LISTED_EXAMPLE]})

    version: int | None = Field(description="Version that its state stands for; null if it was not read yet.")
    refusal: TableRefusal | None = Field(description="Why the table is not looked after; null if it is.")
    error: str = Field(description="Why this decider's last read failed for the moment; empty if it did not.")


class RegisteredTable(TableView):
    """A table that was registered, with what its first read found."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{**_TABLE_EXAMPLE, "reading": {"version": 41, "refusal": None, "error": ""}}]},
    )

    reading: TableReading | None = Field(description="What the first read found; null where `wait_s` is 0.")


class TableList(ResponseModel):
    """A page of tables in the order of their names."""

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

    tables: tuple[ListedTable, ...] = Field(description="The tables.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last one.")


class PolicyValue(ResponseModel):
    """One value of a table's policy, and where it comes from."""

    property: str = Field(description="The table property that sets it.")
    value: bool | int | float | str | None = Field(description="The value in force; null is off.")
    unit: str = Field(description="Unit of the value: bytes, seconds, files, ratio; empty for a switch.")
    source: str = Field(description="`request` (at registration), `table`, `tenant`, `service` or `default`.")
    set_by: str = Field(description="The property or variable it was read from; `default` where nobody said anything.")
    description: str = Field(description="What it does.")


class PolicyIssue(ResponseModel):
    """A property that cannot be used; while there is one that `holds`, the last good policy stays in force."""

    property: str = Field(description="The property.")
    value: str = Field(description="What it says.")
    reason: str = Field(description="Why that cannot be used.")
    blocking: bool = Field(description="Whether it keeps the last good policy in force; else it is only ignored.")


class PolicyInForce(ResponseModel):
    """The policy that decisions are made under."""

    version: str = Field(description="Short digest of all values; decisions name it.")
    values: tuple[PolicyValue, ...] = Field(description="Every value.")
    issues: tuple[PolicyIssue, ...] = Field(description="Properties that cannot be used.")
    notes: tuple[str, ...] = Field(description="What the values alone do not say.")


class SizeLevelView(ResponseModel):
    """Files of one size class."""

    level: int = Field(description="0 to 5 are small files, 6 is full.")
    from_bytes: int = Field(description="Smallest size on this level, in bytes.")
    below_bytes: int | None = Field(description="Smallest size on the next level; null for the last.")
    files: int = Field(description="Number of files.")
    bytes: int = Field(description="Their total size in bytes.")


class LayoutView(ResponseModel):
    """How the files of a table or a cell are laid out, from the rolling state."""

    files: int = Field(description="Live files.")
    bytes: int = Field(description="Their total size in bytes.")
    small_files: int = Field(description="Files below the full size.")
    small_bytes: int = Field(description="Their total size in bytes.")
    deletion_vector_files: int = Field(description="Files with a deletion vector.")
    deleted_rows: int = Field(description="Rows that deletion vectors hide.")
    mse_bytes2: float = Field(description="Entropy: mean squared shortfall against the target, in bytes squared.")
    rms_shortfall: float = Field(description="Root of it as a share of the target: 0 is well laid out, 1 is dust.")
    levels: tuple[SizeLevelView, ...] = Field(description="Files per level.")


class PartitionView(ResponseModel):
    """One cell: the files of one partition, which may be merged with each other."""

    partition_key: str = Field(
        description="Key of the cell: its partition values by column, as the table's log spells them."
    )
    partition_label: str = Field(description="The partition as people write it.")
    partition: dict[str, str | None] = Field(description="Partition values by column.")
    layout: LayoutView = Field(description="Its files.")
    decision: str = Field(description="What would be decided about it now: `skip` or `enqueue`.")
    reason: str = Field(description="Why, as a stable word.")
    reason_text: str = Field(description="Why, in words.")


CELL_EXAMPLE: dict[str, Any] = {
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
    "reason_text": "Merging pays, and a group of files reaches a higher level than each of its inputs.",
}


class PartitionList(ResponseModel):
    """A page of a table's cells in the order of their keys."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"version": 41, "partitions": [CELL_EXAMPLE], "next_page_token": None}]},
    )

    version: int = Field(description="Version of the table that the states stand for.")
    partitions: tuple[PartitionView, ...] = Field(description="The cells.")
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last one.")


class DecisionRecord(ResponseModel):
    """One decision of the ledger, with the numbers it was made from.

    Of a record that this decider cannot read, such as one of a newer release, the numbers are null and `record` is its
    text.
    """

    at: datetime = Field(description="When it was made, by the decider's clock.")
    at_ms: int = Field(description="The same in milliseconds since 1970-01-01 UTC, as the ledger keeps it.")
    version: int | None = Field(description="Version of the table whose commit led to it.")
    partition_key: str | None = Field(
        description="Key of the cell: its partition values by column, as the table's log spells them."
    )
    partition_label: str | None = Field(description="The partition as people write it.")
    partition: dict[str, str | None] = Field(description="Partition values by column.")
    decision: str = Field(
        description="`skip`, `enqueue`, or `defer`: a job that waits for the table's own commands; `unreadable` where "
        "the record cannot be read."
    )
    reason: str = Field(description="Why, as a stable word.")
    reason_text: str = Field(description="Why, in words.")
    message: str = Field(description="The whole decision in words, with its numbers.")
    outcome: str = Field(
        description="What became of the job: `queued`, `merged`, `rerun`; empty where none was wanted."
    )
    files: int | None = Field(default=None, description="Files that the cell had.")
    small_files: int | None = Field(default=None, description="Small files among them.")
    mse_bytes2: float | None = Field(default=None, description="Entropy of the cell then, in bytes squared.")
    policy_version: str | None = Field(default=None, description="Digest of the policy it was made under.")
    predicted: dict[str, float] = Field(default={}, description="Predicted effect of the rewrite; empty for a skip.")
    record: str | None = Field(default=None, description="The record as it is kept, where it cannot be read.")


DECISION_EXAMPLE: dict[str, Any] = {
    "at": "2026-01-01T14:03:07Z",
    "at_ms": 1767276187000,
    "version": 41,
    "partition_key": '{"dt":"2026-01-01"}',
    "partition_label": "dt=2026-01-01",
    "partition": {"dt": "2026-01-01"},
    "decision": "skip",
    "reason": "no_promotion",
    "reason_text": "No group of files reaches the next level yet: rewriting now would only rewrite again later.",
    "message": "Version 41, dt=2026-01-01: skip. No group of files reaches the next level yet: rewriting now would "
    "only rewrite again later. The cell had 5 files, 5 of them small.",
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

    decisions: tuple[DecisionRecord, ...] = Field(description="The decisions.")


class ManualRun(ResponseModel):
    """What became of the last run that was asked for through the property `use.optimization.type`."""

    requested: str = Field(description="What the property said, with the bytes per iteration if they were given.")
    version: int = Field(description="Version at which that was seen.")
    at: datetime = Field(description="When it was seen.")
    outcome: str = Field(description="What became of it, as a stable word.")
    message: str = Field(description="What became of it, in words.")
    jobs: int = Field(description="Jobs that were queued for it.")


class CursorView(ResponseModel):
    """How far a table's log was read."""

    version: int = Field(description="Version that the state stands for.")
    applied_at: datetime | None = Field(description="When that version was folded into the state.")
    committed_at: datetime | None = Field(description="When that version was committed, by its writer's clock.")
    lag_s: float | None = Field(description="Seconds from that commit to its folding, over both clocks.")
    rebuilds: int = Field(description="How often the state was recounted from the log after the first time.")
    rebuild_reason: str = Field(description="Why it was last recounted.")


class PartitionContention(ResponseModel):
    """How much of the last hour MERGE, UPDATE and DELETE were at work in a cell."""

    partition_key: str = Field(description="Key of the cell; `*` stands for all cells.")
    partition_label: str = Field(description="The partition as people write it.")
    busy_ratio: float = Field(description="Share of the last hour, 0 to 1; above `max-write-contention` jobs wait.")


class TableStatus(TableView):
    """Everything that is known of one table."""

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
                        "rebuild_reason": "first sight of the table",
                    },
                    "partitions": 30,
                    "eligible_partitions": 1,
                    "layout": CELL_EXAMPLE["layout"],
                    "policy": {
                        "version": "9ad1c2f0",
                        "values": [
                            {
                                "property": "lakewright.target-file-size",
                                "value": 134217728,
                                "unit": "bytes",
                                "source": "default",
                                "set_by": "default",
                                "description": "size that files should reach",
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

    state: CursorView | None = Field(description="How far the log was read; null before the first look.")
    partitions: int = Field(description="Number of cells that hold files.")
    eligible_partitions: int = Field(description="Cells for which a rewrite would be decided now.")
    layout: LayoutView = Field(description="All cells together.")
    policy: PolicyInForce = Field(description="The policy in force, and where each value comes from.")
    last_decision: DecisionRecord | None = Field(description="The newest entry of the ledger.")
    last_job: JobSummary | None = Field(
        description="The job that was last asked for, if it lives or its run is still kept."
    )
    refusal: TableRefusal | None = Field(description="Why the table is not looked after; null if it is.")
    manual_run: ManualRun | None = Field(description="The last run asked for by a property; null if there was none.")
    counters: dict[str, int] = Field(description="The table's share of the funnel.")
    write_contention: tuple[PartitionContention, ...] = Field(
        description="Cells in which MERGE, UPDATE and DELETE were at work in the last hour, the hottest first."
    )
    calibration: TableCalibration = Field(description="Predicted against measured, and what follows for the next job.")
