"""A table that a rewrite could damage gets no job from anyone, says why everywhere, and is decided again on change."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from decider.store.registry.table_registry import TableRegistry
from services.cli.__main__ import app
from shared.errors import Unsupported
from shared.formats import delta
from shared.table import TableProtocol
from tests.support.delta_tables import HandTable, added
from tests.support.live_decider import LiveDecider
from tests.support.timed_world import HOUR_MS, TWO_SMALL, in_world, partition

pytestmark = pytest.mark.redis

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def featured(*features: str, reader: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(reader),
        "writerFeatures": [*reader, *features],
    }


CLUSTERED = featured("clustering", "domainMetadata")
VARIANT = featured(reader=("variantType",))
QBEAST = {"qbeast.lastRevisionID": "1"}

REFUSED = [
    pytest.param({"protocol": CLUSTERED}, "unsafe_feature", "'clustering'", id="liquid clustering"),
    pytest.param({"protocol": VARIANT}, "unsafe_feature", "'variantType'", id="variant"),
    pytest.param({"protocol": featured("icebergCompatV2")}, "unsafe_feature", "Iceberg", id="Iceberg"),
    pytest.param({"protocol": featured("fromTheFuture")}, "unsafe_feature", "'fromTheFuture'", id="unknown feature"),
    pytest.param({"protocol": {"minReaderVersion": 1, "minWriterVersion": 8}}, "unknown_protocol", "writer 8", id="8"),
    pytest.param({"configuration": QBEAST}, "qbeast", "Qbeast", id="Qbeast"),
]


def written(path: Path, **changes: Any) -> HandTable:
    """A table of twelve files that are worth a rewrite."""
    table = HandTable(path, **changes)
    table.append(12)
    return table


def jobs(decider: LiveDecider) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = decider.get("/v1/jobs")["jobs"]
    return found


def lakewright(decider: LiveDecider, *arguments: str) -> str:
    result = decider.command(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.mark.parametrize(("changes", "code", "culprit"), REFUSED)
def test_a_refused_table_says_why_everywhere_and_gets_no_job_however_it_is_asked_for(
    decider: LiveDecider, tmp_path: Path, changes: dict[str, Any], code: str, culprit: str
) -> None:
    table = written(tmp_path / "t", **changes)
    name = decider.register(table.path, "t")
    table.append(12)
    decider.sweep()

    shown = decider.get(f"/v1/tables/{name}")
    assert shown["refusal"]["code"] == code
    assert culprit in shown["refusal"]["reason"]
    assert shown["eligible_partitions"] == 0
    assert shown["last_decision"]["reason"] == "refused"
    assert any(culprit in note for note in shown["policy"]["notes"])
    assert {value["property"]: value["value"] for value in shown["policy"]["values"]}["lakewright.enabled"] is False
    (listed,) = decider.get("/v1/tables")["tables"]
    assert (listed["name"], listed["refusal"]["code"]) == (name, code)
    assert decider.get("/v1/status")["tables_refused"] == 1
    metrics = decider.client.get("/metrics").text
    assert "lakewright_tables_refused 1.0" in metrics
    assert 'lakewright_funnel_total{stage="refused"} ' in metrics
    partitions = decider.get(f"/v1/tables/{name}/partitions")["partitions"]
    assert {made["reason"] for partition in partitions for made in partition["decisions"]} == {"refused"}

    for force in (False, True):
        answer = decider.post(f"/v1/tables/{name}/optimize", {"force": force}).json()
        assert (answer["jobs"], answer["ignored"], answer["reasons"]) == ([], "refused", {"refused": 1})
        assert culprit in answer["message"]
        dry = decider.post(f"/v1/tables/{name}/optimize", {"dry_run": True, "force": force}).json()
        assert (dry["plans"], dry["bytes"], dry["ignored"]) == ([], 0, "refused")
        assert culprit in dry["message"]
    replayed = decider.post(f"/v1/tables/{name}/what-if", {}).json()
    assert any("refused" in note and culprit in note for note in replayed["notes"])
    assert replayed["recommendation"]["properties"].get("lakewright.enabled") != "true"
    assert jobs(decider) == []


def test_a_new_table_is_judged_by_its_state_though_its_refusal_is_stored_a_moment_later(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tables add` once said "rewritten from now on" of a refused table: it had read the state and not the refusal."""

    async def never(*_: object) -> None:
        """Be late."""

    monkeypatch.setattr(TableRegistry, "set_refusal", never)
    written(tmp_path / "t", protocol=VARIANT)
    answer = decider.post("/v1/tables", {"location": str(tmp_path / "t"), "name": "t", "wait_s": 20}).json()
    assert answer["reading"]["refusal"]["code"] == "unsafe_feature"
    assert answer["reading"]["enabled"] is False


