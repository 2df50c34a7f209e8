"""A connection as a reader's process has it."""

import duckdb
import pytest

from actor.proofread.process import connect


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    return connect(str(tmp_path_factory.mktemp("scratch")))
