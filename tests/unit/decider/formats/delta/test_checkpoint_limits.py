"""Kilobytes of a checkpoint that would become gigabytes are refused before, and what is honest is not."""

import io
import struct
from contextlib import suppress
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decider.formats.delta import checkpoint_limits
from decider.formats.delta.checkpoint import DAMAGE, CheckpointPart, read_files, read_head
from decider.formats.delta.checkpoint_limits import DecodedBytes
from decider.formats.delta.damage import LogFile
from decider.formats.delta.parquet_footer import MAX_FOOTER_BYTES, chunks
from shared.errors import Corrupt

LIMIT_BYTES = 16 * 1024 * 1024
TEXTS = pa.map_(pa.string(), pa.string())
LONG = "x" * 100_000
ROWS = 1_000
"""Rows with as many times a long value exceed the limit sixfold."""

PLAIN = {"use_dictionary": False}
PREFIXES = {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}}


def written(column: pa.Array, **how: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": column}), file, **{"compression": "zstd", "data_page_size": 1 << 30, **how})
    return file.getvalue()


def counted(body: bytes, limit: int = LIMIT_BYTES) -> None:
    DecodedBytes(limit).open("part", memoryview(body), ["c"])


TEXT = pa.array([LONG]).take(pa.array([0] * ROWS))
BOMBS = {
    "a value of a dictionary for every row": written(TEXT),
    "pages of nothing but one letter": written(TEXT, **PLAIN),
    "the same value as before, each time": written(TEXT, **PREFIXES),
    "a value of a dictionary for every row, in pages of the second version": written(TEXT, data_page_version="2.0"),
    "the same value as before, in pages of the second version": written(TEXT, **PREFIXES, data_page_version="2.0"),
    "a list of a million values": written(pa.array([[1] * 1_000_000]), compression="snappy"),
    "a map of long values": written(pa.array([[("k", LONG)]], TEXTS).take(pa.array([0] * ROWS))),
    "a map of long values by prefixes": written(
        pa.array([[("k", LONG)]], TEXTS).take(pa.array([0] * ROWS)),
        use_dictionary=False,
        column_encoding={"c.key_value.key": "PLAIN", "c.key_value.value": "DELTA_BYTE_ARRAY"},
    ),
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_bytes_that_would_become_more_than_the_limit_are_refused_before_they_do(body: bytes) -> None:
    assert len(body) < LIMIT_BYTES / 50
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ValueError, match=r"more memory than .*: c\S* of row group 0 takes"):
        counted(body)
    assert pa.default_memory_pool().max_memory() < before + 2 * LIMIT_BYTES
    counted(body, 100 * LIMIT_BYTES)


HONEST = {
    "one long value among nulls": written(pa.array([LONG, *[None] * ROWS])),
    "one long value among nulls, by prefixes": written(pa.array([LONG, *[None] * ROWS]), **PREFIXES),
    "one map among nulls": written(pa.array([[("k", LONG)], *[None] * ROWS], TEXTS)),
    "paths that begin alike": written(pa.array([f"a/long/folder/{at}" for at in range(20 * ROWS)]), **PREFIXES),
    "no values": written(pa.array([], pa.string())),
    "numbers": written(pa.array(range(ROWS)), compression="none"),
    "small row groups": written(pa.array(range(ROWS)), row_group_size=10),
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_what_fits_is_opened_however_much_its_headers_would_allow(body: bytes) -> None:
    counted(body)


def test_all_parts_of_a_checkpoint_count_together_and_each_column_once() -> None:
    body = written(pa.array(["x" * 1_000_000]), **PLAIN)
    decoded = DecodedBytes(3_500_000)
    for name in ("a", "a", "b", "a", "c"):
        decoded.open(name, memoryview(body), ["c"])
    decoded.open("d", memoryview(body), ["other"])
    with pytest.raises(ValueError, match="more memory"):
        decoded.open("d", memoryview(body), ["c"])


def test_pages_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_limits, "MAX_PAGES", 20)
    with pytest.raises(ValueError, match="more than 20 pages"):
        counted(HONEST["small row groups"])


def test_a_damaged_header_of_a_page_ends_in_an_error_or_in_a_count() -> None:
    body = written(pa.array([LONG, None]))
    for at, byte in product(range(4, 40), (0x00, 0x15, 0x7F, 0x8C, 0xFF)):
        with suppress(*DAMAGE):
            counted(body[:at] + bytes([byte]) + body[at + 1 :])


def test_a_checkpoint_beyond_the_limit_is_damage_that_names_its_file() -> None:
    add = pa.struct([("path", pa.string()), ("partitionValues", TEXTS), ("size", pa.int64())])
    row = {"path": LONG, "partitionValues": [], "size": 1}
    file = io.BytesIO()
    pq.write_table(pa.table({"add": pa.array([row] * ROWS, add)}), file)
    log = LogFile("file:///t", 7, "7.checkpoint.parquet")
    part = CheckpointPart(log, memoryview(file.getvalue()), DecodedBytes(LIMIT_BYTES))
    with pytest.raises(Corrupt, match=r"version 7, _delta_log/7.checkpoint.parquet: .* add.path of row group 0"):
        read_files(part, ())


def test_json_counts_with_the_objects_that_it_becomes() -> None:
    line = b'{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\n'
    log = LogFile("file:///t", 7, "7.checkpoint.json")
    part = CheckpointPart(log, memoryview(line * 10_000), DecodedBytes(LIMIT_BYTES))
    assert len(read_files(part, ())) == len(read_files(part, ())) == 10_000
    with pytest.raises(Corrupt, match="bytes of JSON"):
        read_files(CheckpointPart(log, memoryview(line * 20_000), DecodedBytes(LIMIT_BYTES)), ())


def test_metadata_for_every_row_are_refused_before_they_are_objects() -> None:
    file = io.BytesIO()
    rows = pa.array([{"path": "a"}] * 100_001, pa.struct([("path", pa.string())]))
    pq.write_table(pa.table({"sidecar": rows}), file)
    part = CheckpointPart(LogFile("file:///t", 7, "7.checkpoint.parquet"), memoryview(file.getvalue()))
    with pytest.raises(Corrupt, match="100001 rows are neither of files nor of removals"):
        read_head([part])


OPTIONAL, REQUIRED = b"\x25\x02\x18\x01c", b"\x25\x00\x18\x01c"
"""What a footer says of a column `c`: that it may be null, or that it may not, which its histograms contradict."""
NUMBERS = list(range(1_000))
TABLE = pa.table(
    {
        "n": pa.array(NUMBERS),
        "half": pa.array([number / 2 for number in NUMBERS]),
        "text": pa.array([f"{number % 7}" for number in NUMBERS]),
        "map": pa.array([[("k", "v")]] * len(NUMBERS), pa.map_(pa.string(), pa.string())),
        "flag": pa.array([number % 2 == 0 for number in NUMBERS]),
    }
)


def parquet_bytes(**how: object) -> memoryview:
    file = io.BytesIO()
    pq.write_table(TABLE, file, row_group_size=300, **how)  # type: ignore[arg-type]
    return memoryview(file.getvalue())


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"compression": "zstd", "write_page_index": True},
        {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "lz4", "write_statistics": False, "bloom_filter_options": {"text": True}},
        {"version": "1.0", "store_schema": False},
    ],
)
def test_a_footer_is_read_as_pyarrow_reads_it(how: dict[str, object]) -> None:
    data = parquet_bytes(**how)
    described = pq.ParquetFile(pa.BufferReader(data)).metadata
    found = chunks(data, described.num_columns)
    assert len(found) == described.num_row_groups == 4
    for group, columns in enumerate(found):
        for index, chunk in enumerate(columns):
            wanted = described.row_group(group).column(index)
            start = wanted.dictionary_page_offset if wanted.has_dictionary_page else wanted.data_page_offset
            assert (chunk.start, chunk.size, chunk.values) == (start, wanted.total_compressed_size, wanted.num_values)
            assert chunk.codec.removesuffix("_RAW") == wanted.compression
            assert chunk.is_bytes == (wanted.physical_type == "BYTE_ARRAY")


