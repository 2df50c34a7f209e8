"""A table's metadata cannot choose which class, which host or which local file the decider uses for it."""

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from decider.formats.iceberg.catalogs import NamedCatalog
from decider.formats.iceberg.rest_client import LimitedRestCatalog
from decider.formats.iceberg.source import CatalogSource
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.errors import InvalidInput, LakewrightError, Unsupported
from shared.paths.boundary import Boundary
from tests.support.time_limits import scaled

HOSTILE = {
    "py-io-impl": "tests.support.absent.Evil",
    "s3.endpoint": "http://attacker.example",
    "s3.proxy-uri": "http://attacker.example",
    "s3.access-key-id": "theirs",
    "comment": "kept",
}


class _Answers:
    """A session of HTTP that answers every call with this document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def get(self, _url: str) -> Any:
        return SimpleNamespace(content=json.dumps(self._document).encode(), raise_for_status=lambda: None)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")
    made.create_namespace("db")
    made.create_table("db.t", schema=pa.schema([("id", pa.int64())]), properties={"s3.endpoint": "http://attacker"})
    yield made
    made.engine.dispose()


def options(catalog: SqlCatalog) -> dict[str, str]:
    return {"type": "sql", "uri": catalog.properties["uri"], "warehouse": catalog.properties["warehouse"]}


def test_the_files_of_a_sql_catalogs_table_are_read_with_the_options_of_the_setting(catalog: SqlCatalog) -> None:
    loaded = asyncio.run(NamedCatalog("lake", options(catalog)).load(("db", "t")))
    assert loaded.raw["properties"]["s3.endpoint"] == "http://attacker", "the table says so"
    assert "s3.endpoint" not in loaded.io.properties


def test_the_files_of_a_rest_catalogs_table_are_read_with_what_was_set_and_vended(catalog: SqlCatalog) -> None:
    table = catalog.load_table("db.t")
    rest: Any = object.__new__(LimitedRestCatalog)
    rest._given = {"uri": "http://catalog"}
    rest.properties = {"uri": "http://catalog", "py-io-impl": "tests.support.absent.Evil"}  # As by /v1/config.
    rest._auth_manager = None
    rest._namespace_separator = "."
    rest._session = _Answers(
        {
            "metadata-location": table.metadata_location,
            "metadata": {**json.loads(table.metadata.model_dump_json()), "properties": HOSTILE},
            "config": {"s3.session-token": "vended", "py-io-impl": "tests.support.absent.Evil"},
        }
    )
    rest.uri = "http://catalog"
    loaded = rest.load_table("db.t")
    assert loaded.raw["properties"] == HOSTILE, "the table says so"
    assert loaded.io.properties.get("s3.session-token") == "vended"
    assert not loaded.io.properties.keys() & HOSTILE.keys()


@pytest.mark.parametrize("has_root", [True, False])
@pytest.mark.parametrize("kind", ["outside", "pipe", "link"])
def test_a_metadata_file_that_a_table_names_is_a_plain_file_below_the_roots(
    catalog: SqlCatalog, tmp_path: Path, kind: str, has_root: bool
) -> None:
    roots = (f"file://{tmp_path}/lake",) if has_root else ("iceberg://lake",)
    access = StorageAccess(ReadMeter(), boundary=Boundary(roots, real_path=os.path.realpath))
    source = CatalogSource(NamedCatalog("lake", options(catalog)), ("db", "t"), "iceberg://lake/db/t", access)
    head = asyncio.run(source.head())
    assert asyncio.run(source.read(head.records.path))
    (tmp_path / "secret").write_text("secret")
    place = tmp_path / "lake" / "db" / "t" / "metadata" / "hostile"
    match kind:
        case "outside":
            place = tmp_path / "secret"
        case "pipe":
            os.mkfifo(place)
        case _:
            place.symlink_to(tmp_path / "secret")
    for path in (str(place), f"file://{place}", f"file:{place}"):
        with pytest.raises(LakewrightError) as refused:
            asyncio.run(asyncio.wait_for(source.read(path), scaled(10)))
        assert isinstance(refused.value, InvalidInput if kind == "pipe" else Unsupported)


def test_newest_metadata_that_are_no_plain_file_wait_for_no_one(catalog: SqlCatalog) -> None:
    path = catalog.load_table("db.t").metadata_location.removeprefix("file://")
    Path(path).unlink()
    os.mkfifo(path)
    with pytest.raises(InvalidInput, match="no plain file"):
        asyncio.run(asyncio.wait_for(NamedCatalog("lake", options(catalog)).load(("db", "t")), scaled(10)))


@pytest.mark.parametrize("path", ["http://attacker.example/x", "hf://datasets/x", "hdfs://attacker.example/x"])
def test_a_metadata_file_elsewhere_than_in_known_stores_is_not_requested(catalog: SqlCatalog, path: str) -> None:
    source = CatalogSource(
        NamedCatalog("lake", options(catalog)),
        ("db", "t"),
        "iceberg://lake/db/t",
        replace(StorageAccess(ReadMeter()), boundary=Boundary()),
    )
    with pytest.raises(Unsupported):
        asyncio.run(source.read(path))
