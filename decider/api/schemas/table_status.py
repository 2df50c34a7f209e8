"""Schemas of one table's status."""

from datetime import datetime

from pydantic import ConfigDict, Field

from decider.api.schemas.calibration import CALIBRATION_EXAMPLE, TableCalibration
from decider.api.schemas.decision_records import DECISION_EXAMPLE, DecisionRecord
from decider.api.schemas.jobs import JobSummary
from decider.api.schemas.partition_layout import PARTITION_EXAMPLE, LayoutView
from decider.api.schemas.policy_in_force import PolicyInForce
from decider.api.schemas.tables import TABLE_EXAMPLE, TableRefusal, TableView
from decider.web.base_model import ResponseModel


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
                    **TABLE_EXAMPLE,
                    "state": {
                        "version": 41,
                        "applied_at": "2026-01-01T14:03:07Z",
                        "committed_at": "2026-01-01T14:03:06Z",
                        "lag_s": 0.9,
                        "rebuilds": 0,
                        "rebuild_reason": "first read of the table",
                    },
                    "paused": False,
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
    paused: bool = Field(description="Whether jobs of the table are not dispatched.")
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
