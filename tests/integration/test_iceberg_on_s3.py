"""Iceberg tables in a bucket, of a catalog and in a folder that has none: followed, decided, rewritten, vacuumed."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from shared.formats.options import FormatOptions
from shared.paths.store_options import StoreOptions
from tests.support.iceberg_server import JARS, iceberg_server
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.minio import KEYS, REGION, Minio
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack, lakewright
from tests.support.waiting import until

pytestmark = [
    pytest.mark.s3,
    pytest.mark.timeout(900),
    pytest.mark.long("iceberg"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path, minio: Minio) -> Iterator[SqlCatalog]:
    """A catalog in a file, whose tables are in the bucket."""
    made = SqlCatalog("lake", **catalog_options(tmp_path, minio))
    made.create_namespace("db")
    made.create_table("db.t", SCHEMA)
    yield made
    made.engine.dispose()


def catalog_options(folder: Path, minio: Minio) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": "s3://lake/w", **io_options(minio)}


def io_options(minio: Minio) -> dict[str, str]:
    keys = {f"s3.{name.replace('_', '-')}": value for name, value in KEYS.items()}
    return {"s3.endpoint": minio.url, "s3.region": REGION, **keys}


def append(catalog: Catalog, commits: int) -> Table:
    table = catalog.load_table("db.t")
    for number in range(commits):
        table.append(pa.table({"id": range(10 * number, 10 * number + 10)}, schema=SCHEMA))
    return table


def without_catalog(minio: Minio, table: Table) -> str:
    """Name the newest metadata as tables without a catalog do, and return where the table is."""
    key = table.metadata_location.removeprefix("s3://lake/")
    folder = key.rpartition("/")[0]
    minio.client.copy_object(Bucket="lake", CopySource=f"lake/{key}", Key=f"{folder}/v1.metadata.json")
    minio.client.put_object(Bucket="lake", Key=f"{folder}/version-hint.text", Body=b"1")
    return f"s3://lake/{folder.removesuffix('/metadata')}"


@pytest.mark.redis
def test_a_decider_follows_a_table_of_a_catalog_and_one_without_in_a_bucket(
    tmp_path: Path, minio: Minio, catalog: SqlCatalog, redis_url: str
) -> None:
    table = append(catalog, 4)
    folder = without_catalog(minio, table)
    formats = FormatOptions({"lake": catalog_options(tmp_path, minio)}, iceberg_folders=True)
    roots = ("catalog://lake", "s3://lake")
    settings = decider_settings(
        redis_url, roots=roots, formats=formats, store_options=StoreOptions({"": minio.options()})
    )
    with LiveDecider(settings) as decider:
        for name, location in (("named", "catalog://lake/db/t"), ("folder", folder)):
            decider.post("/v1/tables", {"location": location, "name": name}).raise_for_status()
        decider.drain()
        for name in ("named", "folder"):
            assert [state.files for state in decider.partitions(name).values()] == [4], name
        append(catalog, 2)
        decider.sweep()
        assert [state.files for state in decider.partitions("named").values()] == [6]
        assert [state.files for state in decider.partitions("folder").values()] == [4]
        catalog.load_table("db.t").overwrite(pa.table({"id": [1]}, schema=SCHEMA))
        wanted = {"dry_run": True, "retain_hours": 0, "force": True}
        refused = decider.post("/v1/tables/named/actions/vacuum", wanted)
        assert (refused.status_code, "named and folder are one table" in refused.text) == (409, True)
        decider.client.delete("/v1/tables/folder").raise_for_status()
        plan: Any = decider.post("/v1/tables/named/actions/vacuum", wanted).json()
        assert "would expire" in plan["message"]
        gone = {one["name"] for one in plan["deletions"] if one["name"].startswith("data/")}
        assert len(gone) == 2, "four of the six files are needed by the metadata of the folder"


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["sql", "rest"])
def test_an_actor_that_may_not_use_s3_says_what_to_set(tmp_path: Path, minio: Minio, kind: str) -> None:
    with served(kind, tmp_path, minio) as (options, variables):
        catalog = load_catalog("lake", **options)
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA)
        append(catalog, 3)
        environment = {**os.environ, "LAKEWRIGHT_CATALOGS": json.dumps({"lake": options}), **variables}
        environment.pop("LAKEWRIGHT_ALLOW_S3", None)
        done = lakewright("optimize", "lake.db.t", "--yes", "--mode", "full", env=environment, seconds=240)
        print(done.stdout[-3000:], done.stderr[-3000:])
        assert done.returncode != 0
        assert "set LAKEWRIGHT_ALLOW_S3=true for the actors" in " ".join((done.stdout + done.stderr).split())
        assert "Traceback" not in done.stderr
        assert live(catalog) == 3


@contextmanager
def served(kind: str, folder: Path, minio: Minio) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yield a catalog's options for Lakewright, and what an actor's environment needs for it beside those of stores."""
    if kind == "sql":
        (driver,) = JARS.fetched().glob("*sqlite-jdbc*.jar")
        own = {"jvm.uri": f"jdbc:sqlite:{folder}/catalog.db"}
        yield catalog_options(folder, minio) | own, {"SPARK_DIST_CLASSPATH": str(driver)}
        return
    with iceberg_server(folder, {"warehouse": "s3://lake/w"}, StoreOptions({"": minio.options()})) as uri:
        yield {"type": "rest", "uri": uri, **io_options(minio)}, {}


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.redis
@pytest.mark.parametrize("kind", ["sql", "rest"])
def test_an_actor_rewrites_and_vacuums_a_table_in_a_bucket(
    tmp_path: Path, minio: Minio, own_redis_server: RedisServer, kind: str
) -> None:
    """Rows are those of the writer, which goes on meanwhile; in the end the bucket holds the live files alone."""
    with served(kind, tmp_path, minio) as (options, variables):
        catalog = load_catalog("lake", **options)
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA)
        append(catalog, 6)
        environment = {
            "LAKEWRIGHT_CATALOGS": json.dumps({"lake": options}),
            "LAKEWRIGHT_ROOTS": "catalog://lake",
            "LAKEWRIGHT_DISCOVER": "active",
            "LAKEWRIGHT_POLICY": "target-file-size=64kb,min-input-files=2,fan-in=2",
            "LAKEWRIGHT_ALLOW_S3": "true",
            "LAKEWRIGHT_SWEEP_S": "3",
            "LAKEWRIGHT_STORE_OPTIONS": json.dumps(minio.options()),
            **variables,
        }
        with Stack(tmp_path, own_redis_server, environment) as stack:
            stack.decider()
            stack.post("/v1/tables", {"location": "catalog://lake/db/t", "name": "t"}).raise_for_status()
            stack.actor()
            until("the files are one", lambda: live(catalog) == 1, seconds=120)
            catalog.load_table("db.t").delete("id = 3")
            append(catalog, 6)
            stack.post("/v1/tables/t/optimize", {"mode": "full"}).raise_for_status()
            until("the files are one again", lambda: live(catalog) == 1, seconds=120)
            # The first copy of a kind, and what was encoded because of deletes: later copies may be unverified on S3.
            compared_by = rewrites(catalog)
            assert (compared_by[0], compared_by[-1]) == ("rows", "rows")
            rows = catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()
            assert sorted(rows) == sorted(2 * [*range(60)])[:6] + sorted(2 * [*range(60)])[7:]
            everything = {"orphans": True, "retain_hours": 0, "force": True}
            stack.post("/v1/tables/t/actions/vacuum", everything).raise_for_status()
            needed = {file.file.file_path for file in catalog.load_table("db.t").scan().plan_files()}
            until("the bucket holds the live file alone", lambda: data_files(minio) == needed, seconds=120)
            assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == sorted(rows)


def rewrites(catalog: Catalog) -> list[str]:
    """Return what each rewrite says of proofreading, oldest first."""
    found = [snapshot.summary for snapshot in catalog.load_table("db.t").snapshots()]
    return [str(one["lakewright.proofread"]) for one in found if one and "lakewright.proofread" in one.model_dump()]


def live(catalog: Catalog) -> int:
    return len(list(catalog.load_table("db.t").scan().plan_files()))


def data_files(minio: Minio) -> set[str]:
    """Return the Parquet files in the bucket."""
    listed = minio.client.list_objects_v2(Bucket="lake")["Contents"]
    return {f"s3://lake/{one['Key']}" for one in listed if one["Key"].endswith(".parquet")}
