"""Which metadata may be of another entry of an Iceberg table, in another catalog."""

import gzip
from collections.abc import Iterable

import pytest

from shared.errors import Corrupt, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.other_entries import MAX_UNKNOWN, metadata_folder, read_other_entries
from shared.paths.stored_file import StoredFile
from tests.support.iceberg_store import LOCATION, IcebergStore
from tests.unit.shared.formats.iceberg.test_iceberg_vacuum_plan import drive


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
