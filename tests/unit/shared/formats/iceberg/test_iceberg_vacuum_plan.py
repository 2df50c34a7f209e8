"""What a walk through metadata reads, and which files it finds: those of the table, that no snapshot needs."""

import gzip
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

import pytest

from shared.errors import Corrupt
from shared.formats.iceberg.metadata import MetadataRecords, StatisticsFile, parse_metadata
from shared.formats.iceberg.names import MAIN
from shared.formats.iceberg.orphans import NotOrphan
from shared.formats.iceberg.retention import plan_expiry
from shared.formats.iceberg.vacuum_plan import (
    MAX_METADATA_FILES,
    Stage,
    StoreListing,
    Unneeded,
    find_unneeded,
    name_below,
    need_newer,
    read_past,
)
from shared.paths.stored_file import StoredFile
from tests.support.iceberg_store import LOCATION, IcebergStore


def drive(store: IcebergStore, walk: Generator[Any, Any, Any]) -> Any:
    try:
        wanted = next(walk)
        while True:
            wanted = walk.send([store.read(path, wanted.length) for path in wanted.paths])
    except StopIteration as end:
        return end.value


def found_in(store: IcebergStore, listing: Iterable[StoredFile] | None = None, now_ms: int | None = None) -> Unneeded:
    """Find the files to delete of a table that keeps nothing but its newest snapshots."""
    versions = drive(store, read_past(store.refresh()))
    at_ms = store.now_ms + 10 if now_ms is None else now_ms
    wanted = None if listing is None else StoreListing(tuple(listing), at_ms)
    result: Unneeded = drive(store, find_unneeded(versions, plan_expiry(versions, at_ms, at_ms), wanted))
    return result


@pytest.fixture
def store() -> IcebergStore:
    made = IcebergStore()
    first = made.commit(2)
    made.statistics(first)
    made.commit(1, sorted(made.made[first].live)[:1])
    return made


def test_metadata_of_the_past_are_read_in_their_order_without_those_that_are_gone_or_anothers(
    store: IcebergStore,
) -> None:
    head = store.refresh()
    first, second, *_, last = head.records.previous
    del store.files[first]
    store.files[second] = store.files[second].replace(b"a-table", b"another")
    store.files[last] = gzip.compress(store.files[last])
    versions = drive(store, read_past(head))
    assert [one.updated_ms for one in versions] == sorted(one.updated_ms for one in versions)
    assert len(versions) == len(head.records.previous) - 1
    assert versions[-1] is head
    for damage in (b"{", b"[]", gzip.compress(b"{}")[:12]):
        store.files[last] = damage
        with pytest.raises(Corrupt, match="the metadata are no JSON"):
            drive(store, read_past(head))
    assert parse_metadata(b"{}", "t") == {}


def test_what_only_an_expired_snapshot_needs_is_found_with_its_statistics(store: IcebergStore) -> None:
    first = min(store.snapshots)
    statistics = {path for path in store.files if path.endswith(".stats")}
    found = found_in(store)
    newest = store.head_of(MAIN)
    assert newest is not None
    assert {one.path for one in found.ordered()} == (store.made[first].needs - store.made[newest].needs) | statistics
    assert [one.stage for one in found.ordered()] == [Stage.CONTENT] * 2 + [Stage.MANIFEST, Stage.LIST]


def test_a_statistics_file_that_a_snapshot_has_is_needed_by_whichever_name_it_had_before(store: IcebergStore) -> None:
    versions = drive(store, read_past(store.refresh()))
    (before,) = {one for version in versions for one in version.records.statistics}
    newest = store.head_of(MAIN)
    assert newest is not None
    moved = replace(versions[-1], records=MetadataRecords(statistics=(StatisticsFile(newest, before.path, 1),)))
    found = drive(store, find_unneeded([*versions, moved], plan_expiry([*versions, moved], store.now_ms + 9, 0)))
    assert before.path not in {one.path for one in found.ordered()}


def test_manifests_of_gone_snapshots_that_are_missing_were_deleted_before(store: IcebergStore) -> None:
    first = min(store.snapshots)
    newest = store.head_of(MAIN)
    assert newest is not None
    (manifest,) = store.made[first].manifests.keys() - store.made[newest].manifests.keys()
    del store.files[manifest]
    found = {one.path for one in found_in(store).ordered()}
    assert manifest not in found
    assert store.made[first].list in found


