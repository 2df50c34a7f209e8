"""The long suite of table care: `make test-care` runs it, and `make test` skips it."""

from pathlib import Path

import pytest

from tests.contract.conftest import engine, lab, proofreader, spark
from tests.contract.conftest import pytest_collection_modifyitems as let_pyspark_leave_sockets

__all__ = ["engine", "lab", "proofreader", "spark"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test of this folder as one of the suite."""
    let_pyspark_leave_sockets(items)
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.long("care"))
