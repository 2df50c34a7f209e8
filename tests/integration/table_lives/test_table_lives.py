"""What can happen to a real table: replaced, restored, partitioned again, cleaned up, drifted."""

import json
import shutil

import pyarrow as pa
import pytest
import redis as redis_library
from deltalake import DeltaTable, write_deltalake

from shared.queue import keys
from tests.support import delta_tables
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.table_lives import expect_exact

pytestmark = pytest.mark.redis


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
    # Whether it is the same table, the commit, and that there is no next one: no checksum, no snapshot.
    assert decider.reads() - before == 3
