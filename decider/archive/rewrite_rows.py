"""Archive rows of rewrites: replaced files, written files, and duration."""

from typing import Any

import pyarrow as pa

from decider.formats.rewrites import FileStats, Rewrite, index_fields
from decider.store.stored_values import moment
from shared.table import TableRef

_STATS = pa.struct(
    [
        ("num_files", pa.int64()),
        ("bytes", pa.int64()),
        ("element_count", pa.int64()),
        ("levels", pa.list_(pa.int64())),
        ("file_levels", pa.list_(pa.int64())),
        ("num_cubes", pa.int64()),
        ("num_blocks", pa.int64()),
        ("avg_num_blocks_per_file", pa.float64()),
        ("avg_block_element_count_per_file", pa.float64()),
    ]
)

OPTIMIZATIONS_SCHEMA = pa.schema(
    [
        ("table_id", pa.string()),
        ("table_name", pa.string()),
        ("version", pa.int64()),
        ("optimization_name", pa.string()),
        ("index_selection", pa.string()),
        ("revision_id", pa.int64()),
        ("write_id", pa.string()),
        ("job", pa.string()),
        ("partition_key", pa.string()),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("finished_at", pa.timestamp("us", tz="UTC")),
        ("process_time_ms", pa.int64()),
        ("target_bytes", pa.int64()),
        ("input", _STATS),
        ("output", _STATS),
        ("deleted_rows", pa.int64()),
        ("entropy_removed_bytes2", pa.float64()),
    ]
)
"""Columns as in `GET /v1/tables/{name}/optimizations`, without the files' paths; `table_id`, `write_id` name a row."""


def optimization_row(table: TableRef, event: Rewrite) -> dict[str, Any]:
    """Return the row of one rewrite."""
    mark = event.mark
    return {
        "table_id": table.id,
        "table_name": table.name,
        "version": event.version,
        "optimization_name": mark.mode,
        "index_selection": mark.index_selection,
        "revision_id": event.revision_id,
        "write_id": mark.write_id,
        "job": mark.origin.job,
        "partition_key": mark.partition,
        "started_at": moment(mark.started_ms),
        "finished_at": moment(event.finished_ms),
        "process_time_ms": event.process_time_ms,
        "target_bytes": mark.size_levels.target_bytes if mark.size_levels else None,
        "input": _stats(event.inputs),
        "output": _stats(event.outputs),
        "deleted_rows": event.deleted_rows,
        "entropy_removed_bytes2": None if event.entropy_removed is None else float(event.entropy_removed),
    }


def _stats(stats: FileStats) -> dict[str, Any]:
    levels = None if stats.levels is None else list(stats.levels)
    counts = {"num_files": stats.num_files, "bytes": stats.bytes, "element_count": stats.rows, "levels": levels}
    return {**counts, **index_fields(stats)}