@pytest.mark.parametrize(
    ("configuration", "lines"),
    [
        (
            {"lakewright.fan-in": "many"},
            ["The property lakewright.fan-in = many cannot be used", "rewritten from now on"],
        ),
        ({"lakewright.enabled": "false"}, ["It is switched off"]),
        ({}, ["rewritten from now on"]),
    ],
    ids=["invalid", "disabled", "fine"],
)
def test_adding_a_table_shows_what_its_properties_mean(
    decider: LiveDecider, tmp_path: Path, configuration: dict[str, str], lines: list[str]
) -> None:
    written(tmp_path / "t", configuration=configuration)
    shown = lakewright(decider, "tables", "add", str(tmp_path / "t"), "--name", "t")
    assert all(line in shown for line in lines), shown
    assert ("rewritten from now on" in shown) is ("rewritten from now on" in lines)


def test_a_refused_table_is_marked_on_the_command_line(decider: LiveDecider, tmp_path: Path) -> None:
    written(tmp_path / "t", protocol=CLUSTERED)
    decider.register(tmp_path / "t", "t")

    assert "unsafe_feature" in lakewright(decider, "tables", "list")
    shown = lakewright(decider, "tables", "show", "t")
    assert "CLUSTER BY" in shown
    assert "refused" in lakewright(decider, "tables", "partitions", "t")
    assert "clustering" in lakewright(decider, "optimize", "t", "--dry-run")
    assert "The table is refused" in lakewright(decider, "what-if", "t")


@pytest.mark.parametrize("by", ["protocol", "metadata"])
def test_a_table_that_becomes_refused_loses_its_jobs_and_is_decided_at_once_when_it_is_accepted_again(
    decider: LiveDecider, tmp_path: Path, by: str
) -> None:
    table = written(tmp_path / "t")
    decider.register(table.path, "t")
    assert len(jobs(decider)) == 1

    refused, accepted = {
        "protocol": ([{"protocol": CLUSTERED}], [{"protocol": featured("domainMetadata")}]),
        "metadata": ([{"metaData": table.metadata(configuration=QBEAST)}], [{"metaData": table.metadata()}]),
    }[by]
    for _ in range(2):
        table.commit(refused)
        decider.sweep()
        assert jobs(decider) == []
        assert decider.get("/v1/tables/t")["refusal"] is not None
        assert decider.get("/v1/tables")["tables"][0]["refusal"] is not None

        table.commit(accepted)
        decider.sweep()
        assert len(jobs(decider)) == 1
        assert decider.get("/v1/tables/t")["refusal"] is None
        assert decider.get("/v1/tables")["tables"][0]["refusal"] is None
        assert decider.get("/v1/status")["tables_refused"] == 0


