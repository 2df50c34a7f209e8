"""Catalogs and folders are searched alike, whatever they are called, and each table is found by its name."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from decider.formats.metadata_folders import MetadataFolders
from decider.formats.registry import TableFormats, table_formats
from decider.formats.scanner import CatalogScanner
from decider.formats.table_format import CatalogFolder, StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.errors import InvalidInput, NoTable
from shared.paths.locations import canonical_location, decoded_path, table_id
from tests.contract.formats.worlds import access
from tests.support.delta_tables import open_log

TABLES = {("sales", "orders"), ("sales", "eu", "orders ü"), ("hr", "people")}


class FakeCatalog:
    """A catalog with a few tables."""

    async def has_table(self, name: tuple[str, ...]) -> bool:
        return name in TABLES

    async def folder(self, namespace: tuple[str, ...]) -> CatalogFolder:
        below = [name[len(namespace) :] for name in TABLES if name[: len(namespace)] == namespace]
        return CatalogFolder(
            tuple({rest[0] for rest in below if len(rest) > 1}), tuple(rest[0] for rest in below if len(rest) == 1)
        )


class FakeFormat:
    """A format with one catalog."""

    def __init__(self, name: str, catalog: str) -> None:
        self.name, self._catalog = name, catalog

    def catalog(self, name: str) -> FakeCatalog | None:
        return FakeCatalog() if name == self._catalog else None

    def open(self, location: str) -> Any:
        return SimpleNamespace(location=location, format=self.name)


FORMATS: list[Any] = [FakeFormat("one", "other"), FakeFormat("two", "prod")]


def below(root: str) -> set[str]:
    scanner = CatalogScanner(FORMATS, location=root)

    async def walk(path: str) -> list[str]:
        found = await scanner.scan(path)
        if found.is_table:
            return [path]
        return [one for name in found.folders for one in await walk(f"{path}/{name}".lstrip("/"))]

    return set(asyncio.run(walk("")))


def test_a_catalog_is_searched_through_all_of_its_namespaces() -> None:
    assert below("catalog://prod") == {"sales/orders", "sales/eu/orders ü", "hr/people"}


def test_a_namespace_can_be_a_root_of_its_own() -> None:
    assert below("catalog://prod/sales") == {"orders", "eu/orders ü"}


def test_a_path_below_a_root_and_the_location_of_its_table_belong_together() -> None:
    scanner = CatalogScanner(FORMATS, location="catalog://prod/sales")
    location = scanner.location_of("eu/orders ü")
    assert location == "catalog://prod/sales/eu/orders%20%C3%BC"
    assert scanner.path_of(location) == "eu/orders ü"
    assert scanner.location_of("") == "catalog://prod/sales"
    assert asyncio.run(scanner.has_table("eu/orders ü"))
    assert not asyncio.run(scanner.has_table("eu"))
    assert not asyncio.run(CatalogScanner(FORMATS, location="catalog://prod").has_table(""))


def test_a_catalog_that_is_not_configured_is_an_error_and_has_no_tables() -> None:
    scanner = CatalogScanner(FORMATS, location="catalog://nowhere")
    with pytest.raises(InvalidInput, match="LAKEWRIGHT_CATALOGS"):
        asyncio.run(scanner.scan(""))
    assert not asyncio.run(scanner.has_table("sales/orders"))


def test_a_table_of_a_catalog_is_opened_by_the_format_whose_catalog_has_it() -> None:
    formats = TableFormats(access(), FORMATS)
    found = asyncio.run(formats.find("catalog://prod/sales/orders"))
    assert found is FORMATS[1]
    assert asyncio.run(formats.find("catalog://prod/sales/none")) is None
    with pytest.raises(NoTable):
        asyncio.run(formats.open("catalog://prod/sales/none").retained())
    assert isinstance(formats.scanner("catalog://prod"), CatalogScanner)


def test_a_folder_leads_to_each_table_that_has_its_metadata_there() -> None:
    folders = MetadataFolders()
    for _ in range(2):
        folders.note("catalog://a/db/t", "s3a://lake/db/t/metadata/00001-x.metadata.json")
    folders.note("catalog://b/db/t", "s3://lake/db/t/metadata/00002-y.metadata.json")
    folders.note("catalog://a/db/none", "")
    assert folders.tables("s3://lake/db/t/metadata") == ("catalog://a/db/t", "catalog://b/db/t")
    assert folders.tables("s3://lake/db/t") == ()


def test_the_folder_that_was_noted_first_is_forgotten_beyond_the_bound() -> None:
    folders = MetadataFolders(most=2)
    for name in "abc":
        folders.note(f"catalog://a/db/{name}", f"s3://lake/{name}/1.metadata.json")
    assert [len(folders.tables(f"s3://lake/{name}")) for name in "abc"] == [0, 1, 1]


NAMES = ("a b", "a%20b", "a%2520b", "a+b", "Z\u00fcrich", "Zu\u0308rich", "100%", "x#y", "q?z", "p:1,2", "g[a]{b}*")


def table_of_files(path: Path, files: int) -> None:
    """A log of one commit that names so many files."""
    (path / "_delta_log").mkdir(parents=True)
    schema = json.dumps({"type": "struct", "fields": []})
    adds = [
        {"add": {"path": f"{n}.parquet", "size": 1, "partitionValues": {}, "modificationTime": 0, "dataChange": True}}
        for n in range(files)
    ]
    first = {"metaData": {"id": path.name, "schemaString": schema, "partitionColumns": [], "configuration": {}}}
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, first, *adds]
    (path / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def test_discovery_and_the_log_reader_agree_on_every_folder(tmp_path: Path) -> None:
    root = tmp_path / "the lake (100%)"
    for number, name in enumerate(NAMES, 1):
        table_of_files(root / name, number)

    async def found() -> dict[str, int]:
        lake = table_formats(StorageAccess(ReadMeter())).scanner(str(root))
        top = await lake.scan("")
        counts = {}
        for folder in top.folders:
            assert (await lake.scan(folder)).is_table, folder
            location = lake.location_of(folder)
            assert lake.path_of(location) == folder
            snapshot = await open_log(location, meter=ReadMeter()).snapshot()
            assert snapshot.metadata.table_uuid == folder
            counts[location] = len(snapshot.files)
        return counts

    expected = {canonical_location(str(root / name)): number for number, name in enumerate(NAMES, 1)}
    assert asyncio.run(found()) == expected
    assert {Path(decoded_path(location)).name for location in expected} == set(NAMES)
    assert len(set(map(table_id, expected))) == len(NAMES)
