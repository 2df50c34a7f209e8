"""A catalog is searched like a root: its namespaces are folders, and each table is found by its name."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from decider.formats.registry import TableFormats
from decider.formats.scanner import CatalogScanner
from decider.formats.table_format import CatalogFolder
from shared.errors import InvalidInput, NoTable
from tests.contract.formats.worlds import access

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
