"""Decisions about a table, skips included, from its ledger."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from decider.api.dependencies import Http, KnownTable, Limit, Tables
from decider.api.openapi import failures
from decider.api.routes.refused_files import RefusedFilesView, refused_files
from decider.api.routes.tables import TableRefusal, now_refused
from decider.api.services import TableServices
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from decider.optimize.partition_selector import find_partition, label, named_values
from decider.store.tables.table_state import TableState
from decider.web.base_model import ResponseModel
from shared.table import PartitionColumn, TableRef

router = APIRouter(prefix="/v1/tables", tags=["tables"])


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


class DecisionList(ResponseModel):
    """Decisions about a table, newest first, and what is refused of it now, which no decision leads to a job for."""

    decisions: tuple[DecisionRecord, ...] = Field(description="Decisions.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    refused_files: tuple[RefusedFilesView, ...] = Field(
        description="Files that actors refused and that no job is queued for; of the first 20 partitions with any."
    )


UNREADABLE = "unreadable"
"""Verdict and reason of a record that this release cannot read, as one of a newer release may be."""


def decision_view(record: LedgerRecord | UnreadableRecord, columns: Sequence[PartitionColumn]) -> DecisionRecord:
    """Show one entry of the ledger; of one that this release cannot read, its readable fields and its text."""
    at = datetime.fromtimestamp(record.at_ms / 1000, UTC)
    if isinstance(record, UnreadableRecord):
        return DecisionRecord(
            at=at,
            at_ms=record.at_ms,
            version=record.version,
            action=record.action,
            partition_key=record.partition,
            partition_label=None if record.partition is None else label(record.partition, columns),
            partition={} if record.partition is None else named_values(record.partition, columns),
            decision=UNREADABLE,
            reason=UNREADABLE,
            reason_text="This release cannot read the record.",
            message=record.message,
            outcome=record.outcome,
            record=record.text,
        )
    return DecisionRecord(
        at=at,
        at_ms=record.at_ms,
        version=record.version,
        action=record.action,
        partition_key=record.partition,
        partition_label=label(record.partition, columns),
        partition=named_values(record.partition, columns),
        decision=record.verdict,
        reason=record.reason,
        reason_text=record.reason.message,
        message=record.message,
        outcome=record.outcome,
        files=record.state.files,
        small_files=record.state.small_files,
        mse_bytes2=float(record.state.mse()),
        policy_version=record.policy.version,
        predicted={name: float(value) for name, value in record.predicted.items()},
    )


@router.get("/{name}/decisions", summary="List decisions", responses=failures(404, 422))
async def list_decisions(
    table: KnownTable,
    tables: Tables,
    http: Http,
    limit: Limit = 50,
    partition: Annotated[
        str | None,
        Query(
            max_length=20_000, description="Partition label; without it, every partition.", examples=["dt=2026-01-01"]
        ),
    ] = None,
    at: Annotated[
        AwareDatetime | None,
        Query(
            description="Return the decisions effective at this time, one for each partition and action.",
            examples=["2026-01-01T14:03:00Z"],
        ),
    ] = None,
) -> DecisionList:
    """List decisions, skips included, newest first; with `at`, those effective then for each partition and action."""
    state = await tables.states.state(table.id)
    columns = state.metadata.partition_columns if state else ()
    async with http.expensive_calls.table_reads.turn():
        key = (
            None
            if partition is None
            else await find_partition(
                partition, (one async for one, _ in tables.states.iterate_partitions(table.id)), columns
            )
        )
        if at is None:
            found = await tables.ledgers.newest(table.id, limit=limit, partition=key)
        else:
            found = await tables.ledgers.in_force(table.id, int(at.timestamp() * 1000), limit=limit, partition=key)
    refusal, files = await _refused_now(table, state, tables)
    return DecisionList(
        decisions=tuple(decision_view(record, columns) for record in found), refusal=refusal, refused_files=files
    )


async def _refused_now(
    table: TableRef, state: TableState | None, tables: TableServices
) -> tuple[TableRefusal | None, tuple[RefusedFilesView, ...]]:
    noted = await tables.registry.refusal(table.id)
    if state is None:
        return now_refused(noted, None, None), ()
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    return now_refused(noted, state, in_force.refusal), await refused_files(table, state, in_force.policy, tables)
