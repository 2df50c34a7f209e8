"""What tests of an actor share: its log lines are kept and not printed."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Drawing a traceback takes longer than the test that it comes from."""
    with capture_logs():
        yield
