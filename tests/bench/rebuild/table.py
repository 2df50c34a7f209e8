"""The log of a large table: a checkpoint as Spark writes it, and a commit of a thousand files on top of it.

There are no data files: a decider reads logs alone.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.delta_tables import PLAIN, metadata_of

FILES_IN_COMMIT = 1_000
ROWS_PER_GROUP = 100_000
_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_SCHEMA = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
                "tags": _TEXTS,
                "deletionVector": _VECTOR,
            }
        ),
    }
)


def write_table(folder: Path, *, files: int, partitions: int, seed: int) -> None:
    """Write the log of a table of so many files in so many partitions below a folder."""
    dice = random.Random(seed)
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    head = [{"protocol": PLAIN}, _metadata({})]
    held = max(0, files - FILES_IN_COMMIT)
    (log / f"{0:020d}.json").write_text(_lines(head))
    (log / f"{1:020d}.json").write_text(_lines([]))
    with pq.ParquetWriter(log / f"{1:020d}.checkpoint.parquet", _SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(head, schema=_SCHEMA))
        for start in range(0, held, ROWS_PER_GROUP):
            rows = [{"add": one} for one in _adds(dice, min(ROWS_PER_GROUP, held - start), partitions)]
            writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": held + 2}))
    body = _lines([{"add": one} for one in _adds(dice, files - held, partitions)])
    (log / f"{2:020d}.json").write_text(body)


def change_property(folder: Path, value: int) -> int:
    """Commit another policy, which has the table rebuilt; returns the version."""
    log = folder / "_delta_log"
    version = max(int(file.stem) for file in log.glob("*.json")) + 1
    configuration = {"lakewright.min-input-files": str(value)}
    (log / f"{version:020d}.tmp").write_text(_lines([_metadata(configuration)]))
    (log / f"{version:020d}.tmp").rename(log / f"{version:020d}.json")
    return version


def _metadata(configuration: dict[str, str]) -> dict[str, Any]:
    return {"metaData": metadata_of({"id": "long", "p": "date"}, ["p"], configuration=configuration)}


def _adds(dice: random.Random, count: int, partitions: int) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        number = dice.randrange(partitions)
        day = f"20{number // 336 % 100:02d}-{number // 28 % 12 + 1:02d}-{number % 28 + 1:02d}"
        low, rows = dice.randrange(10**9), dice.randrange(5_000, 50_000)
        stats = {
            "numRecords": rows,
            "minValues": {"id": low, "name": dice.randbytes(8).hex()},
            "maxValues": {"id": low + rows, "name": dice.randbytes(8).hex()},
            "nullCount": {"id": 0, "name": 0},
        }
        yield {
            "path": f"p={day}/part-{dice.randrange(10**5):05d}-{dice.randbytes(16).hex()}.c000.snappy.parquet",
            "partitionValues": {"p": day},
            "size": max(1_000, int(1_000_000 * dice.lognormvariate(0, 0.7))),
            "modificationTime": 1_760_000_000_000 + dice.randrange(10**9),
            "dataChange": True,
            "stats": json.dumps(stats, separators=(",", ":")),
        }


def _lines(actions: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(one, separators=(",", ":")) for one in [{"commitInfo": {"timestamp": 1}}, *actions])
