"""What a reader's process keeps between groups, and what it says: nothing of a file, and no value."""

import os
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from actor.proofread.locations import readable
from actor.proofread.model import Field, ProofFile
from actor.proofread.task import ReadEnding, Work
from tests.support.proofread_groups import group_of, read, stored

COLUMNS = [Field("a", "int8")]


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
@pytest.mark.parametrize("values", [[64321], [None, 64321]])
def test_no_answer_shows_a_value(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, work: Work, values: list[int]
) -> None:
    wide, narrow = pa.table({"a": pa.array(values, pa.int64())}), pa.table({"a": pa.array([7], pa.int8())})
    files = [stored(tmp_path / f"{name}.parquet", one) for name, one in (("in", wide), ("out", narrow))]
    for inputs, outputs in ((files[:1], files[1:]), (files[1:], files[:1])):
        found = read(connection, group_of(COLUMNS, inputs, outputs), work)
        assert (found.ending, "64321" in found.text) == (ReadEnding.UNREADABLE, False), found


def test_a_file_that_changes_between_two_groups_is_read_again(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Of equal size and time, as a name that is used again may be."""
    path = tmp_path / "a.parquet"
    twin = stored(tmp_path / "b.parquet", pa.table({"a": pa.array([7] * 100, pa.int8())}), compression="none")
    for value, expected in ((7, ReadEnding.SAME), (8, ReadEnding.DIFFERENT)):
        file = stored(path, pa.table({"a": pa.array([value] * 100, pa.int8())}), compression="none")
        assert file.size_bytes == twin.size_bytes

        os.utime(path, (1, 1))
        assert read(connection, group_of(COLUMNS, [file], [twin])).ending is expected


@pytest.mark.parametrize("location", ["abfss://c@a/f.parquet", "s3://b/a*.parquet"])
def test_files_that_no_reader_addresses_are_said_so(connection: duckdb.DuckDBPyConnection, location: str) -> None:
    found = read(connection, group_of(COLUMNS, [ProofFile(location, 0)], []))
    assert found.ending is ReadEnding.UNREADABLE
    assert "reader for" in found.text or "pattern" in found.text


def test_files_that_are_gone_or_no_parquet_are_unreadable(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / "no.parquet").write_bytes(b"no parquet at all")
    file = stored(tmp_path / "a.parquet", pa.table({"a": [7]}))
    for name in ("no.parquet", "gone.parquet"):
        for work in (Work.ROWS, Work.ROWS_AGAIN, Work.BYTES, Work.FINGERPRINT):
            group = group_of(COLUMNS, [replace(file, path=str(tmp_path / name))], [file])
            assert read(connection, group, work).ending is ReadEnding.UNREADABLE


def test_without_memory_for_files_and_numbers_a_difference_names_the_columns(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr("actor.proofread.comparison._keep_hashes", exhausted)
    files = [stored(tmp_path / f"{value}.parquet", pa.table({"a": pa.array([value], pa.int8())})) for value in (1, 2)]
    found = read(connection, group_of(COLUMNS, files[:1], files[1:]))
    assert (found.ending, found.columns, found.files) == (ReadEnding.DIFFERENT, ("a",), ())


def test_a_place_is_the_same_however_it_is_spelled() -> None:
    assert {readable(f"{scheme}/a/b") for scheme in ("", "file:", "file://")} == {"/a/b"}
    assert {readable(f"{scheme}://b/k") for scheme in ("s3", "s3a", "s3n")} == {"s3://b/k"}
