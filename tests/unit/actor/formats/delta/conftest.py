"""What tests of a rewrite without a JVM share: footers are those of the fake table."""

from types import SimpleNamespace

import pytest

from actor.formats.parquet.copy_rules import CopyRule
from tests.support.fake_delta import FakeFooters


@pytest.fixture(autouse=True)
def _footers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.formats.delta.parquet_task.Footers", FakeFooters)


@pytest.fixture(autouse=True)
def _no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake table has no Parquet files to copy from."""
    monkeypatch.setattr("actor.formats.delta.rewriting.CopyRule", lambda *_: CopyRule(is_allowed=False))


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The room on the disk that the fake table lies on, as `free`."""
    free = {"free": 1 << 40}
    monkeypatch.setattr("actor.rewrite.checks.shutil.disk_usage", lambda _: SimpleNamespace(**free))
    return free
