"""One cluster of two workers, a decider, a catalog and a Redis for all tests, which start the actors that they need."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.paths import ivy_dir
from tests.support.iceberg_rest_lake import rest_lake
from tests.support.large_files import written
from tests.support.redis_server import RedisServer
from tests.support.spark_cluster import SparkCluster, why_nothing_can_be_hidden
from tests.support.spark_world import World
from tests.support.stack import Process, Stack


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The cluster; workers see neither the folder of the actors' data nor that of their jars."""
    refused = why_nothing_can_be_hidden()
    if refused:
        pytest.skip(refused)
    folder = tmp_path_factory.mktemp("spark-cluster")
    for name in ("data", "events", "shared", "lake"):
        (folder / name).mkdir()
    hidden = (folder / "data", ivy_dir({}))
    cluster, catalog = SparkCluster(folder / "cluster", hidden), rest_lake(folder / "lake")
    with RedisServer(appendfsync="everysec") as redis, Stack(folder, redis) as stack, cluster, catalog as lake:
        cluster.start(workers=2)
        lake.catalog.create_namespace("db")
        for_iceberg = {
            "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options}),
            "LAKEWRIGHT_ROOTS": f"{stack.tables.as_uri()},catalog://lake",
        }
        stack.decider(LAKEWRIGHT_SWEEP_S="2", LAKEWRIGHT_DISCOVERY_S="0", **for_iceberg)
        yield World(stack, cluster, folder / "events", lake, for_iceberg)


@pytest.fixture(scope="session")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 128 files of 0.58 MB, of which two reach a MiB; tests rewrite others that share its files."""
    return written(tmp_path_factory.mktemp("many-files") / "table", files=128, file_bytes=660_000, seed=3)


@pytest.fixture(scope="module")
def many(world: World) -> Iterator[Process]:
    """Run one actor with both executors, which copies row groups of any size."""
    any_size = {"LAKEWRIGHT_MIN_ROW_GROUP_MIB": "0", "LAKEWRIGHT_MIN_COLUMN_CHUNK_KIB": "0"}
    with world.actor(
        "many", options={"spark.dynamicAllocation.minExecutors": 2}, **any_size, **world.for_iceberg
    ) as one:
        yield one