def test_what_a_snapshot_that_is_gone_inside_the_retention_needed_stays_if_its_metadata_are_there() -> None:
    store = IcebergStore()
    first = store.commit()
    store.now_ms += 10
    second = store.commit(1, sorted(store.made[first].live))
    statistics = store.statistics(second)
    store.now_ms += 10
    before_ms = store.now_ms
    newest = store.commit(1, sorted(store.made[second].live))
    store.forget({first, second})
    found = {one.path for one in found_in(store, now_ms=before_ms).ordered()}
    assert not found & {*store.made[second].needs, statistics}
    assert found == store.made[first].needs - store.made[second].needs
    (manifest,) = store.made[second].manifests.keys() - store.made[newest].manifests.keys()
    for path in (manifest, store.made[second].list):
        del store.files[path]
        assert found_in(store, now_ms=before_ms).ordered()


def test_a_snapshot_that_came_since_has_to_be_readable(store: IcebergStore) -> None:
    found = found_in(store)
    newer = store.commit()
    path = store.made[newer].list
    body = store.files.pop(path)
    with pytest.raises(Corrupt, match="a snapshot that stays needs it"):
        drive(store, need_newer(found, store.refresh()))
    store.files[path] = body
    drive(store, need_newer(found, store.refresh()))
    del store.files[path]
    drive(store, need_newer(found, store.refresh()))  # It was read.


def test_nothing_more_is_read_once_nothing_is_left_to_delete() -> None:
    store = IcebergStore()
    store.commit()
    read: list[str] = []
    store.before = read.append
    assert found_in(store).ordered() == ()
    # The head, the list, and one read of the metadata of the past.
    assert read.count("read") == len(store.refresh().records.previous) + 1


def test_a_listing_without_old_files_leaves_no_orphan(store: IcebergStore) -> None:
    young = StoredFile("data/a.parquet", 1, store.now_ms + 99)
    old = StoredFile("data/b.parquet", 1, 0)
    strange = StoredFile("elsewhere/b.avro", 1, 0)
    needed = [replace(old, name=path.removeprefix(f"{LOCATION}/")) for path in sorted(store.files)]
    found = found_in(store, [young, old, strange, *needed])
    orphans = [one for one in found.ordered() if one.stage is Stage.ORPHAN]
    assert [(one.path, one.size_bytes) for one in orphans] == [(f"{LOCATION}/data/b.parquet", 1)]
    assert all(found.has(one) for one in found.ordered())
    found.need("s3a://lake/u/data/B.parquet")
    assert not found.has(orphans[0])
    assert found.kept[NotOrphan.YOUNG] == 1
    assert found.unrecognized == 1, "metadata files are recognized"
    assert found.kept[NotOrphan.NEEDED] > 1


def test_a_folder_with_metadata_that_cannot_be_judged_has_no_orphans(store: IcebergStore) -> None:
    old = StoredFile("data/b.parquet", 1, 0)
    gone = StoredFile("metadata/gone.metadata.json", 1, -1)
    assert "may be of another table" in found_in(store, [old, gone]).foreign
    many = [replace(gone, name=f"metadata/m{one}.metadata.json") for one in range(MAX_METADATA_FILES + 1)]
    assert "not known to it" in found_in(store, [old, *many]).foreign


@pytest.mark.parametrize(
    ("location", "path", "name"),
    [
        ("s3://b/t", "s3://b/t/data/a", "data/a"),
        ("s3://b/t", "s3a://b/t/data/a%20b", "data/a%20b"),
        ("file:///t", "/t/data/a", "data/a"),
        ("file:/t", "file:///t/a", "a"),
        ("hdfs://n/t", "hdfs://n/t/a", "a"),
        ("s3://b/t", "s3://other/t/a", None),
        ("s3://b/t", "s3://b/t2/a", None),
        ("s3://b/t", "s3://b/t", None),
        ("s3://b/t", "s3://b/t/../u/a", None),
        ("hdfs://n/t", "hdfs://m/t/a", None),
        ("s3://b/t", "s3://b/%2e%2e/a", None),
    ],
)
def test_a_file_of_the_table_is_one_below_its_folder(location: str, path: str, name: str | None) -> None:
    assert name_below(location, path) == name


