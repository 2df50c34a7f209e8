"""What all these tests share: logs are kept and not printed, and footers are those of the fake table."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from tests.support.fake_delta import FakeFooters


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """To draw a traceback takes longer than the test that it comes from."""
    with capture_logs():
        yield


@pytest.fixture(autouse=True)
def _footers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.formats.delta.write.Footers", FakeFooters)
