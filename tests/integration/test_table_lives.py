"""What can happen to a real table: replaced, restored, partitioned again, cleaned up; switched, steered, drifted."""

import copy
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis as redis_library
from deltalake import DeltaTable, write_deltalake

from shared.queue import keys
from tests.support import delta_tables
from tests.support.live_decider import POLICY, LiveDecider, WrittenTable, decider_settings

pytestmark = pytest.mark.redis


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    """A decider that trusts no table to be the one it was, and checks every table for drift at every look."""
    monkeypatch.setattr("decider.tracking.tracker.TRUSTED_MS", -1)
    monkeypatch.setattr("decider.tracking.drift_check.DriftCheck._is_due", lambda *_: True)
    live = LiveDecider(decider_settings(redis_url)).start()
    yield live
    live.close()


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


def alter(table: WrittenTable, changes: dict[str, str | None]) -> None:
    """Commit the table's metadata with other properties, as ALTER TABLE does."""
    log = table.path / "_delta_log"
    newest = DeltaTable(str(table.path)).version()
    metadata = None
    for version in range(newest, -1, -1):
        lines = (log / f"{version:020d}.json").read_text().splitlines()
        found = [json.loads(line)["metaData"] for line in lines if '"metaData"' in line]
        if found:
            metadata = found[-1]
            break
    assert metadata is not None
    configuration = dict(metadata["configuration"]) | changes
    metadata["configuration"] = {name: value for name, value in configuration.items() if value is not None}
    info = {"commitInfo": {"timestamp": 1_767_225_600_000, "operation": "SET TBLPROPERTIES"}}
    text = "\n".join(json.dumps(action) for action in (info, {"metaData": metadata}))
    with (log / f"{newest + 1:020d}.json").open("x") as out:
        out.write(text)


def replace_schema(table: WrittenTable) -> None:
    """Overwrite a table with one of another partition column and the same id, as `overwriteSchema` does."""
    other = table.path.parent / "by-country"
    data = pa.table({"country": ["de", "fr"], "value": [1.0, 2.0]})
    write_deltalake(str(other), data, partition_by=["country"])
    first = [json.loads(line) for line in (other / "_delta_log" / f"{0:020d}.json").read_text().splitlines()]
    old = delta_tables.actions(table.path, 0)
    identity = next(action["metaData"]["id"] for action in old if "metaData" in action)
    metadata = next(action["metaData"] for action in first if "metaData" in action) | {"id": identity}
    gone = [
        {"remove": {name: add[name] for name in ("path", "partitionValues", "size")} | {"dataChange": True}}
        for add in delta_tables.live(table.path).values()
    ]
    adds = [action for action in first if "add" in action]
    info = {"commitInfo": {"timestamp": 1_767_225_600_000, "operation": "WRITE"}}
    text = "\n".join(map(json.dumps, [info, {"metaData": metadata}, *gone, *adds]))
    (table.path / "_delta_log" / f"{table.version + 1:020d}.json").write_text(text)


def expect_exact(decider: LiveDecider, name: str, table: WrittenTable) -> Any:
    """The state equals a count of the live files at the newest version, and the table is not refused."""
    status = decider.get(f"/v1/tables/{name}")
    assert status["state"]["version"] == table.version
    assert status["refusal"] is None
    assert decider.partitions(name) == table.count_files()
    return status


def jobs(decider: LiveDecider, name: str) -> list[Any]:
    return list(decider.get("/v1/jobs", table=name)["jobs"])


def test_a_table_dropped_and_made_again_is_counted_as_the_new_one(decider: LiveDecider, table: WrittenTable) -> None:
    name = decider.register(table.path)
    shutil.rmtree(table.path)
    again = WrittenTable(table.path, seed=9, days=("2026-03-03",))
    again.append(14)
    decider.sweep()
    status = expect_exact(decider, name, again)
    assert "created again" in status["state"]["rebuild_reason"]


