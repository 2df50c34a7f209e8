"""No bytes that others choose end, fill or stall the decider: damaged logs, events, tables files, catalogs' metadata.

`LAKEWRIGHT_FUZZ` is the number of damaged inputs of each kind (`make fuzz`: 10,000), `LAKEWRIGHT_FUZZ_SEED` the first
seed; a failure names its own.
"""

import gzip
import io
import json
import os
import random
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decider.declared.tables_file import TablesFileReader
from decider.events.detect import parse_body
from decider.events.resolver import AllowedRoots
from decider.formats.delta.actions import decode_commit
from decider.formats.delta.checkpoint import CheckpointPart, read_files, read_head
from decider.formats.delta.checksum import read_checksum
from decider.formats.delta.damage import LogFile
from decider.formats.delta.rewrites import decode_event
from decider.formats.iceberg.catalogs import translated
from decider.formats.iceberg.rest_client import LimitedRestCatalog
from decider.state.effective_policy import PolicyDefaults
from shared.errors import LakewrightError
from shared.formats.iceberg.manifests import Manifest, decode_live_files, decode_manifest, decode_manifest_list
from shared.formats.iceberg.metadata import decode_head, parse_metadata
from shared.formats.iceberg.partitions import Spec
from shared.paths.boundary import Boundary
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer
from tests.support.avro_schema import record
from tests.support.event_samples import SAMPLES, dumped
from tests.support.time_limits import scaled
from tests.support.unity_samples import sample as unity_sample

INPUTS = int(os.environ.get("LAKEWRIGHT_FUZZ", "40"))
FIRST_SEED = int(os.environ.get("LAKEWRIGHT_FUZZ_SEED", "1"))
SECONDS = 2.0
"""Longest time for one damaged input of some kilobytes."""
MEMORY_BYTES = 500 * 1024 * 1024
"""What all damaged inputs of one kind may add to the peak of the process."""
LOG = LogFile("file:///lake/t", 1, "00000000000000000001.json")
METADATA = {"id": "i", "format": {"provider": "parquet"}, "schemaString": '{"type":"struct","fields":[]}'}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
ADD = {"path": "a.parquet", "partitionValues": {}, "size": 10, "modificationTime": 1, "dataChange": True}
COMMIT = b"\n".join(
    json.dumps(action).encode()
    for action in (
        {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": '{"lakewright":{"job":"j","token":1}}'}},
        {"metaData": {**METADATA, "partitionColumns": [], "configuration": {}}},
        {"protocol": PROTOCOL},
        {"add": {**ADD, "stats": '{"numRecords":3}'}},
        {"remove": {"path": "b.parquet", "deletionTimestamp": 1, "dataChange": True}},
    )
)
ICEBERG = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "file:///lake/t",
    "last-column-id": 1,
    "last-updated-ms": 1,
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    ],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "properties": {},
    "snapshots": [
        {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "file:///lake/t/m.avro"}
    ],
    "current-snapshot-id": 1,
    "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
}
TABLES_FILE = b"""tables:
- location: /lake/t
  name: t
  tenant: a
  properties: {lakewright.enabled: true}
- {location: /b}
"""


