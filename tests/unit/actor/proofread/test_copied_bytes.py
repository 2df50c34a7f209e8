"""Copied row groups are compared byte for byte, and each of the inputs' is there once."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actor.proofread.model import Field, ProofFile
from actor.proofread.task import Answer, ReadEnding, Work
from tests.support.proofread_groups import group_of, read, stored

COLUMNS = [Field("a", "int64"), Field("s", "string")]


def rows(start: int, count: int = 300) -> pa.Table:
    return pa.table({"a": [*range(start, start + count)], "s": [f"value {number % 7}" for number in range(count)]})


def joined(path: Path, tables: Sequence[pa.Table], **options: object) -> ProofFile:
    """Write a file whose row groups have the bytes that each table has in a file of its own."""
    with pq.ParquetWriter(path, tables[0].schema, **options) as writer:
        for table in tables:
            writer.write_table(table)
    return ProofFile(str(path), path.stat().st_size, sum(table.num_rows for table in tables))


def compared(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, outputs: Sequence[pa.Table], **options: object
) -> Answer:
    inputs = [stored(tmp_path / f"{start}.parquet", rows(start)) for start in (0, 300)]
    out = joined(tmp_path / "out.parquet", outputs, **options)
    return read(connection, group_of(COLUMNS, inputs, [out], copied=True), Work.BYTES)


@pytest.mark.parametrize("order", [(0, 300), (300, 0)])
def test_the_same_row_groups_in_any_order_are_a_copy(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, order: tuple[int, int]
) -> None:
    found = compared(connection, tmp_path, [rows(start) for start in order])
    assert (found.ending, found.rows) == (ReadEnding.SAME, 600), found
    assert found.fingerprint


@pytest.mark.parametrize("starts", [(0,), (0, 0), (0, 300, 0), (0, 301)])
def test_a_row_group_that_is_missing_doubled_or_another_is_noticed(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, starts: tuple[int, ...]
) -> None:
    assert compared(connection, tmp_path, [rows(start) for start in starts]).ending is ReadEnding.DIFFERENT


@pytest.mark.parametrize(
    "options",
    [{"compression": "none"}, {"use_dictionary": False}, {"column_encoding": "PLAIN", "use_dictionary": False}],
)
def test_the_same_rows_in_other_bytes_are_no_copy(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, options: dict[str, object]
) -> None:
    assert compared(connection, tmp_path, [rows(0), rows(300)], **options).ending is ReadEnding.DIFFERENT


def test_other_columns_are_no_copy(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    renamed = [rows(start).rename_columns(["a", "t"]) for start in (0, 300)]
    assert "other columns" in compared(connection, tmp_path, renamed).text


def test_one_bit_of_a_page_is_noticed_and_the_file_named(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    assert compared(connection, tmp_path, [rows(0), rows(300)]).ending is ReadEnding.SAME
    path = tmp_path / "out.parquet"
    chunk = pq.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + 40] ^= 1
    path.write_bytes(data)
    inputs = [ProofFile(str(tmp_path / f"{start}.parquet"), 0) for start in (0, 300)]
    group = group_of(COLUMNS, inputs, [ProofFile(str(path), 0)], copied=True)
    found = read(connection, group, Work.BYTES)
    assert (found.ending, found.files) == (ReadEnding.DIFFERENT, (str(path),))


def test_the_fingerprint_is_of_the_kind_of_files_and_not_of_their_rows(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    made = {
        "one": stored(tmp_path / "one.parquet", rows(0)),
        "rows": stored(tmp_path / "rows.parquet", rows(7, 50)),
        "encoding": stored(tmp_path / "encoding.parquet", rows(0), use_dictionary=False),
        "codec": stored(tmp_path / "codec.parquet", rows(0), compression="zstd"),
        "schema": stored(tmp_path / "schema.parquet", rows(0).rename_columns(["a", "t"])),
    }
    groups = {name: group_of(COLUMNS, [file], []) for name, file in made.items()}
    prints = {name: read(connection, group, Work.FINGERPRINT).fingerprint for name, group in groups.items()}
    assert prints["one"] == prints["rows"]
    assert len(set(prints.values())) == len(prints) - 1
