"""Manifests that cannot be read are damage, and only live files are needed."""

import io
import json
from typing import Any

import fastavro
import pytest

from shared.errors import Corrupt
from shared.formats.iceberg.manifests import (
    TARGET_PROPERTY,
    Manifest,
    count_groups,
    count_manifests,
    decode_live_files,
    decode_manifest,
    decode_manifest_list,
)
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.layout.upkeep import UpkeepFound
from shared.table import DeleteKind
from tests.support.iceberg_store import record


def entry_schema(partition: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the schema of entries whose files have these fields of their partition, and more."""
    texts = {"file_path": "string", "file_format": "string"}
    numbers = {"record_count": "long", "file_size_in_bytes": "long"}
    part = record("partition", **(partition or {}))
    file = record("file", content=["null", "int"], **texts, partition=part, **numbers, **more)
    number = ["null", "long"]
    return record("entry", status="int", snapshot_id=number, file_sequence_number=number, data_file=file)


def entry_of(partition: dict[str, Any] | None = None, sequence: int | None = 1, **file: Any) -> dict[str, Any]:
    plain = {"content": 0, "file_path": "f", "file_format": "PARQUET", "record_count": 5, "file_size_in_bytes": 7}
    data_file = plain | {"partition": partition or {}} | file
    return {"status": 1, "snapshot_id": 3, "file_sequence_number": sequence, "data_file": data_file}


def manifest(*entries: tuple[int, int | None, str, str], sequence: int | None = None, codec: str = "null") -> bytes:
    """Write entries of status, content, path and format."""
    rows = [
        entry_of(sequence=sequence, content=content, file_path=path, file_format=written)
        | {"status": status, "snapshot_id": None}
        for status, content, path, written in entries
    ]
    out = io.BytesIO()
    fastavro.writer(out, entry_schema(), rows, codec=codec)
    return out.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_a_manifest_of_any_codec_that_iceberg_writes_is_read(codec: str) -> None:
    body = manifest(*((1, 0, f"f{number}", "PARQUET") for number in range(50)), codec=codec)
    assert decode_live_files(body, "m") == tuple((f"f{number}", 7) for number in range(50))


def test_removed_files_are_not_live() -> None:
    body = manifest((0, None, "a", "PARQUET"), (1, 0, "b", "PARQUET"), (2, 0, "c", "PARQUET"), (1, 1, "d", "PUFFIN"))
    assert decode_live_files(body, "m") == (("a", 7), ("b", 7), ("d", 7))


def test_entries_inherit_what_they_leave_out_and_tell_kinds_of_deletes() -> None:
    body = manifest((1, None, "a", "PARQUET"), (2, 1, "b", "parquet"), (1, 1, "c", "PUFFIN"), (1, 2, "d", "PARQUET"))
    found = decode_manifest(body, Manifest("m", 0, 3, 9), {0: Spec(0, ())})
    assert [one.kind for one in found] == [None, DeleteKind.POSITION, DeleteKind.VECTOR, DeleteKind.EQUALITY]
    assert [(one.snapshot, one.file_sequence) for one in found] == [(3, 9), (3, 0), (3, 9), (3, 9)]
    body = manifest((0, None, "a", "PARQUET"), sequence=5)
    assert [one.file_sequence for one in decode_manifest(body, Manifest("m", 0, 3, 9), {0: Spec(0, ())})] == [5]


@pytest.mark.parametrize(
    ("kind", "logical", "inside", "outside", "text"),
    [
        ("date", "date", 19_723, 2_000_000_000, "2024-01-01"),
        ("date", "date", 19_723, -2_000_000_000, "2024-01-01"),
        ("timestamp", "timestamp-micros", 0, 9 * 10**18, "1970-01-01T00:00:00.000000"),
        ("timestamptz", "timestamp-micros", 0, -9 * 10**18, "1970-01-01T00:00:00.000000"),
        ("time", "time-micros", 1, 9 * 10**18, "00:00:00.000001"),
    ],
)
def test_partition_values_beyond_the_years_of_python_are_shown_as_they_are(
    kind: str, logical: str, inside: int, outside: int, text: str
) -> None:
    """A writer that took microseconds for milliseconds; the other values of the file, and decimals, are as ever."""
    number = "int" if kind == "date" else "long"
    amount = {"type": "fixed", "name": "amount", "size": 2}
    decimal = amount | {"logicalType": "decimal", "precision": 4, "scale": 2}
    fields = {"p": ["null", {"type": number, "logicalType": logical}], "q": ["null", decimal]}
    plain = {"p": ["null", number], "q": ["null", amount]}
    spec = Spec(0, (SpecField("p", "identity", kind), SpecField("q", "identity", "decimal(4,2)")))
    out = io.BytesIO()
    rows = [entry_of({"p": value, "q": b"\x00\x7b"}) for value in (inside, outside)]
    fastavro.writer(out, entry_schema(plain), rows)
    body = out.getvalue()
    claimed = io.BytesIO()
    fastavro.writer(claimed, entry_schema(fields), [])
    schema = fastavro.reader(io.BytesIO(claimed.getvalue())).metadata["avro.schema"]
    found = decode_manifest(with_schema(body, schema), Manifest("m", 0, 3, 9), {0: spec})
    assert [json.loads(one.partition)["p"] for one in found] == [text, str(outside)]
    assert {json.loads(one.partition)["q"] for one in found} == {"1.23"}
    assert len(decode_live_files(with_schema(body, schema), "m")) == 2


def with_schema(body: bytes, schema: str) -> bytes:
    """Return a file of the same rows whose schema calls its numbers dates or times, which fastavro would not write."""
    blocks: list[Any] = list(fastavro.block_reader(io.BytesIO(body)))
    (block,) = blocks
    header = io.BytesIO()
    fastavro.writer(header, json.loads(schema), [], sync_marker=b"0" * 16)
    out = header.getvalue()
    rows = io.BytesIO(block.bytes_.getvalue())
    return out + zigzag(block.num_records) + zigzag(len(rows.getvalue())) + rows.getvalue() + b"0" * 16


def zigzag(number: int) -> bytes:
    value, out = number << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_what_is_no_manifest_is_damage() -> None:
    for read in (
        lambda: decode_live_files(b"x", "m"),
        lambda: decode_manifest_list(b"x", "m"),
        lambda: decode_manifest(b"x", Manifest("m", 0, 3, 9), {0: Spec(0, ())}),
        lambda: decode_manifest(manifest(), Manifest("m", 1, 3, 9), {}),
    ):
        with pytest.raises(Corrupt, match="m is no manifest"):
            read()


def test_manifests_of_one_spec_and_content_can_be_merged_up_to_the_size_that_the_table_wants() -> None:
    found = [
        Manifest("a", 0, 1, 1, 60),
        Manifest("b", 0, 2, 2, 60),
        Manifest("c", 0, 3, 3, 10, has_deletes=True),
        Manifest("d", 1, 4, 4, 10),
    ]
    assert count_manifests(found, {}) == UpkeepFound(4, 1, 140)
    assert count_manifests(found, {TARGET_PROPERTY: "100"}) == UpkeepFound(4, 0, 140)
    assert count_manifests(found, {TARGET_PROPERTY: "large"}) == UpkeepFound(4, 1, 140)
    assert count_manifests([], {}) == UpkeepFound(0, 0)


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([], UpkeepFound(0, 0)),
        ([[]], UpkeepFound(0, 0)),
        ([[0]], UpkeepFound(1, 0)),
        ([[7] * 10], UpkeepFound(10, 9, 70)),
        ([[7] * 10, [7]], UpkeepFound(11, 9, 77)),
        ([[60, 60, 60]], UpkeepFound(3, 1, 180)),
        ([[100, 100]], UpkeepFound(2, 0, 200)),
    ],
)
def test_each_group_needs_one_manifest_or_as_many_as_its_bytes_fill(
    groups: list[list[int]], found: UpkeepFound
) -> None:
    assert count_groups(groups, 100) == found


def test_a_target_of_no_bytes_is_one_of_a_byte_and_no_manifest_is_missing() -> None:
    assert count_groups([[2, 2]], 0) == UpkeepFound(2, 0, 4)
    assert count_groups([[1, 1]], 0) == UpkeepFound(2, 0, 2)


PATHS = 2147483546
"""Id of the column of paths in a file of positions."""


@pytest.mark.parametrize(
    ("content", "field", "bounds", "referenced"),
    [
        (1, "a", None, "a"),
        (1, "a", {PATHS: (b"b", b"b")}, "a"),
        (1, None, {PATHS: (b"a", b"a")}, "a"),
        (1, None, {PATHS: (b"a", b"b")}, ""),
        (1, None, {1: (b"a", b"a")}, ""),
        (1, None, None, ""),
        (2, "a", {PATHS: (b"a", b"a")}, ""),
        (0, "a", {PATHS: (b"a", b"a")}, ""),
    ],
)
def test_a_delete_file_of_positions_names_its_one_data_file_by_a_field_or_by_equal_bounds(
    content: int, field: str | None, bounds: dict[int, tuple[bytes, bytes]] | None, referenced: str
) -> None:
    bound = record("bound", key="int", value="bytes")
    schema = entry_schema(
        referenced_data_file=["null", "string"],
        lower_bounds=["null", {"type": "array", "items": bound}],
        upper_bounds=["null", {"type": "array", "items": "bound"}],
    )
    lower, upper = (
        None if bounds is None else [{"key": key, "value": both[side]} for key, both in bounds.items()]
        for side in (0, 1)
    )
    row = entry_of(content=content, referenced_data_file=field, lower_bounds=lower, upper_bounds=upper)
    out = io.BytesIO()
    fastavro.writer(out, schema, [row])
    for has_deletes in (False, True):
        listed = Manifest("m", 0, 3, 9, has_deletes=has_deletes)
        (found,) = decode_manifest(out.getvalue(), listed, {0: Spec(0, ())}, PATHS)
        assert found.referenced == referenced
        assert found.bounds == (bounds or {}).get(PATHS, (None, None))
