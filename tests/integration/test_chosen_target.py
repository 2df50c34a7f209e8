"""A table whose target is chosen: when it changes, that the table is counted again under it, and what people see."""

from dataclasses import replace
from pathlib import Path
from time import time

import pytest
from deltalake import DeltaTable

from decider.state.commit_pace import DAY_MS
from decider.state.target_fit import WEEK_MS
from decider.store.tables.table_state import TableState
from shared.formats.options import FormatOptions
from shared.policy.policy import GIB, MIB
from shared.queue import keys
from shared.table import DataFile, RemovedFile
from tests.integration.test_follow import META, FollowedWorld
from tests.support.iceberg_folder import IcebergFolder
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.timed_world import POLICY, TABLE, in_world, partition

pytestmark = pytest.mark.redis

FIRST_MS = 1_700_000_000_000
"""Clock of a new Iceberg folder."""

AUTO = {"lakewright.target-file-size": "auto"}


def large_files(count: int, tag: str) -> list[DataFile]:
    return [DataFile(f"{tag}-{number}", 256 * MIB, partition(1)) for number in range(count)]


async def state_of(world: FollowedWorld) -> TableState:
    found = await world.states.state(TABLE.id)
    assert found is not None
    return found


async def test_a_target_is_chosen_once_a_week_and_the_table_is_counted_again_under_it(redis_url: str) -> None:
    async with in_world(redis_url, of=FollowedWorld) as world:
        follow = world.decider.follower.follow
        world.log.add(large_files(400, "first"), metadata=replace(META, configuration=AUTO))
        await follow(TABLE)
        world.log.add(large_files(1, "second"))
        assert (await follow(TABLE)).rescan == "", "nothing is known of a whole day"
        world.now_ms += DAY_MS
        world.log.add(large_files(1, "third"))
        followed = await follow(TABLE)
        assert followed.rescan.startswith("target of 1024 MiB instead of ")
        await world.expect_exact(replace(POLICY, target_bytes=GIB))
        state = await state_of(world)
        assert state.rebuild_reason == str(state.target_fit.changes[-1]) == followed.rescan
        assert sum(size for _, size in state.ingested) == 512 * MIB, "commits before the change are not forgotten"

        gone = [
            RemovedFile(file.path, size_bytes=file.size_bytes, partition=file.partition)
            for file in large_files(380, "first")
        ]
        world.log.add(removed=gone)
        await follow(TABLE)
        for passed_ms, target in ((WEEK_MS - 1, GIB), (1, 32 * MIB)):
            world.now_ms += passed_ms
            world.log.add(large_files(1, f"after {passed_ms}"))
            await world.tracker().follow(TABLE)
            await world.expect_exact(replace(POLICY, target_bytes=target))

        world.log.add(metadata=replace(META, configuration={"lakewright.target-file-size": "512 MiB"}))
        await follow(TABLE)
        await world.expect_exact(replace(POLICY, target_bytes=512 * MIB))
        world.log.add(metadata=replace(META, configuration=AUTO))
        await follow(TABLE)
        await world.expect_exact(replace(POLICY, target_bytes=32 * MIB))
        assert len((await state_of(world)).target_fit.changes) == 2


def test_a_chosen_target_says_so(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=["2026-01-01"])
    DeltaTable(str(table.path)).alter.set_table_properties(AUTO, raise_if_not_exists=False)
    name = decider.register(table.path)
    shown = decider.get(f"/v1/tables/{name}")
    assert shown["target"] == {"bytes": 256 << 10, "changes": []}
    table.append(2)
    decider.sweep()
    queue = decider.services.queue.executor
    key = keys.table_state(queue.name, shown["id"])
    found = decider.run(queue.redis.hget(key, "ingested")).decode()
    yesterday = int(found.removeprefix("[[").partition(",")[0]) - 1
    decider.run(queue.redis.hset(key, "ingested", f"[[{yesterday},1000]]"))
    table.append(1)
    decider.sweep()
    shown = decider.get(f"/v1/tables/{name}")
    assert shown["target"]["bytes"] == 32 * MIB
    (change,) = shown["target"]["changes"]
    assert (change["from_bytes"], change["to_bytes"]) == (256 << 10, 32 * MIB)
    assert change["reason"].startswith("target of 32 MiB instead of 0.25 MiB: ")
    assert shown["state"]["rebuild_reason"] == change["reason"]
    assert any("the target of 32 MiB is chosen" in note for note in shown["policy"]["notes"])


def test_the_target_of_an_iceberg_table_is_chosen_by_the_same_rule(redis_url: str, tmp_path: Path) -> None:
    folder = IcebergFolder(tmp_path / "clicks")
    folder.create("00000000-0000-4000-8000-000000000001", AUTO)
    folder.commit([folder.file(256 * MIB) for _ in range(100)])
    formats = FormatOptions(iceberg_folders=True)
    with LiveDecider(decider_settings(redis_url, roots=(str(tmp_path),), formats=formats)) as decider:
        name = decider.register(tmp_path / "clicks")
        folder.later(round(time() * 1000) - DAY_MS - FIRST_MS)
        folder.commit([folder.file(MIB)])
        decider.sweep()
        target = decider.get(f"/v1/tables/{name}")["target"]
        assert target["bytes"] == 256 * MIB
        assert [one["to_bytes"] for one in target["changes"]] == [256 * MIB]
