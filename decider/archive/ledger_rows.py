"""Archive rows of decisions: flat columns, and the record to recompute a decision from."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import structlog

from decider.decide import ledger
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.ledger import UnreadableRecord
from shared.partitions import partition_label
from shared.table import TableRef

LEDGER_SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("table_id", pa.string()),
        ("table_name", pa.string()),
        ("tenant", pa.string()),
        ("entry", pa.string()),
        ("version", pa.int64()),
        ("partition_key", pa.string()),
        ("partition_label", pa.string()),
        ("action", pa.string()),
        ("decision", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("outcome", pa.string()),
        ("files", pa.int64()),
        ("small_files", pa.int64()),
        ("bytes", pa.int64()),
        ("mse_bytes2", pa.float64()),
        ("predicted_files_replaced", pa.int64()),
        ("predicted_files_removed", pa.int64()),
        ("predicted_bytes", pa.int64()),
        ("policy_version", pa.string()),
        ("record", pa.string()),
    ]
)
"""Columns of the ledger's archive, which is partitioned by `day` (UTC); sizes in bytes, MSE in bytes^2.

`entry` is the record's place in the stream of its table: with `table_id` it identifies a record.
"""

FURTHEST = """
SELECT
  table_id,
  max(lpad(split_part(entry, '-', 1), 20, '0') || '-' || lpad(split_part(entry, '-', 2), 20, '0')) AS entry
FROM archive GROUP BY table_id
"""
"""Finds each table's last entry in the archive itself: batches take a stream in its order, without holes. The numbers
of an entry are filled up with zeros, because they are compared as text; Redis reads them so as well."""

ESCAPED = "backslashreplace"
"""Error handler for bytes that are not UTF-8."""

log = structlog.get_logger()


def kept(fields: Mapping[bytes, bytes]) -> tuple[str, str]:
    """Return record and outcome of a ledger entry as they are stored; of an entry without them, all of its text."""
    texts = {name.decode(errors=ESCAPED): value.decode(errors=ESCAPED) for name, value in fields.items()}
    return texts.get("record") or json.dumps(texts), texts.get("out", "")


def placed_ms(entry: str) -> int:
    """Return when a record was stored, by the server's clock, in milliseconds since 1970."""
    return int(entry.partition("-")[0])


def ledger_row(
    table: TableRef, entry: str, record: str, outcome: str, actions: ActionRegistry = ACTIONS
) -> dict[str, Any]:
    """Return the row of one ledger record; of one that this release cannot read, its readable fields.

    Such a row has no verdict and no reason, but the record for a release that can.
    """
    made = ledger.read(record, outcome, placed_ms(entry), actions)
    at = datetime.fromtimestamp(made.at_ms / 1000, UTC)
    row: dict[str, Any] = {
        "day": at.date(),
        "at": at,
        "table_id": table.id,
        "table_name": table.name,
        "tenant": table.tenant,
        "entry": entry,
        "version": made.version,
        "partition_key": made.partition,
        "partition_label": None if made.partition is None else partition_label(made.partition),
        "outcome": outcome,
        "record": record,
    }
    if isinstance(made, UnreadableRecord):
        log.warning("ledger_record_unreadable", table=table.name, entry=entry, error=made.problem)
        return row
    predicted = {
        f"predicted_{name}": int(made.predicted[name])
        for name in ("files_replaced", "files_removed", "bytes")
        if name in made.predicted
    }
    return (
        row
        | predicted
        | {
            "action": made.action,
            "decision": str(made.verdict),
            "reason": str(made.reason),
            "message": made.message,
            "files": made.state.files,
            "small_files": made.state.small_files,
            "bytes": made.state.bytes,
            "mse_bytes2": float(made.state.mse()),
            "policy_version": made.policy.version,
        }
    )