def with_footer(footer: bytes) -> memoryview:
    return memoryview(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")


def nested(levels: int) -> bytes:
    return b"\x1c" * levels + b"\0" * (levels + 1)


DAMAGED = {
    "without columns": b"\x49\x1c\0\0",
    "with a text for a number": b"\x49\x1c\x19\x1c\x3c\x18\0\x38\0\x18\0\x28\0\x28\0\0\0\0\0",
    "with a number for its row groups": b"\x45\0\0",
    "with more values than bytes": b"\x49\xf6\xff\xff\xff\xff\x0f\0",
    "with a number of more than 64 bits": b"\x16" + b"\xff" * 11 + b"\0",
    "that nests without an end": nested(5_000),
    "with an unknown kind": b"\x1b\0\0",
    "that ends early": b"\x16",
}


@pytest.mark.parametrize("footer", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_footer_is_an_error(footer: bytes) -> None:
    with pytest.raises(ValueError, match=r"its|a value|a number|expected"):
        chunks(with_footer(footer), 1)


def test_a_footer_of_other_columns_or_of_any_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="differ from its 2 columns"):
        chunks(parquet_bytes(), 2)
    with pytest.raises(ValueError, match="at most"):
        chunks(memoryview(struct.pack("<I", MAX_FOOTER_BYTES + 1) + b"PAR1"), 1)


def test_a_footer_that_ends_the_process_of_pyarrow_is_read() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": [1, None]}), file)
    data = file.getvalue()
    assert data.count(OPTIONAL) == 1
    DecodedBytes().open("part", memoryview(data.replace(OPTIONAL, REQUIRED)), ["c"])
