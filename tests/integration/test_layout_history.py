"""The layout over time follows from the table's own log, whoever wrote it, and ends where the log was cleaned up."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.live_decider import LiveDecider, WrittenTable

pytestmark = pytest.mark.redis


def files_at(path: Path, version: int) -> int:
    return len(DeltaTable(str(path), version=version).file_uris())


def history(decider: LiveDecider, **query: Any) -> Any:
    return decider.get("/v1/tables/a.t/layout-history", **query)


def test_each_point_is_what_another_reader_counts_at_that_version(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(4)
    table.delete("2026-01-01")
    DeltaTable(str(table.path)).optimize.compact()
    table.append(2)
    decider.register(table.path, "a.t")
    found = history(decider)
    assert found["complete"]
    assert [one["version"] for one in found["points"]] == list(range(table.version + 1))
    assert [one["files"] for one in found["points"]] == [
        files_at(table.path, version) for version in range(table.version + 1)
    ]
    assert [one["version"] for one in found["points"] if one["rewrite"]] == [table.version - 2]


def test_a_client_reads_only_what_is_new(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(6)
    decider.register(table.path, "a.t")
    assert [one["version"] for one in history(decider, commits=2)["points"]] == [5, 6]
    assert [one["version"] for one in history(decider, after=4)["points"]] == [5, 6]
    assert history(decider, after=6)["points"] == []
    assert history(decider, after=4)["complete"]


def test_a_log_that_was_cleaned_up_is_shown_as_far_as_it_goes(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(5)
    DeltaTable(str(table.path)).create_checkpoint()
    for version in range(3):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    table.append(1)
    decider.register(table.path, "a.t")
    found = history(decider)
    assert not found["complete"]
    assert found["points"][-1]["files"] == files_at(table.path, table.version)
    assert found["points"][0]["version"] >= 3


def test_a_table_that_was_not_read_has_no_history(decider: LiveDecider, tmp_path: Path) -> None:
    decider.post("/v1/tables", {"location": str(tmp_path / "none"), "name": "a.t"})
    decider.drain()
    assert history(decider) == {"version": None, "points": [], "complete": False}
