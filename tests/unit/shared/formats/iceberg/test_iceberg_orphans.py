"""Which listed files may be orphans of an Iceberg table, and which metadata may be of another entry."""

import gzip
from collections.abc import Iterable

import pytest

from shared.errors import Corrupt, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.orphans import (
    MIN_ORPHAN_AGE_MS,
    TableFolders,
    base_key,
    file_key,
    is_metadata_file,
    table_uuid,
    young_since_ms,
)
from shared.formats.iceberg.other_entries import MAX_UNKNOWN, metadata_folder, read_other_entries
from shared.formats.table_marks import ICEBERG, tables_of_others
from shared.paths.stored_file import StoredFile
from tests.support.iceberg_store import LOCATION, IcebergStore
from tests.unit.shared.formats.iceberg.test_iceberg_vacuum_plan import drive

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


@pytest.fixture
def store() -> IcebergStore:
    made = IcebergStore()
    made.commit()
    made.commit()
    return made


def others(store: IcebergStore, listed: Iterable[StoredFile] | None = None) -> tuple[TableHead, ...]:
    head = store.refresh()
    folder = metadata_folder(head)
    found: tuple[TableHead, ...] = drive(
        store, read_other_entries(head, folder, tuple(store.list_metadata(folder) if listed is None else listed))
    )
    return found


def paths(found: Iterable[TableHead]) -> list[str]:
    return [one.records.path for one in found]


def test_newer_metadata_that_the_table_does_not_name_are_of_another_entry(store: IcebergStore) -> None:
    assert others(store) == ()
    old = store.other_entry(min(store.snapshots))
    store.times[old] = 0
    assert others(store) == ()
    other = store.other_entry(min(store.snapshots))
    (found,) = others(store)
    assert (found.records.path, found.snapshots.keys()) == (other, {min(store.snapshots)})
    store.files[other] = gzip.compress(store.files[other])
    assert paths(others(store)) == [other]


def test_earlier_metadata_of_another_entry_are_not_read_as_one_more(store: IcebergStore) -> None:
    early = store.other_entry(min(store.snapshots))
    store.raw["metadata-log"] = [*store.raw["metadata-log"], {"timestamp-ms": 1, "metadata-file": early}]
    store.now_ms += 1
    late = store.other_entry(max(store.snapshots))
    store.raw["metadata-log"] = store.raw["metadata-log"][:-1]
    store.change()
    assert paths(others(store)) == [late]


def test_metadata_of_other_tables_and_damaged_ones_are_no_entry(store: IcebergStore) -> None:
    other, damaged, view = (store.other_entry(min(store.snapshots)) for _ in range(3))
    store.files[other] = store.files[other].replace(b"a-table", b"another")
    store.files[damaged] = store.files[damaged][:100]
    store.files[view] = b'{"view-uuid": "a-table"}'
    listed = [*store.list_metadata(f"{LOCATION}/metadata"), StoredFile("gone.metadata.json", 1, store.now_ms)]
    assert others(store, listed) == ()


def test_metadata_that_cannot_be_judged_delete_nothing(store: IcebergStore) -> None:
    other = store.other_entry(min(store.snapshots))
    body = store.files[other]
    store.files[other] = body.replace(b'"format-version": 2', b'"format-version": 9')
    with pytest.raises(Unsupported, match="format version 9"):
        others(store)
    store.files[other] = body.replace(b'"location"', b'"place"')
    with pytest.raises(Corrupt, match="cannot be read"):
        others(store)
    many = [StoredFile(f"m{one}.metadata.json", 1, store.now_ms) for one in range(MAX_UNKNOWN + 1)]
    with pytest.raises(Unsupported, match="two catalogs; nothing is deleted"):
        others(store, many)


def test_the_folder_of_the_metadata_is_that_of_the_newest_file(store: IcebergStore) -> None:
    store._current = "s3://other/place/1.metadata.json"
    assert metadata_folder(store.refresh()) == "s3://other/place"
    store._current = ""
    assert metadata_folder(store.refresh()) == f"{LOCATION}/metadata"
