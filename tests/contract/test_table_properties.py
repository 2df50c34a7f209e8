"""Policies as their owners set them: real ALTER TABLE from Spark, read by the decider from the real log.

Each row and each alias is set, no two of one field at once, and taken back; and what SQL does to a table besides, from
RESTORE to CLONE, is followed to a state that equals a rebuild.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from decider.state.effective_policy import EffectivePolicy, LogStatus, PolicyDefaults, PolicyOrigin, PolicySource
from decider.storage.object_reads import ReadMeter
from shared.policy.names import PREFIX, QBEAST_SWITCH
from shared.policy.policy import Policy
from shared.policy.refused_properties import REFUSED
from shared.table import TableId, TableRef
from tests.support import delta_tables
from tests.support.delta_tables import open_log
from tests.support.live_decider import POLICY, LiveDecider, decider_settings
from tests.support.property_samples import GOOD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TABLE = TableRef(TableId("t"), "t", "file:///t")


def rounds() -> list[list[tuple[str, str, str, object]]]:
    """Own names first, then every alias; no round sets one field twice, so that nothing hides behind anything."""
    left = [sample for sample in GOOD if sample[3] != getattr(Policy(), sample[2])]
    left += [sample for sample in GOOD if sample[0] not in {name for name, *_ in left}]
    found: list[list[tuple[str, str, str, object]]] = []
    # These exclude each other: they are tried in rounds of their own.
    exclusive = {"max_concurrent_jobs": "limit", "quota": "limit", "enabled": "switch", "queue": "switch"}
    exclusive |= dict.fromkeys(("clustering_order", "sort_by", "zorder_by"), "order")
    exclusive |= dict.fromkeys(("primary_key", "delete_rows_after"), "rows")
    while left:
        fields: set[str] = set()
        chosen = []
        for sample in list(left):
            field = exclusive.get(sample[2], sample[2])
            if field not in fields:
                fields.add(field)
                chosen.append(sample)
                left.remove(sample)
        found.append(chosen)
    return found


def set_and_unset(spark: "SparkSession", path: Path, *statements: dict[str, str]) -> None:
    for values in statements:
        quoted = ((name, value.replace("'", "\\'")) for name, value in values.items())
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in quoted)
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({properties})")
    unset = ", ".join(f"'{name}'" for name in {name: 0 for values in statements for name in values})
    spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ({unset})")


async def policies(path: Path, versions: int) -> list[EffectivePolicy]:
    """The policy after each commit, as the decider follows it from the log."""
    log = open_log(path.as_uri(), meter=ReadMeter())
    metadata = (await log.snapshot(0)).metadata
    found: list[EffectivePolicy] = []
    last_good: dict[str, str] = {}
    for version in range(1, versions):
        commit = await log.commit(version, metadata)
        assert commit is not None
        metadata = commit.metadata or metadata
        effective = PolicyDefaults().resolve(TABLE, metadata.configuration, last_good, LogStatus())
        last_good = dict(effective.last_good)
        found.append(effective)
    return found


@pytest.mark.long("contracts")
def test_every_property_and_every_alias_takes_effect_by_alter_table_and_ends_with_unset(
    spark: "SparkSession", tmp_path: Path
) -> None:
    path = tmp_path / "t"
    spark.conf.set("spark.databricks.delta.allowArbitraryProperties.enabled", "true")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta")
    tried = rounds()
    for samples in tried:
        set_and_unset(spark, path, {name: value for name, value, *_ in samples})
    set_and_unset(spark, path, dict.fromkeys(REFUSED, "24"))
    set_and_unset(spark, path, {f"{PREFIX}fan-in": "4"}, {f"{PREFIX}fan-in": "many"}, {f"{PREFIX}speed": "1"})
    found = iter(asyncio.run(policies(path, delta_tables.newest(path) + 1)))
    default = PolicyDefaults().resolve(TABLE, {}, {}, LogStatus())
    for samples in tried:
        seen = next(found)
        assert seen.issues == ()
        for name, _, field, expected in samples:
            assert getattr(seen.policy, field) == expected, name
            assert seen.origins[field] == PolicyOrigin(PolicySource.TABLE, name)
        assert replace(next(found), last_good={}) == default
    seen = next(found)
    assert seen.policy == Policy()
    assert [issue.is_blocking for issue in seen.issues] == [False] * len(REFUSED)
    assert next(found).issues == ()
    good, bad, unknown, unset = (next(found) for _ in range(4))
    assert [seen.policy.fan_in for seen in (good, bad, unknown, unset)] == [4, 4, 4, 8]
    assert [len(seen.issues) for seen in (good, bad, unknown, unset)] == [0, 1, 2, 0]


@pytest.fixture
def decider(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    """A decider that checks for drift at every look, and trusts no table to be the one it was."""
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", -1)
    monkeypatch.setattr("decider.tracking.drift_check.DriftCheck._is_due", lambda *_: True)
    # A shallow clone names the files of another table, which is refused unless it is allowed.
    settings = decider_settings(redis_url, roots=(tmp_path.as_uri(),), allow_external_files=True)
    with LiveDecider(settings) as live:
        yield live


@pytest.mark.long("contracts")
def test_what_sql_does_to_a_table_ends_in_an_exact_state_and_its_checksums_agree(
    spark: "SparkSession", tmp_path: Path, decider: LiveDecider
) -> None:
    path = tmp_path / "t"
    rows = "SELECT id, CAST(id % 2 AS STRING) AS p FROM range({0}, {1}, 1, 1)"
    create = f"TABLE delta.`{path}` USING delta PARTITIONED BY (p) AS " + rows.format(0, 10)
    spark.sql("CREATE " + create)
    name = decider.register(path, "t")

    def followed(statement: str, reason: str = "") -> None:
        spark.sql(statement)
        decider.sweep()
        status = decider.get(f"/v1/tables/{name}")
        assert status["state"]["version"] == delta_tables.newest(path), statement
        assert reason in status["state"]["rebuild_reason"], statement
        live = delta_tables.live(path)
        assert status["layout"]["files"] == len(live), statement
        assert status["layout"]["bytes"] == sum(add["size"] for add in live.values()), statement

    for start in range(10, 40, 10):
        followed(f"INSERT INTO delta.`{path}` " + rows.format(start, start + 10))
    assert list((path / "_delta_log").glob("*.crc")), "Spark wrote no checksums: the drift check was not tried"
    followed(f"DELETE FROM delta.`{path}` WHERE id = 11")
    followed(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 1", "RESTORE")
    followed(f"INSERT INTO delta.`{path}` " + rows.format(40, 50))
    followed("CREATE OR REPLACE " + create.replace("PARTITIONED BY (p) ", ""), "")
    assert set(decider.partitions(name)) == {"{}"}
    clone = tmp_path / "clone"
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`")
    cloned = decider.register(clone, "clone")
    assert decider.partitions(cloned) == decider.partitions(name)
    counters = decider.get(f"/v1/tables/{name}")["counters"]
    assert counters.get("drift", 0) == 0
    assert POLICY.enabled


@pytest.mark.long("altered")
def test_words_of_qbeast_and_unknown_ones_do_by_alter_table_what_they_say(
    spark: "SparkSession", tmp_path: Path, decider: LiveDecider
) -> None:
    """A type starts one run, UNSET of the switch ends what it began, and no unknown word is dropped silently."""
    path = tmp_path / "t"
    spark.conf.set("spark.databricks.delta.allowArbitraryProperties.enabled", "true")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ('lakewright.enabled' = 'false')")
    for number in range(9):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number})")
    name = decider.register(path, "t")

    def altered(change: str) -> dict[str, Any]:
        spark.sql(f"ALTER TABLE delta.`{path}` {change}")
        decider.sweep()
        return dict(decider.get(f"/v1/tables/{name}"))

    def outcome(change: str) -> tuple[str, int]:
        run = altered(change)["manual_run"]
        return run["outcome"], len(decider.get("/v1/jobs")["jobs"])

    assert outcome("SET TBLPROPERTIES ('use.optimization.type' = 'binpack')") == ("started", 1)
    assert outcome("SET TBLPROPERTIES ('team' = 'sales')") == ("started", 1), "the same request, not another one"
    assert outcome("SET TBLPROPERTIES ('use.optimization.type' = 'full')") == ("already_running", 1)
    assert outcome("UNSET TBLPROPERTIES ('use.optimization.type')") == ("property_removed", 1)

    def enabled(change: str) -> tuple[bool, str]:
        values = {one["property"]: one for one in altered(change)["policy"]["values"]}
        return values["lakewright.enabled"]["value"], values["lakewright.enabled"]["source"]

    altered("UNSET TBLPROPERTIES ('lakewright.enabled')")
    assert enabled(f"SET TBLPROPERTIES ('{QBEAST_SWITCH}' = 'true')") == (True, "table")
    assert enabled(f"UNSET TBLPROPERTIES ('{QBEAST_SWITCH}')")[0] is False
    assert outcome("SET TBLPROPERTIES ('use.optimization.type' = 'compaction')")[0] != "auto_optimize_enabled"
    assert enabled("SET TBLPROPERTIES ('lakewright.enabled' = 'true')") == (True, "table")
    assert outcome("SET TBLPROPERTIES ('use.optimization.type' = 'minor')")[0] == "auto_optimize_enabled"
    unknown = {"lakewright.speed": "1", "self-optimizing.speed": "2", "use.optimization.speed": "3"}
    pairs = ", ".join(f"'{word}' = '{value}'" for word, value in unknown.items())
    issues = altered(f"SET TBLPROPERTIES ({pairs})")["policy"]["issues"]
    assert {one["property"]: one["value"] for one in issues} == unknown
    assert altered(f"UNSET TBLPROPERTIES ({', '.join(repr(word) for word in unknown)})")["policy"]["issues"] == []
