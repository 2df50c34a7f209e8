"""The index of a registered table, over REST and by location; a table with an index gets no job."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from tests.support.live_decider import LiveDecider, WrittenTable

LOG = Path(__file__).parents[1] / "data" / "qbeast"


def written(tmp_path: Path) -> Path:
    """Return a copy of the log of a table that Qbeast's library wrote."""
    return Path(shutil.copytree(LOG, tmp_path / "q"))


def shown(*arguments: str, as_json: bool = True) -> Any:
    found = CliRunner().invoke(app, ["tables", "index", *arguments], obj=CliContext("http://unused", as_json))
    assert found.exit_code == 0, (found.output, found.exception)
    return json.loads(found.stdout) if as_json else found.stdout


@pytest.mark.redis
def test_a_registered_table_shows_its_index_and_is_refused_for_plain_rewrites(
    decider: LiveDecider, tmp_path: Path
) -> None:
    path = written(tmp_path)
    decider.register(path, "a.q")
    found = decider.get("/v1/tables/a.q/index")
    assert (found["kind"], found["version"], found["last_revision"], found["refusal"]) == ("qbeast", 8, 1, "")
    assert [(one["id"], one["cubes"], one["blocks"]) for one in found["revisions"]] == [(1, 35, 80)]
    assert found["files_by_class"]["unindexed"] > 1
    assert found["oldest_unindexed_at"]
    assert found["next"]["strategy"] == "unindexed"
    assert found == shown(str(path)), "the command reads the same from the location"

    table = decider.get("/v1/tables/a.q")
    assert table["refusal"]["code"] == "qbeast"
    assert decider.get("/v1/jobs")["jobs"] == []


@pytest.mark.redis
def test_a_table_without_an_index_has_none(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t")
    table.append(1)
    decider.register(table.path, "a.t")
    answer = decider.client.get("/v1/tables/a.t/index")
    assert answer.status_code == 404
    assert "has no index" in answer.json()["detail"]
    missing = CliRunner().invoke(
        app, ["tables", "index", str(table.path)], obj=CliContext("http://unused", as_json=False)
    )
    assert missing.exit_code == 1
    assert "has no index" in str(missing.exception)


@pytest.mark.redis
def test_the_iterations_to_come_are_estimated_over_rest_and_from_the_location(
    decider: LiveDecider, tmp_path: Path
) -> None:
    path = written(tmp_path)
    decider.register(path, "a.q")
    found = decider.get("/v1/tables/a.q/index", what_if=True)
    assert found == shown(str(path), "--what-if")
    assert shown(str(path))["forecasts"] == []
    assert [(one["selection"], one["complete"]) for one in found["forecasts"]][-1] == ("everything", True)
    assert found["forecasts"][0]["bytes"] >= found["revisions"][0]["eligible_bytes"]
    assert found["forecasts"][-1]["steps"][0]["fragmentation"] == 1.0
    text = shown(str(path), "--what-if", as_json=False)
    assert "Iterations to come, estimated" in text
    assert "all files" in text


def test_another_revision_and_budget_can_be_tried(tmp_path: Path) -> None:
    path = str(written(tmp_path))
    everything = shown(path, "--revision-id", "1", "--bytes-per-iter", "0")
    assert everything["next"]["strategy"] == "unindexed"
    assert everything["sample"] is None
    assert 0 < shown(path, "--sample", "0.05")["sample"]["bytes"] < everything["revisions"][0]["bytes"]
    text = shown(path, "--sample", "0.05", as_json=False)
    assert "A sample of 5% opens" in text
    assert "price:linear" in text
    assert "chosen as unindexed" in text
