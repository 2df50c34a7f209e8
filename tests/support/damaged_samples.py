"""Sound samples of all that the decider reads of others, as values and as their bytes, to be damaged as either."""

import copy
import gzip
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from shared.layout.file_order import GENERATED_UNTIL_TAG
from shared.layout.file_selection import GENERATED_TAG
from shared.layout.partition_stats import SORT_LEVEL_TAG
from tests.support.event_samples import SAMPLES
from tests.support.iceberg_store import record
from tests.support.property_samples import GOOD
from tests.support.unity_server import sample as unity_sample

NoSample = (ValueError, TypeError, OverflowError, KeyError, IndexError, AttributeError, pa.ArrowException)
"""Why values cannot be written in a format."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of one kind of input, and how they are written as bytes; raises one of `NoSample` where they cannot be."""

    values: tuple[Any, ...]
    write: Callable[[Any], bytes]


SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "long", "nullable": True, "metadata": {"delta.columnMapping.id": 1}},
        {"name": "day", "type": "date", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "day"}},
        {
            "name": "nested",
            "type": {"type": "array", "elementType": {"type": "struct", "fields": []}, "containsNull": True},
            "nullable": False,
            "metadata": {},
        },
    ],
}
METADATA = {"id": "i", "format": {"provider": "parquet"}, "schemaString": json.dumps(SCHEMA)}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "domainMetadata"]}
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ADD = {"path": "a.parquet", "partitionValues": {}, "size": 10, "modificationTime": 1, "dataChange": True}
STATS = json.dumps({"numRecords": 3, "minValues": {"a": 1}, "maxValues": {"a": 7}, "nullCount": {"a": 0}})
CLUSTERING = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["a"]]}', "removed": False}
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "lakewright.time-window": "1 day",
    "lakewright.sort-by": "a",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}
OWN = {"lakewright": {"job": "j", "token": 1}}
VACUUM_END = {"timestamp": 2, "operation": "VACUUM END", "operationParameters": {"status": "COMPLETED"}}
DAY = {"name": "d", "transform": "day", "source-id": 2, "field-id": 1000}
TAGS = {"ZCUBE_ID": "z", GENERATED_TAG: "7", GENERATED_UNTIL_TAG: "9", SORT_LEVEL_TAG: "1"}
BY_DAY = {"partitionValues": {"day": "2026-01-02"}}
COMMITS = (
    [
        {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": json.dumps(OWN)}},
        {"metaData": {**METADATA, "partitionColumns": [], "configuration": {}}},
        {"protocol": PROTOCOL},
        {"add": {**ADD, "stats": '{"numRecords":3}'}},
        {"remove": {"path": "b.parquet", "deletionTimestamp": 1, "dataChange": True}},
    ],
    [
        {"commitInfo": VACUUM_END},
        {"metaData": {**METADATA, "partitionColumns": ["day"], "configuration": PROPERTIES}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}},
        {"domainMetadata": CLUSTERING},
        {"add": {**ADD, **BY_DAY, "stats": STATS, "deletionVector": VECTOR, "tags": TAGS}},
        {
            "remove": {
                **ADD,
                **BY_DAY,
                "path": "b.parquet",
                "extendedFileMetadata": True,
                "deletionVector": VECTOR,
                "stats": STATS,
            }
        },
    ],
)
CHECKPOINT = [
    {"metaData": {**METADATA, "partitionColumns": ["day"], "configuration": [("a", "b")]}},
    {"protocol": PROTOCOL},
    {"add": {**ADD, "partitionValues": [("day", "2026-01-02")], "stats": STATS}},
]
STRINGS = pa.map_(pa.string(), pa.string())
CHECKPOINT_SCHEMA = pa.schema(
    [
        ("add", pa.struct([("path", pa.string()), ("partitionValues", STRINGS), ("size", pa.int64()),
                           ("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string())])),
        ("metaData", pa.struct([("id", pa.string()), ("format", pa.struct([("provider", pa.string())])),
                                ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())),
                                ("configuration", STRINGS)])),
        ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
    ]
)  # fmt: skip
ICEBERG = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "file:///lake/t",
    "last-column-id": 2,
    "last-updated-ms": 1,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [
                {"id": 1, "name": "a", "type": "long", "required": False},
                {"id": 2, "name": "at", "type": "timestamptz", "required": False},
            ],
        }
    ],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": [DAY]}],
    "default-spec-id": 0,
    "last-partition-id": 1000,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "last-sequence-number": 1,
    "properties": {"write.target-file-size-bytes": "1048576", "lakewright.enabled": "true"},
    "snapshots": [
        {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": 1,
            "manifest-list": "file:///lake/t/m.avro",
            "summary": {"operation": "append", "total-data-files": "1"},
            "schema-id": 0,
        }
    ],
    "current-snapshot-id": 1,
    "snapshot-log": [{"snapshot-id": 1, "timestamp-ms": 1}],
    "metadata-log": [{"metadata-file": "file:///lake/t/1.json", "timestamp-ms": 1}],
    "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
}
MANIFEST_OF_LIST = {
    "manifest_path": "m",
    "manifest_length": 1,
    "partition_spec_id": 0,
    "content": 0,
    "sequence_number": 1,
    "added_snapshot_id": 1,
    "added_files_count": 1,
}
DATA_FILE = {
    "content": 0,
    "file_path": "a",
    "file_format": "PARQUET",
    "partition": {"d": 20_000},
    "record_count": 3,
    "file_size_in_bytes": 9,
    "referenced_data_file": "b",
    "content_offset": 4,
}
TABLES_FILE = {
    "tables": [
        {"location": "/lake/t", "name": "t", "tenant": "a", "properties": {"lakewright.enabled": True}},
        {"location": "/b", "paused": True},
    ]
}


