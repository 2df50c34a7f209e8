"""The cluster, which all files share, and the release in it, which each file gets with the same values."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import built_images
from tests.cluster.lake import Lake, prepare
from tests.cluster.programs import FOLDER, missing
from tests.cluster.release import Release


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with MinIO and the pod that writes, or a skip with the reason why there is none."""
    if reason := missing():
        pytest.skip(reason)
    for old in FOLDER.glob("run-*"):  # Kept for its logs until now.
        shutil.rmtree(old)
    with closing(Cluster(FOLDER / f"run-{time.time_ns()}")) as made:
        with built_images() as docker:
            made.start(docker)
        prepare(made)
        yield made


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Release:
    """The release with its usual values, whatever the file before left."""
    made = Release(cluster, Lake(cluster))
    made.install()
    made.lake.notify()
    return made


@pytest.fixture(scope="module")
def lake(release: Release) -> Lake:
    """The lake that the release serves."""
    return release.lake
