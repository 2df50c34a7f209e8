"""A decider in this process, a client of its queue, a folder for tables and a bucket, as most tests need them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from actor.queue_executor import SyncQueueExecutor, connect
from tests.support.go_programs import MINIO
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.minio import Minio


@pytest.fixture
def decider(redis_url: str) -> Iterator[LiveDecider]:
    """A decider on an empty Redis; it sweeps once a day."""
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


@pytest.fixture
def queue(redis_url: str) -> Iterator[SyncQueueExecutor]:
    """A client of the decider's queue."""
    client = connect(redis_url)
    yield SyncQueueExecutor(client, "default")
    client.close()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder for tables."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def minio(tmp_path: Path) -> Iterator[Minio]:
    """A server with the bucket `lake`; skips where it was not built."""
    server = Minio(MINIO.binary(), tmp_path / "minio").start()
    server.make_bucket("lake")
    yield server
    server.close()