def test_a_candidate_outside_of_the_table_is_none() -> None:
    found = Unneeded(LOCATION)
    found.offer("s3://lake/other/a", 1, Stage.CONTENT)
    assert (found.outside, found.ordered()) == (1, ())


@pytest.mark.parametrize(
    ("candidate", "needed"),
    [
        ("data/p=1/./a.parquet", f"{LOCATION}/data/p=1/a.parquet"),
        ("data/p=1/a.parquet", f"{LOCATION}/data/p=2/../p=1/a.parquet"),
        ("data/p=1/a.parquet", f"{LOCATION}/data/p=2/%2E%2E/p=1/a.parquet"),
        ("data/p=1/a.parquet", "viewfs://cluster/mount/data/p=1/a.parquet"),
        ("data/p=1/a.parquet", "s3://arn:aws:s3:eu-west-1:1:accesspoint/lake/t/data/p=1/A.parquet"),
        ("a.parquet", "file:/a.parquet"),
        ("at:1/b:2.parquet", f"{LOCATION}/at:1/b:2.parquet"),
        ("b:2.parquet", f"{LOCATION}/b:2.parquet"),
    ],
)
def test_a_candidate_stays_that_is_needed_by_another_path_to_the_tables_folder(candidate: str, needed: str) -> None:
    found = Unneeded(LOCATION)
    found.offer(f"{LOCATION}/{candidate}", 1, Stage.CONTENT)
    (file,) = found.ordered()
    found.need(f"{LOCATION}/data/p=2/b.parquet")
    assert found.has(file)
    found.need(needed)
    assert (found.has(file), found.ordered()) == (False, ())


def test_a_file_of_the_same_name_in_another_folder_is_another_file() -> None:
    found = Unneeded(LOCATION)
    for one in ("data/p=1/0.parquet", "data/p=2/0.parquet", "data/p=1/x0.parquet"):
        found.offer(f"{LOCATION}/{one}", 1, Stage.CONTENT)
        found.offer(f"{LOCATION}/{one}".replace("s3:", "s3a:"), 1, Stage.CONTENT)
    found.need(f"{LOCATION}/data/p=2/0.parquet")
    found.need(f"{LOCATION}/p=1/0.parquet")
    assert [one.path.removeprefix(f"{LOCATION}/") for one in found.ordered()] == [
        "data/p=1/0.parquet",
        "data/p=1/x0.parquet",
    ]


def test_a_statistics_file_of_two_snapshots_stays_with_either() -> None:
    store = IcebergStore()
    first = store.commit()
    store.now_ms += 10
    second = store.commit(1, sorted(store.made[first].live))
    path = store.statistics(second)
    shared = {"snapshot-id": first, "statistics-path": path, "file-size-in-bytes": 1}
    store.raw["statistics"] = [*store.raw["statistics"], shared]
    store.change()
    store.now_ms += 10
    before_ms = store.now_ms
    store.commit(1, sorted(store.made[second].live))
    store.forget({first, second})
    assert path not in {one.path for one in found_in(store, now_ms=before_ms).ordered()}


def test_a_statistics_file_of_a_snapshot_that_another_entry_has_stays(store: IcebergStore) -> None:
    versions = drive(store, read_past(store.refresh()))
    (path,) = {one.path for version in versions for one in version.records.statistics}
    newest = store.head_of(MAIN)
    assert newest is not None
    shared = MetadataRecords(statistics=(StatisticsFile(newest, path, 1),))
    other = replace(versions[-1], records=shared, snapshots={newest: versions[-1].snapshots[newest]})
    expiry = plan_expiry(versions, store.now_ms + 9, store.now_ms + 9)
    assert path in {one.path for one in drive(store, find_unneeded(versions, expiry)).ordered()}
    assert path not in {one.path for one in drive(store, find_unneeded(versions, expiry, None, [other])).ordered()}


def test_a_table_without_snapshots_has_nothing_to_delete() -> None:
    store = IcebergStore()
    assert found_in(store).ordered() == ()
