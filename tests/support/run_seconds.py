"""Writes down how long a whole `make test` took, for `make size`.

The Makefile sets the variable only where no arguments select some of the tests, so the figure is always that of all.
"""

import os
import time
from pathlib import Path

import pytest

VARIABLE = "LAKEWRIGHT_TEST_SECONDS"
"""File that the seconds are written to."""
FILE = Path(".cache/test-seconds")
_STARTED = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STARTED] = time.monotonic()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the seconds in the process that started the others."""
    target, config = os.environ.get(VARIABLE), session.config
    if target and not hasattr(config, "workerinput"):
        path = config.rootpath / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{time.monotonic() - config.stash[_STARTED]:.0f}\n", encoding="utf-8")


def read_seconds(root: Path) -> str:
    """Return the seconds of the last whole run in a checkout; empty if there was none."""
    path = root / FILE
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""
