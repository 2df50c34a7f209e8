"""Properties of an index as their owners set them: Spark's ALTER TABLE sets, changes and unsets each on a real log.

What the decider shows follows each statement, and is what it was before once the property is unset.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.qbeast_data import qbeast_data

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.long("altered")]

ROOT = Path(__file__).resolve().parents[2]
URL = "/v1/tables/t"
USE = "use.optimization."
AUTO = f"{USE}autoOptimize."
UNINDEXED = f"{AUTO}optimizeUnindexedFiles."
SWITCH, TYPE, BUDGET = f"{AUTO}enabled", f"{USE}type", f"{USE}bytes-per-iter"

Shown = dict[str, Any]
View = Callable[[Shown], object]


def strategy(shown: Shown) -> object:
    return shown["index"]["next"]["strategy"]


def files(shown: Shown) -> object:
    return len(shown["index"]["next"]["files"])


def size(shown: Shown) -> object:
    return shown["index"]["next"]["bytes"]


CHANGES: list[tuple[str, View, object, list[tuple[str, object]]]] = [
    (f"{UNINDEXED}enabled", strategy, "unindexed", [("false", "leveled"), ("true", "unindexed")]),
    (f"{UNINDEXED}prioritize", strategy, "unindexed", [("false", "leveled"), ("true", "unindexed")]),
    (f"{UNINDEXED}batchBytes", files, 2, [("1", 1), ("1 gb", 2)]),
    (f"{UNINDEXED}fromTimestamp", strategy, "unindexed", [("2100-01-01 00:00:00", "leveled"), ("0", "unindexed")]),
    # Whole revisions are rewritten on request alone.
    (f"{USE}revision-rewrite", strategy, "unindexed", [("true", "unindexed"), ("false", "unindexed")]),
]
"""Each property, what shows its effect and how without it, and values with their effects, on a table of 14 files."""

CHANGES_OF_COMPACTION: list[tuple[str, View, object, list[tuple[str, object]]]] = [
    (f"{AUTO}revisionId", strategy, "leveled", [("1", "leveled")]),
    (f"{USE}revision-id", strategy, "leveled", [("1", "leveled")]),
]
"""The same where files that are not indexed come last."""

CHANGES_OF_BUDGETS: list[tuple[str, View, object, list[tuple[str, object]]]] = [
    (BUDGET, size, 5_390_327, [("0", 1_023_174), ("2000000", 1_902_745), ("1 gb", 5_390_327)]),
]
"""The same on a table with seven groups of eligible blocks."""


class AlteredTable:
    """A table of a copied log at the decider; only Spark writes to it."""

    def __init__(self, spark: "SparkSession", decider: LiveDecider, path: Path) -> None:
        self.spark, self.decider, self.path = spark, decider, path
        decider.register(path, "t")

    def set(self, **properties: str) -> Shown:
        """SET TBLPROPERTIES; return what the decider shows then."""
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        return self._altered(f"SET TBLPROPERTIES ({listed})")

    def unset(self, *names: str) -> Shown:
        """UNSET TBLPROPERTIES; return what the decider shows then."""
        return self._altered(f"UNSET TBLPROPERTIES ({', '.join(repr(name) for name in names)})")

    def shown(self) -> Shown:
        """Return what is shown of the table and its index, but for versions and times."""
        found = self.decider.get(URL)
        index = self.decider.get(f"{URL}/index")
        index.pop("version")
        refusal = found["refusal"] and {name: found["refusal"][name] for name in ("code", "reason")}
        return {"index": index, "refusal": refusal, "policy": found["policy"], "manual_run": found["manual_run"]}

    def jobs(self) -> list[str]:
        """Return the kinds of the jobs that there are."""
        return [job["kind"] for job in self.decider.get("/v1/jobs")["jobs"]]

    def _altered(self, change: str) -> Shown:
        self.alter(change)
        return self.shown()

    def alter(self, change: str) -> None:
        """Change the table, and let the decider see it."""
        self.spark.sql(f"ALTER TABLE delta.`{self.path}` {change}")
        self.decider.tick()


@pytest.fixture
def decider(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url, roots=(tmp_path.as_uri(),))) as live:
        yield live


def table(spark: "SparkSession", decider: LiveDecider, path: Path, log: str = "qbeast") -> AlteredTable:
    return AlteredTable(spark, decider, Path(shutil.copytree(qbeast_data() / log, path)))


def changed_and_unset(altered: AlteredTable, changes: list[tuple[str, View, object, list[tuple[str, object]]]]) -> None:
    plain = altered.shown()
    for name, view, without, values in changes:
        assert view(plain) == without, name
        for value, effect in values:
            assert view(altered.set(**{name: value})) == effect, (name, value)
        assert altered.unset(name) == plain, name
    assert altered.jobs() == [], "no switch was set"


def test_every_property_of_the_documents_is_altered_here() -> None:
    documented = set(
        re.findall(r"`(use\.optimization\.[\w.-]+\w)`", (ROOT / "docs" / "properties.md").read_text("utf-8"))
    )
    tried = {name for name, *_ in [*CHANGES, *CHANGES_OF_COMPACTION, *CHANGES_OF_BUDGETS]}
    assert documented == tried | {SWITCH, TYPE}


def test_properties_of_files_that_are_not_indexed_take_effect_and_end(
    spark: "SparkSession", decider: LiveDecider, tmp_path: Path
) -> None:
    changed_and_unset(table(spark, decider, tmp_path / "t"), CHANGES)


def test_the_revision_takes_effect_and_ends(spark: "SparkSession", decider: LiveDecider, tmp_path: Path) -> None:
    altered = table(spark, decider, tmp_path / "t")
    plain = altered.shown()
    altered.set(**{f"{UNINDEXED}prioritize": "false"})
    changed_and_unset(altered, CHANGES_OF_COMPACTION)
    assert altered.unset(f"{UNINDEXED}prioritize") == plain


def test_the_budget_takes_effect_and_ends(spark: "SparkSession", decider: LiveDecider, tmp_path: Path) -> None:
    altered = table(spark, decider, tmp_path / "t", "qbeast_logs/deep_tree")
    changed_and_unset(altered, CHANGES_OF_BUDGETS)
    (value,) = [one for one in altered.set(**{BUDGET: "2000000"})["policy"]["values"] if one["set_by"] == BUDGET]
    assert (value["property"], value["value"]) == ("lakewright.max-bytes-per-job", 2_000_000)


def test_the_switch_starts_stops_and_reschedules_and_its_unset_leaves_the_table_as_it_was(
    spark: "SparkSession", decider: LiveDecider, tmp_path: Path
) -> None:
    altered = table(spark, decider, tmp_path / "t")
    altered.set(**{"lakewright.index-every": "0 s"})
    plain = altered.shown()
    assert plain["refusal"]["code"] == "qbeast"
    assert altered.set(**{SWITCH: "true"})["refusal"] is None
    assert altered.jobs() == ["index"]
    assert altered.set(**{SWITCH: "false"})["refusal"]["code"] == "qbeast"
    assert altered.jobs() == []
    altered.alter(f"SET TBLPROPERTIES ('{SWITCH}' = 'true', '{AUTO}revisionId' = '0')")
    assert altered.jobs() == ["index"], "of the files that are not indexed"
    altered.unset(f"{AUTO}revisionId")
    assert altered.jobs() == ["index"], "rescheduled"
    ended = altered.unset(SWITCH)
    assert altered.jobs() == []
    assert (ended["index"], ended["refusal"]) == (plain["index"], plain["refusal"])
    # Documented: what the switch enabled, its UNSET stops, until another property enables it.
    (note,) = [one for one in ended["policy"]["notes"] if one not in plain["policy"]["notes"]]
    assert "was unset, which stops the table as in Qbeast" in note
    assert ended["policy"]["values"] == plain["policy"]["values"]
    altered.set(**{"lakewright.enabled": "true"})
    assert altered.unset("lakewright.enabled") == plain


def test_the_type_starts_one_run_and_its_unset_leaves_the_table_as_it_was(
    spark: "SparkSession", decider: LiveDecider, tmp_path: Path
) -> None:
    altered = table(spark, decider, tmp_path / "t")
    altered.set(**{"lakewright.index-every": "0 s"})
    plain = altered.shown()
    assert plain["manual_run"] is None

    def outcome(shown: Shown) -> object:
        return shown["manual_run"]["outcome"]

    assert outcome(altered.set(**{TYPE: "LeveledCompaction"})) == "started"
    assert altered.jobs() == ["index"]
    assert outcome(altered.set(**{TYPE: "CubeDefragmentation"})) == "already_running"
    ended = altered.unset(TYPE)
    assert outcome(ended) == "property_removed"
    assert {**ended, "manual_run": None} == plain
    assert altered.jobs() == [], "what permitted the run is gone, so a job that waits is withdrawn"
    altered.set(**{SWITCH: "true"})
    assert outcome(altered.set(**{TYPE: "LeveledCompaction"})) == "auto_optimize_enabled"
    assert outcome(altered.unset(TYPE)) == "property_removed"
