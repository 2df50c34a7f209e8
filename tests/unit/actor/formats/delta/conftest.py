"""What tests of a rewrite without a JVM share: footers are those of the fake table."""

import pytest

from tests.support.fake_delta import FakeFooters


@pytest.fixture(autouse=True)
def _footers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.formats.delta.write.Footers", FakeFooters)