def test_a_table_made_again_is_decided_under_its_new_id_although_a_job_of_the_old_one_waits(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    """Versions start over, and of two requests for one partition the later version's says what the job is about."""

    def reported() -> set[str]:
        with redis_library.Redis.from_url(redis_url) as client:
            waiting = client.keys(keys.prefix("default") + "j:*")
            return {json.loads(client.hget(key, "payload"))["table_uuid"] for key in waiting}

    name = decider.register(table.path)
    old = str(DeltaTable(str(table.path)).metadata().id)
    assert reported() == {old}
    newest = table.version
    shutil.rmtree(table.path)
    again = WrittenTable(table.path, seed=9, days=("2026-01-01",))
    again.append(8)
    assert again.version < newest
    decider.sweep()
    expect_exact(decider, name, again)
    assert reported() == {str(DeltaTable(str(again.path)).metadata().id)} != {old}


def test_a_restored_table_is_rebuilt(decider: LiveDecider, table: WrittenTable) -> None:
    name = decider.register(table.path)
    DeltaTable(str(table.path)).restore(3)
    decider.sweep()
    status = expect_exact(decider, name, table)
    assert "RESTORE" in status["state"]["rebuild_reason"]
    assert status["layout"]["files"] == 4


def test_a_table_partitioned_again_is_rebuilt_in_its_new_partitions(decider: LiveDecider, table: WrittenTable) -> None:
    name = decider.register(table.path)
    replace_schema(table)
    decider.sweep()
    status = decider.get(f"/v1/tables/{name}")
    assert set(decider.partitions(name)) == {'{"country":"de"}', '{"country":"fr"}'}
    assert (status["state"]["version"], status["layout"]["files"]) == (table.version, 2)
    assert "partition columns changed" in status["state"]["rebuild_reason"]


@pytest.mark.parametrize("hint", ["event", "sweep"])
def test_a_log_cleaned_up_behind_the_cursor_is_rebuilt_from_the_newer_checkpoint(
    decider: LiveDecider, table: WrittenTable, hint: str
) -> None:
    name = decider.register(table.path)
    table.append(6)
    DeltaTable(str(table.path)).create_checkpoint()
    for version in range(table.version):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    table.append()
    if hint == "event":
        decider.post("/v1/events", {"table": name, "version": table.version})
        decider.drain()
    else:
        decider.sweep()
    status = expect_exact(decider, name, table)
    assert status["state"]["rebuilds"] == 1


def test_a_hole_above_the_checkpoint_refuses_the_table_with_the_missing_version(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    table.append(2)
    (table.path / "_delta_log" / f"{12:020d}.json").rename(table.path / "kept")
    decider.post("/v1/events", {"table": name, "version": 13})
    decider.drain()
    refusal = decider.get(f"/v1/tables/{name}")["refusal"]
    assert (refusal["missing"], f"{12:020d}" in refusal["reason"]) == (False, True)
    (table.path / "kept").rename(table.path / "_delta_log" / f"{12:020d}.json")
    decider.sweep()
    expect_exact(decider, name, table)


def test_a_copy_of_a_table_is_a_table_of_its_own(decider: LiveDecider, table: WrittenTable) -> None:
    """As a deep clone is: it starts with all files at its first version, under an id and a place of its own."""
    name = decider.register(table.path)
    source = DeltaTable(str(table.path)).to_pyarrow_table()
    clone = table.path.parent / "clone"
    write_deltalake(str(clone), source, partition_by=["dt"])
    cloned = decider.register(clone)
    table.append(2)
    decider.sweep()
    expect_exact(decider, name, table)
    status = decider.get(f"/v1/tables/{cloned}")
    assert (status["state"]["version"], status["layout"]["files"]) == (0, 1)


def tamper(redis_url: str, decider: LiveDecider, name: str) -> None:
    """Take two files off what Redis holds of a partition, as a fold with a bug would."""
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None
    with redis_library.Redis.from_url(redis_url) as client:
        key = keys.partitions("default", known.id)
        (partition, raw), *_ = client.hgetall(key).items()  # type: ignore[union-attr]
        numbers = raw.decode().split(",")
        client.hset(key, partition, ",".join([str(int(numbers[0]) - 2), *numbers[1:]]))


def write_checksum(table: WrittenTable, *, files: int = 0) -> None:
    state = table.count_files().values()
    stated = {"numFiles": sum(one.files for one in state) + files, "tableSizeBytes": sum(one.bytes for one in state)}
    stated |= {"numMetadata": 1, "numProtocol": 1}
    (table.path / "_delta_log" / f"{table.version:020d}.crc").write_text(json.dumps(stated))


def test_a_state_that_drifted_is_found_by_the_checksum_rebuilt_and_counted(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    name = decider.register(table.path)
    tamper(redis_url, decider, name)
    table.append()
    write_checksum(table)
    decider.sweep()
    status = expect_exact(decider, name, table)
    assert (status["counters"]["drift"], status["counters"]["rebuilds"]) == (1, 1)
    assert "drift" in status["state"]["rebuild_reason"]
    assert 'lakewright_funnel_total{stage="drift"} 1.0' in decider.client.get("/metrics").text
    table.append()
    write_checksum(table)
    decider.sweep()
    assert expect_exact(decider, name, table)["counters"]["drift"] == 1


def test_a_wrong_checksum_is_noticed_once_and_costs_no_rebuild(decider: LiveDecider, table: WrittenTable) -> None:
    name = decider.register(table.path)
    for _ in range(3):
        table.append()
        write_checksum(table, files=5)
        decider.sweep()
    status = expect_exact(decider, name, table)
    assert (status["state"]["rebuilds"], status["counters"].get("drift", 0)) == (0, 0)
    before = decider.reads()
    table.append()
    write_checksum(table, files=5)
    decider.sweep()
    # Twice whether it is the same table, the commit, and twice that there is no next one: no checksum, no snapshot.
    assert decider.reads() - before == 5


def test_switching_off_withdraws_what_waits_and_switching_on_brings_it_back(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    assert len(jobs(decider, name)) == 1
    alter(table, {"self-optimizing.enabled": "false"})
    decider.sweep()
    assert jobs(decider, name) == []
    alter(table, {"self-optimizing.enabled": None})
    decider.sweep()
    assert len(jobs(decider, name)) == 1
    expect_exact(decider, name, table)


def test_a_policy_changed_while_a_job_runs_lets_it_finish_and_decides_again(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    from actor.queue_executor import SyncQueueExecutor, connect
    from shared.queue import commands
    from shared.queue.model import HeartbeatEntry, JobState

    name = decider.register(table.path)
    with connect(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        (claim,) = queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000))
        alter(table, {"lakewright.min-input-files": "5", "lakewright.priority": "high"})
        decider.sweep()
        running = decider.get(f"/v1/jobs/{claim.id}")["job"]
        assert running["state"] == JobState.LEASED
        (beat,) = queue.run(
            commands.heartbeat(
                "default", worker="w", beats=[HeartbeatEntry(claim.id, claim.token, "{}")], lease_ms=60_000
            )
        )
        assert "STOP" not in str(beat).upper()
    records = decider.get(f"/v1/tables/{name}")
    values = {one["property"]: one for one in records["policy"]["values"]}
    assert values["lakewright.min-input-files"]["value"] == 5
    table.append()
    decider.sweep()
    newest = decider.get(f"/v1/tables/{name}/decisions", limit=1)["decisions"][0]
    assert newest["policy_version"] == records["policy"]["version"]


def test_priority_weight_and_limits_reach_the_queue_and_are_taken_back(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None

    def levers() -> dict[str, str]:
        found = decider.run(decider.services.queue.admin.weights_and_limits())
        return {key: value for key, value in found.items() if known.id in key}

    asked = {"lakewright.priority": "high", "lakewright.weight": "2.5", "self-optimizing.quota": "0.25"}
    alter(table, dict(asked))
    decider.sweep()
    assert levers() == {f"weight:table|{known.id}": "2.5", f"limit:table|{known.id}": "25%"}
    assert jobs(decider, name)[0]["band"] == "high"
    alter(table, {"lakewright.weight": None, "self-optimizing.quota": None, "lakewright.max-concurrent-jobs": "3"})
    decider.sweep()
    assert levers() == {f"limit:table|{known.id}": "3"}
    assert decider.client.delete(f"/v1/tables/{name}").status_code == 204
    assert levers() == {}


def test_a_lever_that_a_person_set_stays_while_the_policy_says_nothing(
    decider: LiveDecider, table: WrittenTable
) -> None:
    from shared.queue.admin_commands import SlotLimit
    from shared.queue.model import Scope

    name = decider.register(table.path)
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None
    decider.run(decider.services.queue.admin.set_limit(Scope.TABLE, known.id, SlotLimit(7)))
    alter(table, {"lakewright.fan-in": "4"})
    decider.sweep()
    assert decider.run(decider.services.queue.admin.weights_and_limits())[f"limit:table|{known.id}"] == "7"


def test_a_run_asked_for_by_a_property_starts_once_and_is_ignored_visibly_otherwise(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)

    def stated(changes: dict[str, str | None]) -> tuple[str, int, int]:
        alter(table, changes)
        decider.sweep()
        found = decider.get(f"/v1/tables/{name}")["manual_run"]
        assert found["message"]
        return found["outcome"], found["jobs"], len(jobs(decider, name))

    kind = "use.optimization.type"
    assert stated({kind: "compaction"}) == ("auto_optimize_enabled", 0, 1)
    assert stated({kind: None}) == ("property_removed", 0, 1)
    assert decider.get(f"/v1/tables/{name}")["manual_run"]["requested"] == ""
    alter(table, {"lakewright.enabled": "false"})
    decider.sweep()
    assert jobs(decider, name) == []
    started = stated({kind: "compaction", "use.optimization.bytes-per-iter": "1073741824"})
    assert started == ("started", 1, 1)
    table.append()
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["manual_run"]["outcome"] == "started", "the value did not change"
    assert stated({"use.optimization.bytes-per-iter": None})[0] in ("started", "already_running")


def test_unset_of_qbeasts_switch_switches_the_table_off_until_a_switch_says_otherwise(
    decider: LiveDecider, table: WrittenTable
) -> None:
    switch = "use.optimization.autoOptimize.enabled"
    name = decider.register(table.path)

    def after(changes: dict[str, str | None]) -> tuple[object, str, int]:
        alter(table, changes)
        decider.sweep()
        values = decider.get(f"/v1/tables/{name}")["policy"]["values"]
        (enabled,) = [one for one in values if one["property"] == "lakewright.enabled"]
        return enabled["value"], enabled["set_by"], len(jobs(decider, name))

    assert after({switch: "true"}) == (True, switch, 1)
    assert after({switch: None}) == (False, switch, 0)
    assert "was unset" in " ".join(decider.get(f"/v1/tables/{name}")["policy"]["notes"])
    assert after({"lakewright.fan-in": "4"}) == (False, switch, 0)
    table.append()
    decider.sweep()
    assert jobs(decider, name) == []
    assert decider.get("/v1/scheduled")["tables"] == []
    assert after({switch: "true"}) == (True, switch, 1)
    assert after({switch: None})[0] is False
    assert after({"lakewright.enabled": "true"}) == (True, "lakewright.enabled", 1)
    assert after({"lakewright.enabled": None}) == (True, "default", 1)


def test_properties_of_other_systems_that_are_not_obeyed_are_shown_and_hold_nothing_back(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    qbeast = "use.optimization.autoOptimize."
    foreign = [
        f"{qbeast}revisionId",
        *(f"{qbeast}optimizeUnindexedFiles.{key}" for key in ("enabled", "prioritize", "batchBytes", "fromTimestamp")),
    ]
    alter(table, {**dict.fromkeys(foreign, "1"), "lakewright.clustering-order": "time", "lakewright.fan-in": "4"})
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert {one["property"]: one["blocking"] for one in policy["issues"]} == {
        **dict.fromkeys(foreign, False),
        "lakewright.clustering-order": False,
    }
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.fan-in"] == 4


def test_a_second_request_while_a_run_is_going_on_is_ignored_visibly(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    from actor.queue_executor import SyncQueueExecutor, connect
    from shared.queue import commands

    alter(table, {"lakewright.enabled": "false"})
    name = decider.register(table.path)
    alter(table, {"use.optimization.type": "a"})
    decider.sweep()
    with connect(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        assert queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000))
    alter(table, {"use.optimization.type": "b"})
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["manual_run"]["outcome"] == "already_running"


def test_a_request_older_than_the_first_look_starts_nothing(decider: LiveDecider, table: WrittenTable) -> None:
    alter(table, {"lakewright.enabled": "false", "use.optimization.type": "compaction"})
    name = decider.register(table.path)
    found = decider.get(f"/v1/tables/{name}")["manual_run"]
    assert (found["outcome"], jobs(decider, name)) == ("set_before_first_read", [])


def test_a_bad_value_and_an_unknown_property_keep_the_last_good_policy_and_are_shown(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    alter(table, {"lakewright.fan-in": "4"})
    decider.sweep()
    alter(table, {"lakewright.fan-in": "many", "lakewright.speed": "11", "acid.data.retain.hours": "3"})
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.fan-in"] == 4
    shown = {one["property"]: one["blocking"] for one in policy["issues"]}
    assert shown == {"lakewright.fan-in": True, "lakewright.speed": True, "acid.data.retain.hours": False}
    alter(table, {"lakewright.fan-in": "3", "lakewright.speed": None})
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.fan-in"] == 3
    assert decider.partitions(name) == table.count_files(replace(POLICY, fan_in=3))


def test_a_request_is_left_to_the_deciders_of_the_tables_group(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    """Any other decider takes the table for one that is not automatic, which is what a request is honoured on."""
    alter(table, {"lakewright.queue": "nightly", "lakewright.enabled": "false"})
    name = decider.register(table.path)
    theirs = LiveDecider(decider_settings(redis_url, queue="nightly")).start()
    try:
        theirs.sweep()
        alter(table, {"use.optimization.type": "compaction"})
        decider.sweep()
        assert decider.get(f"/v1/tables/{name}")["manual_run"] is None
        assert jobs(decider, name) == []
        theirs.sweep()
        assert theirs.get(f"/v1/tables/{name}")["manual_run"]["outcome"] == "started"
        assert (len(jobs(theirs, name)), jobs(decider, name)) == (1, [])
    finally:
        theirs.close()
