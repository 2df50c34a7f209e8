"""Logs of these tests are kept and not printed: to draw a traceback takes longer than the test that it comes from."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield
