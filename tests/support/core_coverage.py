"""Measures the branches of the core in each process of pytest-xdist: `pytest -p tests.support.core_coverage -n 2 ...`.

Named by `-p`, it is loaded before any conftest.py, so that the lines that run while modules are loaded count. Each
process writes a file of its own before it reports that it is done, whatever ends it afterwards; `coverage combine` adds
them. Processes that tests start are not measured.
"""

import os
from pathlib import Path

import coverage
import pytest

_SETTINGS = Path(__file__).resolve().parents[2] / "pyproject.toml"
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
"""The process that only distributes tests is not measured."""

_measurement = coverage.Coverage(config_file=str(_SETTINGS), data_suffix=True) if _IS_WORKER else None
if _measurement:
    _measurement.start()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Save before pytest-xdist, whose hook wraps this one, reports the end."""
    if _measurement:
        _measurement.stop()
        _measurement.save()
