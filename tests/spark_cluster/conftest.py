"""One cluster of two workers, one decider and one Redis for all tests; each test starts the actors that it needs."""

from collections.abc import Iterator

import pytest

from services.paths import ivy_dir
from tests.conftest import new_server
from tests.support.spark_cluster import SparkCluster, why_nothing_can_be_hidden
from tests.support.spark_world import World
from tests.support.stack import Stack


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The cluster; workers see neither the folder of the actors' data nor that of their jars."""
    refused = why_nothing_can_be_hidden()
    if refused:
        pytest.skip(refused)
    folder = tmp_path_factory.mktemp("spark-cluster")
    for name in ("data", "events", "shared"):
        (folder / name).mkdir()
    redis = new_server("everysec")
    hidden = (folder / "data", ivy_dir({}))
    try:
        with Stack(folder, redis) as stack, SparkCluster(folder / "cluster", hidden) as cluster:
            cluster.start(workers=2)
            stack.decider(LAKEWRIGHT_SWEEP_S="2")
            yield World(stack, cluster, folder / "events")
    finally:
        redis.close()
