"""A decider that trusts no table to be the one it was, and a table of twelve small files."""

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    """A decider that trusts no table to be the one it was, and checks every table for drift at every look."""
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", -1)
    monkeypatch.setattr("decider.tracking.drift_check.DriftCheck._is_due", lambda *_: True)
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenTable:
    """A table of twelve small files in one partition, worth a job; written once and copied."""
    made = WrittenTable(tmp_path_factory.mktemp("written") / "orders", days=("2026-01-01",))
    made.append(11)
    return made


@pytest.fixture
def table(tmp_path: Path, written: WrittenTable) -> WrittenTable:
    """A copy of its own for each test."""
    made = copy.deepcopy(written)
    made.path = Path(shutil.copytree(written.path, tmp_path / "orders"))
    return made
