"""A table with a sort order against a live decider: decisions, jobs, dry run and command, from the log alone."""

import random
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.queue.model import JobState
from tests.support.live_decider import LiveDecider
from tests.support.table_lives import alter

pytestmark = pytest.mark.redis

KEYS = 1_000_000


class KeyedTable:
    """A table of full files of random keys: 64 KiB is their target."""

    def __init__(self, path: Path, seed: int = 1) -> None:
        self.path = path
        self._dice = random.Random(seed)
        self.append()
        alter(self, {"lakewright.target-file-size": "64kb", "lakewright.max-depth": "2"})  # type: ignore[arg-type]

    def append(self) -> None:
        dice = self._dice
        keys = pa.array(dice.randrange(KEYS) for _ in range(3_000))
        texts = pa.array(f"{dice.getrandbits(128):032x}" for _ in range(3_000))
        deltalake.write_deltalake(self.path, pa.table({"k": keys, "t": texts}), mode="append")


def sorts(decider: LiveDecider, name: str) -> list[tuple[str, str]]:
    found = decider.get(f"/v1/tables/{name}/decisions", limit=100)["decisions"]
    return [(one["decision"], one["reason"]) for one in found if one["action"] == "sort"]


def test_a_table_is_sorted_from_the_moment_on_that_its_properties_name_an_order(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = KeyedTable(tmp_path / "t")
    table.append()
    name = decider.register(table.path)
    assert sorts(decider, name) == []
    alter(table, {"lakewright.sort-by": "K desc"})  # type: ignore[arg-type]
    decider.sweep()
    assert sorts(decider, name) == [("skip", "within_depth")]
    table.append()
    decider.sweep()
    assert sorts(decider, name)[0] == ("enqueue", "too_deep")
    (job,) = [one for one in decider.get("/v1/jobs", table=name)["jobs"] if one["kind"] == "sort"]
    assert job["state"] == JobState.QUEUED
    (partition,) = decider.get(f"/v1/tables/{name}/partitions")["partitions"]
    assert [one["reason"] for one in partition["decisions"] if one["action"] == "sort"] == ["too_deep"]
    assert partition["layout"]["depth"] == 3


def test_the_files_to_sort_are_shown_and_queued_by_command(decider: LiveDecider, tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    for _ in range(3):
        table.append()
    alter(table, {"lakewright.sort-by": "k", "lakewright.enabled": "false"})  # type: ignore[arg-type]
    name = decider.register(table.path)
    url = f"/v1/tables/{name}/optimize"
    plan = decider.post(url, {"dry_run": True, "actions": ["sort"], "force": True}).json()
    (one,) = plan["plans"]
    assert (one["action"], one["files_replaced"], one["files_removed"]) == ("sort", 4, 0)
    assert [group["mode"] for group in one["groups"]] == ["sort"]
    assert decider.post(url, {"actions": ["sort"]}).json()["ignored"] == "disabled"
    alter(table, {"lakewright.enabled": "true"})  # type: ignore[arg-type]
    decider.sweep()

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["--url", decider.url, *arguments], env={"COLUMNS": "200"})
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    assert "4 files would be replaced" in call("sort", name, "--dry-run")
    assert "sort" in call("sort", name)
    (job,) = [one for one in decider.get("/v1/jobs", table=name)["jobs"] if one["kind"] == "sort"]
    assert job["partition_key"] == "{}"


def test_an_action_that_does_not_exist_is_refused_by_name(decider: LiveDecider, tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    name = decider.register(table.path)
    refused = decider.post(f"/v1/tables/{name}/optimize", {"actions": ["tidy"]})
    assert refused.status_code == 422
    assert "compact" in refused.json()["allowed"]
