"""A stack of real processes for each test, with the logs shown if it fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_server import RedisServer
from tests.support.stack import Stack


@pytest.fixture
def stack(tmp_path: Path, own_redis_server: RedisServer) -> Iterator[Stack]:
    made = Stack(tmp_path, own_redis_server)
    made.tables.mkdir()
    try:
        yield made
    finally:
        made.close()
        for process in made.processes:
            # Shown by pytest only if the test failed.
            print(f"--- {process.log.name}\n{process.log.read_text()[-4000:]}")
