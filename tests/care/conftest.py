"""The long suite of table care: `make test-care` runs it, and `make test` skips it."""

import os
from pathlib import Path

import pytest

from tests.contract.conftest import engine, lab, spark
from tests.contract.conftest import pytest_collection_modifyitems as let_pyspark_leave_sockets

__all__ = ["engine", "lab", "spark"]

ASKED = "LAKEWRIGHT_TEST_CARE"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip each test of this folder unless the suite was asked for."""
    let_pyspark_leave_sockets(items)
    for item in items:
        if item.path.is_relative_to(HERE) and ASKED not in os.environ:
            item.add_marker(pytest.mark.skip(reason="no long suite asked for: make test-care"))
