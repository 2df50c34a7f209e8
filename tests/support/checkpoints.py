"""Checkpoints of Delta logs as Parquet, written by tests, and what one holds whoever wrote it."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    {"storageType": pa.string(), "pathOrInlineDv": pa.string(), "offset": pa.int32(), "cardinality": pa.int64()}
)
ADD = {
    "path": pa.string(),
    "partitionValues": TEXTS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "tags": TEXTS,
    "deletionVector": VECTOR,
}
STATS = {"stats": pa.string()}
HEAD = {
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": pa.list_(pa.string()),
            "writerFeatures": pa.list_(pa.string()),
        }
    ),
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "schemaString": pa.string(),
            "partitionColumns": pa.list_(pa.string()),
            "configuration": TEXTS,
        }
    ),
    "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64()}),
    "checkpointMetadata": pa.struct({"version": pa.int64()}),
}


def checkpoint(
    rows: Sequence[Mapping[str, Any]],
    *,
    stats: Mapping[str, pa.DataType] = STATS,
    with_head: bool = True,
    row_group_size: int = 3,
) -> bytes:
    """Return the file of these actions; without its head it has files alone, as a sidecar has."""
    schema = pa.schema({"add": pa.struct({**ADD, **stats}), **(HEAD if with_head else {})})
    buffer = io.BytesIO()
    table = pa.Table.from_pylist([{"add": None, **row} for row in rows], schema=schema)
    pq.write_table(table, buffer, row_group_size=row_group_size)
    return buffer.getvalue()


ONLY_DELTAS = ("stats_parsed", "partitionValues_parsed", "maxRowIndex")
"""Fields that Delta's job adds: copies of what the others say, for its own data skipping."""


def plain(value: Any) -> Any:
    """An action without what is null, and without the fields that only Delta's job adds."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None and name not in ONLY_DELTAS}
    return value


def lines(actions: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(plain(one), sort_keys=True, default=str) for one in actions)


def checkpoint_rows(table: Path) -> list[str]:
    """The actions of the newest checkpoint of one file, each that is not null."""
    newest = max((table / "_delta_log").glob("*.checkpoint.parquet"))
    rows = pq.read_table(newest).to_pylist(maps_as_pydicts="strict")
    return lines([{name: one for name, one in row.items() if one is not None} for row in rows])