def checkpoint() -> bytes:
    rows = [
        {
            "add": None,
            "metaData": {**METADATA, "partitionColumns": [], "configuration": [("a", "b")]},
            "protocol": None,
        },
        {"add": None, "metaData": None, "protocol": PROTOCOL},
        {
            "add": {**ADD, "partitionValues": [], "stats": '{"numRecords":1}'},
            "metaData": None,
            "protocol": None,
        },
    ]
    strings = pa.map_(pa.string(), pa.string())
    schema = pa.schema(
        [
            ("add", pa.struct([("path", pa.string()), ("partitionValues", strings), ("size", pa.int64()),
                               ("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string())])),
            ("metaData", pa.struct([("id", pa.string()), ("format", pa.struct([("provider", pa.string())])),
                                    ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())),
                                    ("configuration", strings)])),
            ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
        ]
    )  # fmt: skip
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    return file.getvalue()


def manifest_list() -> bytes:
    more = {"content": "int", "added_snapshot_id": "long"}
    schema = record("manifest_file", manifest_path="string", manifest_length="long", partition_spec_id="int", **more)
    file = io.BytesIO()
    row = {"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "content": 0, "added_snapshot_id": 1}
    fastavro.writer(file, fastavro.parse_schema(schema), [row] * 5, codec="deflate")
    return file.getvalue()


def manifest() -> bytes:
    numbers = {"record_count": "long", "file_size_in_bytes": "long"}
    texts = {"file_path": "string", "file_format": "string"}
    file = record("r2", content="int", **texts, partition=record("r102"), **numbers)
    schema = fastavro.parse_schema(record("manifest_entry", status="int", snapshot_id=["null", "long"], data_file=file))
    row = {"content": 0, "file_path": "a", "file_format": "PARQUET", "partition": {}}
    row |= {"record_count": 3, "file_size_in_bytes": 9}
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [{"status": 1, "snapshot_id": 1, "data_file": row}] * 5)
    return stream.getvalue()


def _ask_unity(data: bytes) -> None:
    """Give an answer to every call, those that do not fit it, too."""
    unity = UnityCatalog("u", lambda _: UnityAnswer(200, data), Boundary(("file:///lake",)))
    calls = (lambda: unity.table(("a", "b", "c")), unity.catalogs, lambda: unity.schemas("a"))
    for call in (*calls, lambda: unity.tables("a", "b")):
        with suppress(LakewrightError):
            call()


def _ask_rest(data: bytes) -> None:
    """Load a table from the catalog's answer."""
    rest: Any = object.__new__(LimitedRestCatalog)
    rest._given, rest.properties, rest.uri = {"uri": "http://catalog"}, {"uri": "http://catalog"}, "http://catalog"
    rest._auth_manager, rest._namespace_separator = None, "."
    answer = SimpleNamespace(content=data, raise_for_status=lambda: None)
    rest._session = SimpleNamespace(get=lambda *_, **__: answer)
    with translated("catalog"):
        loaded = rest.load_table("db.t")
    decode_head(loaded.raw, "t")


def _read_checkpoint(data: bytes) -> None:
    part = CheckpointPart(LogFile("file:///lake/t", 1, "1.checkpoint.parquet"), memoryview(data))
    head = read_head([part])
    read_files(part, head.metadata.partition_columns)


READER = TablesFileReader(AllowedRoots(), PolicyDefaults)
KINDS: dict[str, tuple[list[bytes], Callable[[bytes], object]]] = {
    "commits": ([COMMIT], lambda data: (decode_commit(data, LOG, None), decode_event(data, LOG))),
    "checkpoints": ([checkpoint()], _read_checkpoint),
    "checksums": ([b'{"numFiles":1,"tableSizeBytes":10}'], read_checksum),
    "events": ([dumped(sample.body) for sample in SAMPLES if isinstance(sample.body, (dict, list))], parse_body),
    "tables files": ([TABLES_FILE], lambda data: READER.read(data, "tables.yaml")),
    "metadata": (
        [json.dumps(ICEBERG).encode(), gzip.compress(json.dumps(ICEBERG).encode())],
        lambda data: decode_head(parse_metadata(data, "t"), "t"),
    ),
    "manifest lists": ([manifest_list()], lambda data: decode_manifest_list(data, "m")),
    "manifests": (
        [manifest()],
        lambda data: (decode_manifest(data, Manifest("m", 0, 3, 9), {0: Spec(0, ())}), decode_live_files(data, "m")),
    ),
    "answers of Unity catalogs": (
        [dumped(unity_sample(name)) for name in ("table", "tables", "table_not_found")],
        _ask_unity,
    ),
    "answers of REST catalogs": (
        [dumped({"metadata-location": "file:///lake/t/m.json", "metadata": ICEBERG, "config": {"s3.region": "x"}})],
        _ask_rest,
    ),
}
TOKENS = (
    b"null",
    b"-1",
    b"1e999",
    b"9" * 40,
    b'"\\ud800"',
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"\0" * 100,
    b"\xff",
    b"NaN",
    b"true",
    b"",
    b"\n",
    b"&a [*a]",
    b"..",
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with one to five changes: flips, cuts, repetitions, and what is odd in JSON, YAML and numbers."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(found) + 1)
        end = min(len(found), at + chance.choice((1, 2, 8, 100)))
        match chance.randrange(4):
            case 0:
                found[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
            case 1:
                del found[at:end]
            case 2:
                found[at:at] = found[at:end] * chance.choice((1, 2, 50))
            case _:
                found[at:end] = chance.choice(TOKENS)
    return bytes(found)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_bytes_are_an_error_of_ours_in_bounded_time_and_memory(kind: str) -> None:
    samples, read = KINDS[kind]
    for sample in samples:
        read(sample)
    before, began_all_s, slowest_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time(), 0.0
    for seed in range(FIRST_SEED, FIRST_SEED + INPUTS):
        chance = random.Random(seed)
        data = damaged(chance.choice(samples), chance)
        began_s = time.process_time()
        try:
            read(data)
        except LakewrightError:
            pass
        except BaseException as problem:
            raise AssertionError(f"seed {seed} of {kind}: {type(problem).__name__}: {problem}") from problem
        slowest_s = max(slowest_s, time.process_time() - began_s)
        assert slowest_s < scaled(SECONDS), f"seed {seed} of {kind}"
    added = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    taken_s = time.process_time() - began_all_s
    print(
        f"{kind}: {INPUTS} from seed {FIRST_SEED}, {taken_s:.1f} s, slowest {slowest_s:.3f} s, {added >> 20} MiB more"
    )
    assert added < MEMORY_BYTES, f"{kind}, seeds from {FIRST_SEED}"


def test_compressed_metadata_are_decompressed_up_to_a_limit() -> None:
    bomb = gzip.compress(bytes(600 * 1024 * 1024))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LakewrightError, match="bytes"):
        parse_metadata(bomb, "t")
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < MEMORY_BYTES
