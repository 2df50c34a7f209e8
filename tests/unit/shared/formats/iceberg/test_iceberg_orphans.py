"""Which listed files may be orphans of an Iceberg table, and which spellings mean one file."""

import gzip

import pytest

from shared.formats.iceberg.orphans import (
    MIN_ORPHAN_AGE_MS,
    TableFolders,
    base_key,
    file_key,
    is_metadata_file,
    table_uuid,
    young_since_ms,
)
from shared.formats.table_marks import ICEBERG, tables_of_others

UUID = "0d2b7a5c-1f3e-4a6b-8c9d-0e1f2a3b4c5d"

NAMES = (
    "data/day=1/a.parquet",
    "metadata/v1.metadata.json",
    "inner/metadata/v1.metadata.json",
    "deep/delta/_delta_log/0.json",
    "data/hudi/.hoodie/x",
)


@pytest.mark.parametrize(
    ("name", "may_be"),
    [
        ("data/a.parquet", True),
        ("data/x/day=1/a.orc", True),
        ("data/a.puffin", True),
        ("metadata/m-1.avro", True),
        ("metadata/x.stats", True),
        ("known/00000-1-job-00001.avro", True),
        ("known/00000-1-job-00001-deletes.parquet", True),
        (f"_known/20260101_000000_00001_abcde-{UUID}.parquet", True),
        (f"known/{UUID}.parquet", True),
        ("known/part-00000.parquet", False),
        ("known/a.avro", False),
        ("metadata/v1.metadata.json", False),
        ("metadata/version-hint.text", False),
        ("metadata/below/m-1.avro", False),
        ("elsewhere/a.parquet", False),
        ("a.parquet", False),
        ("data/notes.txt", False),
        ("data/.a.parquet", False),
        ("data/_tmp/a.parquet", False),
        ("data/.tmp/a.parquet", False),
        ("data/hudi/a.parquet", False),
        ("inner/data/a.parquet", False),
        ("inner/a.parquet", False),
        ("deep/delta/a.parquet", False),
    ],
)
def test_an_orphan_is_named_like_a_file_of_the_table_and_lies_in_a_folder_of_its_own(name: str, may_be: bool) -> None:
    known = frozenset({"known", "_known", "inner"})
    assert TableFolders(tuple(tables_of_others(NAMES, ICEBERG)), known).may_hold(name) is may_be


def test_a_table_in_the_tables_own_folder_leaves_no_orphan() -> None:
    assert not TableFolders(("",)).may_hold("data/a.parquet")
    assert TableFolders(()).may_hold("data/a.parquet")


def test_metadata_files_are_known_by_name() -> None:
    assert is_metadata_file("metadata/00001-a.metadata.json")
    assert is_metadata_file("metadata/00001-a.gz.metadata.json")
    assert not is_metadata_file("metadata/below/1.metadata.json")
    assert not is_metadata_file("data/1.metadata.json")


def test_the_id_of_a_table_is_in_the_first_bytes_of_its_metadata() -> None:
    text = b'{"format-version":2, "table-uuid" : "u-1", "location":'
    assert table_uuid(text) == "u-1"
    assert table_uuid(gzip.compress(text + b"x" * 1_000)[:80]) == "u-1"
    assert table_uuid(b"\x1f\x8bnothing") is None
    assert table_uuid(b"{}") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/t/data/a.parquet", "s3a://b/t//data/a.parquet"),
        ("file:/t/a.parquet", "/t/a.parquet"),
        ("file:///t/a b.parquet", "/t/a%20b.parquet"),
        ("/t/a%2520b", "/t/a b"),
        ("s3://one/t/A.parquet", "s3://two/t/a.PARQUET"),
        ("/t/\u00e9.parquet", "/t/e\u0301.parquet"),
    ],
)
def test_spellings_of_one_file_have_one_key(one: str, other: str) -> None:
    assert file_key(one) == file_key(other)
    assert base_key(one) == base_key(other)
    assert file_key(one) != file_key(f"{one}x")


def test_an_orphan_is_older_than_the_retention_and_than_three_days() -> None:
    now_ms = 10 * MIN_ORPHAN_AGE_MS
    assert young_since_ms(now_ms, now_ms) == now_ms - MIN_ORPHAN_AGE_MS
    assert young_since_ms(7, now_ms) == 7
