"""A table known by a Unity catalog's name is read where the name leads, and one table's commits are no other's."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import CatalogFolder, StorageAccess, TableReader
from decider.storage.object_reads import ReadKind, ReadMeter
from shared.errors import InvalidInput, NoTable, OtherTable, PermanentError, RetryableError, Unsupported
from shared.paths.boundary import Boundary
from shared.table import Commit, Position, Snapshot
from tests.support.unity_server import UnityServer

T = TypeVar("T")
PLACE = "catalog://unity/main/sales/orders"
NAME = "main.sales.orders"


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


class NamedLake:
    """Tables in a folder, and a catalog in which one name leads to one of them."""

    def __init__(self, folder: Path, roots: tuple[str, ...] = ("catalog://unity",)) -> None:
        self.folder = folder
        self.server = UnityServer()
        self.access = StorageAccess(ReadMeter(), boundary=Boundary(roots))
        self.format = DeltaFormat(self.access, {"unity": self.server.catalog(folder.as_uri())})

    def write(self, table: str, number: int) -> None:
        write_deltalake(self.folder / table, pa.table({"id": [number]}), mode="append")

    def lead(self, table: str, table_id: str = "id-1", **fields: Any) -> None:
        self.server.put(NAME, (self.folder / table).as_uri(), table_id, **fields)

    def reader(self) -> TableReader:
        return self.format.open(PLACE)


@pytest.fixture
def lake(tmp_path: Path) -> NamedLake:
    lake = NamedLake(tmp_path)
    for number in range(2):
        lake.write("a", number)
    lake.lead("a")
    return lake


def changes(reader: TableReader, since: Snapshot) -> list[Commit]:
    async def found() -> list[Commit]:
        return [one async for one in reader.changes(since.position, since.metadata)]

    return run(found())


def test_each_refresh_costs_one_request_to_the_catalog(lake: NamedLake) -> None:
    reader = lake.reader()
    before = run(reader.snapshot())
    lake.server.requests.clear()
    lake.access.meter.counts.clear()
    assert run(reader.contains(before.position))
    assert changes(reader, before) == []
    assert lake.server.requests.total() == 1
    assert lake.access.meter.counts[ReadKind.GET] >= 2


@pytest.mark.parametrize(("table", "table_id"), [("b", "id-2"), ("b", "id-1"), ("a", "id-2")])
def test_commits_of_another_table_are_never_changes_of_this_one(lake: NamedLake, table: str, table_id: str) -> None:
    """The name was given to another table, the table moved, or it was dropped and another made at its place."""
    reader = lake.reader()
    before = run(reader.snapshot())
    for number in range(4):
        lake.write("b", number)
    lake.lead(table, table_id)
    with pytest.raises(OtherTable, match="id-1"):
        changes(reader, before)
    with pytest.raises(OtherTable):
        changes(reader, before)  # Until it is counted again.
    after = run(reader.live_files())
    assert after.totals[0] == (4 if table == "b" else 2)
    lake.write(table, 9)
    assert len(changes(reader, after.head)) == 1


def test_a_reader_that_has_read_nothing_yet_takes_no_commits_after_one_of_another_table(lake: NamedLake) -> None:
    before = run(lake.reader().snapshot())
    for number in range(4):
        lake.write("b", number)
    lake.lead("b")
    with pytest.raises(OtherTable, match="version 1 is of another table"):
        changes(lake.reader(), before)
    lake.lead("a")
    lake.write("a", 2)
    assert len(changes(lake.reader(), before)) == 1


def test_a_table_whose_files_are_gone_is_missing(lake: NamedLake) -> None:
    lake.lead("none")
    with pytest.raises(NoTable):
        run(lake.reader().snapshot())


def test_a_table_that_is_not_served_any_more_is_refused(lake: NamedLake) -> None:
    reader = lake.reader()
    before = run(reader.snapshot())
    lake.lead("a", properties={"delta.feature.catalogOwned-preview": "supported"})
    with pytest.raises(Unsupported, match="catalogOwned-preview"):
        changes(reader, before)


@pytest.mark.parametrize(("status", "error"), [(503, RetryableError), (403, PermanentError), (200, PermanentError)])
def test_a_catalog_that_fails_is_not_a_table_that_is_gone(lake: NamedLake, status: int, error: type[Exception]) -> None:
    reader = lake.reader()
    before = run(reader.snapshot())
    lake.server.fault = (status, b"<html>")
    with pytest.raises(error):
        changes(reader, before)
    lake.server.fault = None
    assert changes(reader, before) == []


def test_a_table_below_a_root_of_paths_is_known_by_its_path(tmp_path: Path) -> None:
    """Discovery finds it there, and it would be two tables with two states."""
    lake = NamedLake(tmp_path, roots=("catalog://unity", tmp_path.as_uri()))
    lake.write("a", 1)
    lake.lead("a")
    with pytest.raises(Unsupported, match="LAKEWRIGHT_ROOTS"):
        run(lake.reader().snapshot())


def test_a_catalog_that_is_not_configured_is_named(lake: NamedLake) -> None:
    for opened in (lake.format.open, lake.format.rewrites):
        with pytest.raises(InvalidInput, match="'other'; add it to LAKEWRIGHT_CATALOGS"):
            opened("catalog://other/main/sales/orders")


def test_a_catalog_lists_catalogs_schemas_and_delta_tables(lake: NamedLake) -> None:
    lake.server.put("main.sales.view", "file:///v", table_type="VIEW")
    lake.server.put("main.hr.people", "file:///p")
    lake.server.put("dev.a.t", "file:///t")
    catalog = lake.format.catalog("unity")
    assert catalog is not None
    assert lake.format.catalog("other") is None
    listed = {
        (): CatalogFolder(namespaces=("main", "dev")),
        ("main",): CatalogFolder(namespaces=("sales", "hr")),
        ("main", "sales"): CatalogFolder(tables=("orders",)),
        ("main", "sales", "orders"): CatalogFolder(),
    }
    for namespace, expected in listed.items():
        assert run(catalog.folder(namespace)) == expected
    assert run(catalog.has_table(("main", "sales", "orders")))
    assert not run(catalog.has_table(("main", "sales", "none")))
    assert not run(catalog.has_table(("main", "sales")))
    with pytest.raises(Unsupported, match="VIEW"):
        run(catalog.has_table(("main", "sales", "view")))


def test_a_namespace_that_is_gone_has_no_tables(lake: NamedLake) -> None:
    lake.server.fault = (404, b'{"error_code": "SCHEMA_NOT_FOUND"}')
    catalog = lake.format.catalog("unity")
    assert catalog is not None
    assert run(catalog.folder(("main", "sales"))) == CatalogFolder()


def test_everything_else_is_read_at_the_place_too(lake: NamedLake) -> None:
    DeltaTable(lake.folder / "a").delete("id = 0")
    DeltaTable(lake.folder / "a").create_checkpoint()
    reader = lake.reader()
    assert run(reader.checkpoint()) == 2
    assert run(reader.upkeep(["rewrite_manifests"])) == {}
    assert run(reader.checkpointed_files()) is not None
    assert len(run(reader.removals())) == 1
    assert [one.version for one in run(reader.retained()).positions] == [0, 1, 2]
    assert run(reader.snapshot_with_ranges("id")).metadata.sort_key is not None
    assert run(reader.snapshot(Position(0))).version == 0
