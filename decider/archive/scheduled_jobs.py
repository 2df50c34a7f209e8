"""The scheduled jobs as a Delta table, for SQL: one row for each job that waits or runs, replaced as a whole."""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from decider.archive.delta_archive import PATIENCE, ArchiveSpec
from decider.store.stored_values import json_object, moment
from shared.errors import RetryableError
from shared.queue.records import JobView

APP = "lakewright.scheduled"
"""Series of replacements in the table's log."""

NOTE = "lakewright.scheduled"
"""Key in commitInfo with the digest of the rows, so that equal ones are not written again."""

KEPT = {"delta.logRetentionDuration": "interval 1 days", "delta.deletedFileRetentionDuration": "interval 1 days"}
"""Properties of the table: yesterday's queue is of no use, and there may be a version every minute."""

KEPT_HOURS = 24
"""Hours for which replaced files stay for readers of older versions."""

VACUUM_EVERY = 100
"""Replacements after which files that no query reads any more are deleted: some hours of a busy queue."""

SCHEDULED_SCHEMA = pa.schema(
    [
        ("job", pa.string()),
        ("table_id", pa.string()),
        ("table_name", pa.string()),
        ("kind", pa.string()),
        ("partition_key", pa.string()),
        ("state", pa.string()),
        ("tenant", pa.string()),
        ("band", pa.string()),
        ("priority", pa.int64()),
        ("reason", pa.string()),
        ("version", pa.int64()),
        ("attempts", pa.int64()),
        ("predicted_bytes", pa.int64()),
        ("predicted_files_removed", pa.int64()),
        ("actor", pa.string()),
        ("enqueued_at", pa.timestamp("us", tz="UTC")),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("ready_at", pa.timestamp("us", tz="UTC")),
        ("error", pa.string()),
    ]
)
"""Columns as in `GET /v1/jobs`; `job` names a row."""


def scheduled_row(job: JobView) -> dict[str, Any]:
    """Return the row of a job; of a payload that cannot be read the row has what the queue knows."""
    payload = json_object(job.payload)
    predicted = payload.get("predicted")
    predicted = predicted if isinstance(predicted, Mapping) else {}
    return {
        "job": job.id,
        "table_id": job.key.table,
        "table_name": str(payload.get("name", job.key.table)),
        "kind": job.key.kind,
        "partition_key": job.key.partition,
        "state": job.state.value,
        "tenant": job.tenant,
        "band": job.band.name.lower(),
        "priority": job.priority,
        "reason": str(payload.get("reason", "")),
        "version": job.version,
        "attempts": job.attempts,
        "predicted_bytes": _number(predicted.get("bytes")),
        "predicted_files_removed": _number(predicted.get("files_removed")),
        "actor": job.worker,
        "enqueued_at": moment(job.enqueued_at_ms),
        "started_at": moment(job.started_ms),
        "ready_at": moment(job.ready_at_ms),
        "error": job.error,
    }


class ScheduledJobsTable:
    """One Delta table whose newest version has the jobs of the last pass; safe beside other processes.

    kept_hours: how long replaced files stay at least, for readers of older versions.
    """

    def __init__(self, place: ArchiveSpec, *, kept_hours: int = KEPT_HOURS) -> None:
        self.place = place
        self.kept_hours = kept_hours

    async def replace(self, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Make these the rows of the table, unless they are; True if this call wrote them.

        Of two deciders that do it at once one writes. Raises RetryableError where the store does not take it.
        """
        ordered = sorted(rows, key=lambda row: str(row["job"]))
        return await asyncio.to_thread(self._replace, ordered)

    def _replace(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        data = pa.Table.from_pylist([dict(row) for row in rows], schema=self.place.schema)
        digest = hashlib.sha256(json.dumps(rows, default=str, sort_keys=True).encode()).hexdigest()
        try:
            table = self._opened()
            if table.history(1)[0].get(NOTE) == digest:
                return False
            number = (table.transaction_version(APP) or 0) + 1
            write_deltalake(
                table,
                data,
                mode="overwrite",
                commit_properties=CommitProperties(
                    custom_metadata={NOTE: digest}, max_commit_retries=0, app_transactions=[Transaction(APP, number)]
                ),
            )
            if number % VACUUM_EVERY == 0:
                self._opened().vacuum(self.kept_hours, dry_run=False, enforce_retention_duration=False)
        except CommitFailedError:
            return False  # Another decider replaced them meanwhile; the next pass looks again.
        except (DeltaError, OSError) as problem:
            first_line = str(problem).split("\n", 1)[0]
            raise RetryableError(f"cannot write the scheduled jobs to {self.place.location}: {first_line}") from problem
        return True

    def _opened(self) -> DeltaTable:
        is_local = self.place.location.startswith("file:")
        options = None if is_local else PATIENCE | dict(self.place.options)
        try:
            return DeltaTable(self.place.location, storage_options=options)
        except TableNotFoundError:
            DeltaTable.create(
                self.place.location, self.place.schema, mode="ignore", configuration=KEPT, storage_options=options
            )
            return DeltaTable(self.place.location, storage_options=options)


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
