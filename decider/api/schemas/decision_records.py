"""Schemas of decisions."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


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
