"""Kilobytes of a checkpoint that would become gigabytes are refused before, and what is honest is not."""

import io
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
