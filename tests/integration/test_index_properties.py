"""Each property of an index, set by another engine's ALTER TABLE, is obeyed, or ignored with a reason that is shown."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.live_decider import LiveDecider

pytestmark = pytest.mark.redis

LOG = Path(__file__).parents[1] / "data" / "qbeast"
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