def write_json(value: Any) -> bytes:
    """Write compact JSON."""
    return json.dumps(value).encode()


def _write_lines(value: Any) -> bytes:
    return b"\n".join(write_json(one) for one in value)


def _write_metadata(value: Any) -> bytes:
    text = write_json(value)
    return gzip.compress(text) if len(text) % 2 else text


def _write_yaml(value: Any) -> bytes:
    return yaml.safe_dump(value).encode()


def _write_checkpoint(rows: Any) -> bytes:
    """Write rows with Delta's columns, or with those that the values have where they differ."""
    file = io.BytesIO()
    try:
        table = pa.Table.from_pylist(rows, CHECKPOINT_SCHEMA)
    except NoSample:
        table = pa.Table.from_pylist(rows)
    pq.write_table(table, file)
    return file.getvalue()


def _write_avro(row: Any) -> bytes:
    """Write a row five times, with the schema that its values have."""
    schema = fastavro.parse_schema(_avro_type(row, "row"))
    file = io.BytesIO()
    fastavro.writer(file, schema, [row] * 5, codec="deflate")
    return file.getvalue()


def _avro_type(value: Any, name: str) -> Any:
    match value:
        case dict():
            return record(name, **{field: _avro_type(one, f"{name}_{field}") for field, one in value.items()})
        case list():
            return {"type": "array", "items": _avro_type(value[0], name) if value else "string"}
        case _:
            return {bool: "boolean", int: "long", float: "double", str: "string", type(None): "null"}[type(value)]


BODIES = tuple(sample.body for sample in SAMPLES if isinstance(sample.body, (dict, list)))
ANSWERS = tuple(unity_sample(name) for name in ("table", "tables", "table_not_found"))
REST_ANSWER = {"metadata-location": "file:///lake/t/m.json", "metadata": ICEBERG, "config": {"s3.region": "x"}}

SAMPLES_OF = {
    "commits": Samples(COMMITS, _write_lines),
    "checkpoints": Samples((CHECKPOINT,), _write_checkpoint),
    "checksums": Samples(({"numFiles": 1, "tableSizeBytes": 10},), write_json),
    "events": Samples(BODIES, write_json),
    "properties": Samples(tuple({name: value} for name, value, _, _ in GOOD), write_json),
    "tables files": Samples((TABLES_FILE,), _write_yaml),
    "metadata": Samples((ICEBERG,), _write_metadata),
    "manifest lists": Samples((MANIFEST_OF_LIST,), _write_avro),
    "manifests": Samples(({"status": 1, "snapshot_id": 1, "sequence_number": 1, "data_file": DATA_FILE},), _write_avro),
    "answers of Unity catalogs": Samples(ANSWERS, write_json),
    "answers of REST catalogs": Samples((REST_ANSWER,), write_json),
}


NESTED: list[Any] = []
for _ in range(60):
    NESTED = [NESTED]

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\0",
    "\ud800",
    "..",
    "/",
    "%",
    "%2e%2e/x",
    "\N{LATIN SMALL LETTER E WITH ACUTE}" * 300,
    "9" * 5_000,
    "1e999999999",
    "9" * 400 + " days",
    "(" * 3_000,
    "file:///etc/passwd",
    "http://[",
    "decimal(99,99)",
    [],
    {},
    [None],
    {"": None},
    [[0]],
    NESTED,
)
"""Values that few expect: of another type, too large, too deep, empty, and texts that mean something elsewhere."""

Place = tuple[Any, Any]
"""A container and a key or position in it."""


def with_odd_values(tree: Any, chance: random.Random) -> Any:
    """Return a copy of JSON, one to three values replaced, removed, repeated or exchanged; in texts of JSON, too."""
    box = [copy.deepcopy(tree)]
    for _ in range(chance.randint(1, 3)):
        container, key = chance.choice(list(_places(box)))
        value = container[key]
        match chance.randrange(6):
            case 0 if container is not box:
                del container[key]
            case 1 if isinstance(container, list) and container is not box:
                container += [value] * chance.choice((1, 50))
            case 2:
                other, place = chance.choice(list(_places(box)))
                container[key] = copy.deepcopy(other[place])
            case 3 if isinstance(container, dict):
                container[chance.choice(("", "\0", "add", str(key).upper()))] = container.pop(key)
            case _ if isinstance(value, str) and value[:1] in ("{", "["):
                container[key] = _within(value, chance)
            case _:
                container[key] = copy.deepcopy(chance.choice(ODD))
    return box[0]


def _within(text: str, chance: random.Random) -> str:
    """Damage a text that holds JSON."""
    with suppress(ValueError):
        return json.dumps(with_odd_values(json.loads(text), chance))
    return text


def _places(container: Any) -> Iterator[Place]:
    """Yield every place of a value below a container, two levels of nesting of JSON texts excepted."""
    keys = list(container) if isinstance(container, dict) else range(len(container))
    for key in keys:
        yield container, key
        if isinstance(container[key], (dict, list)):
            yield from _places(container[key])
