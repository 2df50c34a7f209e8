"""The index of a registered table, over REST and by location; a table with an index gets no job."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.qbeast_data import qbeast_data

pytestmark = pytest.mark.redis

LOG = qbeast_data() / "qbeast"


def written(tmp_path: Path) -> Path:
    """Return a copy of the log of a table that Qbeast's library wrote."""
    return Path(shutil.copytree(LOG, tmp_path / "q"))


def shown(*arguments: str, as_json: bool = True) -> Any:
    found = CliRunner().invoke(app, ["tables", "index", *arguments], obj=CliContext("http://unused", as_json))
    assert found.exit_code == 0, (found.output, found.exception)
    return json.loads(found.stdout) if as_json else found.stdout


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


URL = "/v1/tables/t"
AUTO = "use.optimization.autoOptimize."
UNINDEXED = AUTO + "optimizeUnindexedFiles."


class AlteredTable:
    """A copy of the log of a table that Qbeast's library wrote, with 12 indexed files and 2 that are not."""

    def __init__(self, decider: LiveDecider, path: Path) -> None:
        self.decider, self.path = decider, Path(shutil.copytree(LOG, path))
        self.alter(**{"lakewright.index-every": "0 s"})
        decider.register(self.path, "t")

    def alter(self, **properties: str) -> None:
        """ALTER TABLE … SET TBLPROPERTIES, by deltalake."""
        DeltaTable(str(self.path)).alter.set_table_properties(properties, raise_if_not_exists=False)

    def index(self, **properties: str) -> Any:
        """Show the index of a copy of the table that has these properties as well."""
        other = self.path.with_name(f"{self.path.name}-other")
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(self.path, other)
        DeltaTable(str(other)).alter.set_table_properties(properties, raise_if_not_exists=False)
        name = self.decider.register(other, "other")
        found = self.decider.get(f"/v1/tables/{name}/index")
        self.decider.client.delete(f"/v1/tables/{name}").raise_for_status()
        return found


@pytest.fixture
def table(decider: LiveDecider, tmp_path: Path) -> AlteredTable:
    return AlteredTable(decider, tmp_path / "t")


def test_files_that_are_not_indexed_are_taken_as_their_properties_say(table: AlteredTable) -> None:
    plain = table.decider.get(f"{URL}/index")
    assert plain["files_by_class"]["unindexed"] == 2
    assert plain["unindexed_bytes"] == plain["next"]["bytes"]
    assert plain["next"]["strategy"] == "unindexed"
    (path,) = table.index(**{UNINDEXED + "batchBytes": "1"})["next"]["files"]
    assert path in plain["next"]["files"]
    for name, value in (
        (UNINDEXED + "enabled", "false"),
        (UNINDEXED + "prioritize", "false"),
        (UNINDEXED + "fromTimestamp", "2100-01-01 00:00:00"),
        (UNINDEXED + "fromTimestamp", "4102444800000"),
    ):
        assert table.index(**{name: value})["next"]["strategy"] == "leveled", name
    assert table.index(**{AUTO + "revisionId": "0"})["next"] == plain["next"]


def test_budget_and_revision_choose_the_files_of_the_next_iteration(table: AlteredTable) -> None:
    off = {UNINDEXED + "enabled": "false"}
    everything = table.index(**off)["next"]
    for name in (AUTO + "revisionId", "use.optimization.revision-id"):
        assert table.index(**off, **{name: "1"})["next"] == everything
    assert table.index(**off, **{"use.optimization.bytes-per-iter": "1"})["next"]["bytes"] <= everything["bytes"]
    assert table.index(**off, **{"use.optimization.bytes-per-iter": "0"})["next"]["bytes"] <= everything["bytes"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (AUTO + "revisionId", "newest", "a whole number"),
        ("use.optimization.revision-id", "-1", "a whole number"),
        ("use.optimization.bytes-per-iter", "much", "expected a size"),
        ("use.optimization.revision-rewrite", "whole", "true or false"),
        (UNINDEXED + "enabled", "no", "expected true or false"),
        (UNINDEXED + "prioritize", "first", "expected true or false"),
        (UNINDEXED + "batchBytes", "0", "1 byte or more"),
        (UNINDEXED + "fromTimestamp", "yesterday", "expected milliseconds"),
        ("lakewright.index-sample", "2", "from 0.0001 to 0.99"),
    ],
)
def test_a_value_without_an_effect_is_shown_with_its_reason_and_changes_nothing(
    table: AlteredTable, name: str, value: str, reason: str
) -> None:
    plain, found = table.decider.get(f"{URL}/index"), table.index(**{name: value})
    assert [one for one in found["ignored_properties"] if one.startswith(f"{name} = {value}: ") and reason in one]
    assert found["next"] == plain["next"]
