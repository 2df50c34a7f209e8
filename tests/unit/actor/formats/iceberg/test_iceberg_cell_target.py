"""Commits of runs on cells: all groups or none."""

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.cell_table import CellTarget
from actor.formats.iceberg.commit import IcebergTarget
from actor.rewrite.model import Attempt


@pytest.mark.parametrize(("left", "committed"), [(2, 2), (1, 0), (0, 0)])
def test_a_run_of_which_others_took_a_group_is_not_committed(
    monkeypatch: pytest.MonkeyPatch, left: int, committed: int
) -> None:
    offered: Any = ("one", "another")
    why: Any = {"another": "input_gone"}
    monkeypatch.setattr(IcebergTarget, "begin", lambda _, groups: Attempt(groups[:left], set_aside=why))
    found = CellTarget.begin(CellTarget.__new__(CellTarget), offered)
    assert (found.groups, found.set_aside) == (offered[:committed], why)
