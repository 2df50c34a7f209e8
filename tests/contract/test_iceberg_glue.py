"""Tables of AWS Glue, which moto plays: found by name, followed, and read as those of any other catalog."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import httpx
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyiceberg.catalog.glue import GlueCatalog

from decider.formats.iceberg.catalogs import NamedCatalog
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings, IcebergTable
from shared.errors import NoTable, RetryableError
from shared.table import BEFORE_FIRST, Commit
from tests.contract.formats.worlds import access
from tests.support.time_limits import scaled

SCHEMA = pa.schema([("id", pa.int64())])
PLACE = "catalog://glue/sales/orders"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")


@dataclass
class Glue:
    """A running catalog, with the options of its clients, and the table sales.orders."""

    options: dict[str, str]
    catalog: GlueCatalog

    def append(self, start: int) -> None:
        rows = pa.table({"id": range(start, start + 10)}, schema=SCHEMA)
        self.catalog.load_table("sales.orders").append(rows)

    def open(self, place: str = PLACE) -> IcebergTable:
        return IcebergFormat(access(), IcebergSettings({"glue": self.options})).open(place)


@pytest.fixture
def glue(tmp_path: Path) -> Iterator[Glue]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    # moto keeps tables for as long as the process lives.
    httpx.post(f"{endpoint}/moto-api/reset", timeout=scaled(20)).raise_for_status()
    keys = {"glue.region": "us-east-1", "glue.access-key-id": "a", "glue.secret-access-key": "b"}
    options = {"type": "glue", "glue.endpoint": endpoint, "warehouse": tmp_path.as_uri(), **keys}
    catalog = GlueCatalog("glue", **options)
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA)
    try:
        yield Glue(options, catalog)
    finally:
        server.stop()


async def commits(table: IcebergTable) -> list[Commit]:
    metadata = (await table.snapshot()).metadata
    return [one async for one in table.changes(BEFORE_FIRST, metadata)]


def test_a_table_is_found_by_name_and_followed_commit_by_commit(glue: Glue) -> None:
    named = NamedCatalog("glue", glue.options)
    assert asyncio.run(named.folder(())).namespaces == ("sales",)
    assert asyncio.run(named.folder(("sales",))).tables == ("orders",)
    assert asyncio.run(named.has_table(("sales", "orders")))
    assert not asyncio.run(named.has_table(("sales", "lost")))
    table = glue.open()
    for number in range(3):
        glue.append(10 * number)
        assert len(asyncio.run(commits(table))) == number + 1
    assert sum(file.rows or 0 for file in asyncio.run(table.snapshot()).files) == 30


def test_a_table_that_is_gone_or_no_icebergs_is_no_table(glue: Glue) -> None:
    client = boto3.client(
        "glue",
        endpoint_url=glue.options["glue.endpoint"],
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",  # noqa: S106 - moto takes any
    )
    client.create_table(DatabaseName="sales", TableInput={"Name": "other", "Parameters": {"table_type": "HIVE"}})
    for name in ("lost", "other"):
        with pytest.raises(NoTable, match=f"glue.sales.{name}: there is no such table in the catalog"):
            asyncio.run(glue.open(f"catalog://glue/sales/{name}").snapshot())


def test_a_catalog_that_does_not_answer_is_asked_again(glue: Glue) -> None:
    glue.options |= {"glue.endpoint": "http://127.0.0.1:9", "glue.max-retries": "1"}
    with pytest.raises(RetryableError, match="catalog glue: "):
        asyncio.run(glue.open().snapshot())