def test_a_table_replaced_by_a_refused_one_with_other_partitions_keeps_no_job_of_the_old_ones(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = HandTable(tmp_path / "t", partitions={"dt": "date"})
    table.append(12, values={"dt": "2026-01-01"})
    decider.register(table.path, "t")
    assert len(jobs(decider)) == 1

    kept = ("path", "partitionValues", "size", "dataChange")
    gone = [{"remove": {name: add[name] for name in kept}} for add in added(table.path, 1)]
    table.partitions = {}
    table.commit([{"protocol": CLUSTERED}, {"metaData": table.metadata(id="another")}, *gone])
    table.append(12)
    decider.sweep()

    assert decider.get("/v1/tables/t")["refusal"]["code"] == "unsafe_feature"
    assert jobs(decider) == []


def test_a_log_that_may_no_longer_be_read_withdraws_the_jobs_and_is_decided_again_once_it_may(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = written(tmp_path / "t")
    decider.register(table.path, "t")
    assert len(jobs(decider)) == 1

    table.commit([{"protocol": featured("catalogManaged")}])
    decider.sweep()
    assert decider.get("/v1/tables/t")["refusal"]["code"] == "unreadable_log"
    assert jobs(decider) == []
    assert decider.post("/v1/tables/t/optimize", {"force": True}).status_code == 409

    log = table.path / "_delta_log"
    (log / f"{table.version:020d}.json").unlink()
    table.commit([{"commitInfo": {"operation": "undone by an operator"}}])
    decider.sweep()
    assert decider.get("/v1/tables/t")["refusal"] is None
    assert len(jobs(decider)) == 1


def test_a_run_that_a_property_asks_for_is_not_started_on_a_refused_table(decider: LiveDecider, tmp_path: Path) -> None:
    off = {"lakewright.enabled": "false"}
    table = written(tmp_path / "t", protocol=CLUSTERED, configuration=off)
    decider.register(table.path, "t")
    table.commit([{"metaData": table.metadata(configuration={**off, "use.optimization.type": "compaction"})}])
    decider.sweep()

    assert decider.get("/v1/tables/t")["manual_run"]["outcome"] == "refused"
    assert jobs(decider) == []


def test_registered_properties_do_not_override_a_refusal(decider: LiveDecider, tmp_path: Path) -> None:
    table = written(tmp_path / "t", protocol=CLUSTERED)
    body = {"location": str(table.path), "name": "t", "properties": {"lakewright.enabled": "true"}}
    assert decider.post("/v1/tables", body).status_code == 201
    decider.drain()

    assert jobs(decider) == []
    assert decider.get("/v1/tables/t")["refusal"]["code"] == "unsafe_feature"


def test_a_partition_with_files_of_a_z_cube_is_left_alone_and_the_partitions_beside_it_are_not(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = HandTable(tmp_path / "t", partitions={"dt": "date"})
    cubes = [table.new_file(20, {"dt": "2026-01-01"}) | {"tags": {"ZCUBE_ID": "1"}} for _ in range(2)]
    table.commit([{"add": add} for add in cubes])
    table.append(12, values={"dt": "2026-01-01"})
    table.append(12, values={"dt": "2026-01-02"})
    decider.register(table.path, "t")
    table.append(12, values={"dt": "2026-01-01"})
    decider.sweep()

    (job,) = jobs(decider)
    assert job["partition_key"] == '{"dt":"2026-01-02"}'
    reasons = {
        partition["partition_key"]: made["reason"]
        for partition in decider.get("/v1/tables/t/partitions")["partitions"]
        for made in partition["decisions"]
    }
    assert reasons['{"dt":"2026-01-01"}'] == "clustered"
    assert decider.get("/v1/tables/t")["refusal"] is None
    dry = decider.post("/v1/tables/t/optimize", {"dry_run": True, "force": True}).json()
    assert [plan["partition_key"] for plan in dry["plans"]] == ['{"dt":"2026-01-02"}']

    kept = ("path", "size", "tags", "partitionValues", "dataChange")
    table.commit([{"remove": {"extendedFileMetadata": True, **{key: add[key] for key in kept}}} for add in cubes])
    decider.sweep()
    assert sorted(job["partition_key"] for job in jobs(decider)) == ['{"dt":"2026-01-01"}', '{"dt":"2026-01-02"}']


@pytest.mark.parametrize(("changes", "code", "culprit"), REFUSED)
def test_a_refused_location_is_not_planned_from_the_command_line(
    tmp_path: Path, changes: dict[str, Any], code: str, culprit: str
) -> None:
    table = written(tmp_path / "t", **changes)
    for more in (("--dry-run",), ("--yes", "--force"), ("--yes", "--mode", "full")):
        result = CliRunner().invoke(app, ["optimize", str(table.path), *more])
        assert isinstance(result.exception, Unsupported)
        assert result.exit_code == 1
        assert culprit in str(result.exception)
    reported = CliRunner().invoke(app, ["--json", "what-if", str(table.path)])
    assert any(culprit in note for note in json.loads(reported.stdout)["notes"]), code


def test_a_release_with_another_rule_decides_a_table_again(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal is stored with the state, and the rule is asked all the same: nothing in the log has changed."""
    table = written(tmp_path / "t", protocol=VARIANT)
    name = decider.register(table.path, "t")
    assert (decider.get(f"/v1/tables/{name}")["refusal"]["code"], jobs(decider)) == ("unsafe_feature", [])
    monkeypatch.setattr(delta, "SAFE_FEATURES", delta.SAFE_FEATURES | {"variantType"})
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["refusal"] is None
    assert jobs(decider)


LIQUID = TableProtocol(1, 7, frozenset(), frozenset({"clustering", "domainMetadata"}))


async def test_a_timer_of_a_table_that_became_refused_unseen_queues_nothing_and_ends(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        world.log.add(protocol=LIQUID, data_change=False)
        world.now_ms += 7 * HOUR_MS
        await world.decider.tick()

        assert await world.jobs() == []
        world.now_ms += 7 * HOUR_MS
        assert (await world.decider.tick()).timers == 0


async def test_the_timers_of_a_table_that_is_accepted_again_are_set_again(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        await world.write(partition(1), TWO_SMALL)
        world.log.add(protocol=LIQUID, data_change=False)
        await world.decider.follow()
        world.log.add(protocol=TableProtocol(1, 2), data_change=False)
        await world.decider.follow()
        world.now_ms += 7 * HOUR_MS
        await world.decider.tick()

        assert len(await world.jobs()) == 1
