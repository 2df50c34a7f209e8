"""Two deciders on one Redis: nothing is lost, doubled or rebuilt for ever, whatever the events do."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from services.decider.settings import parse_policy
from shared.policy.policy import Policy
from tests.support.live_decider import POLICY, LiveDecider, WrittenTable, decider_settings

pytestmark = pytest.mark.redis

TABLES = 50
COMMITS = 5
OTHER = parse_policy("target-file-size=512kb,min-input-files=3")


@pytest.fixture
def pair(redis_url: str, tmp_path: Path) -> Iterator[tuple[LiveDecider, LiveDecider]]:
    with LiveDecider(of_lake(redis_url, tmp_path)) as first, LiveDecider(of_lake(redis_url, tmp_path)) as second:
        yield first, second


def of_lake(redis_url: str, lake: Path, policy: Policy = POLICY) -> Any:
    return decider_settings(redis_url, roots=(lake.as_uri(),), buckets={"lake": lake.as_uri()}, policy=policy)


def test_dropped_doubled_and_shuffled_events_over_fifty_tables_leave_every_partition_exact(
    pair: tuple[LiveDecider, LiveDecider], tmp_path: Path
) -> None:
    """30% of the events are dropped, 20% doubled, all shuffled; each goes to either decider, both at work at once."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chaos = random.Random(seed)
    tables = [WrittenTable(tmp_path / f"t{number:02d}", seed=seed + number) for number in range(TABLES)]
    for table in tables:
        pair[0].post("/v1/events", table.event(0))
    pair[0].drain()
    pending: list[dict[str, Any]] = []
    with ThreadPoolExecutor(4) as senders:

        def send(events: list[dict[str, Any]]) -> None:
            to_either = [(chaos.choice(pair), event) for event in events]
            answers = list(senders.map(lambda sent: sent[0].post("/v1/events", sent[1]).json(), to_either))
            assert all(answer["accepted"] == 1 for answer in answers)

        for _ in range(COMMITS):
            for table in tables:
                table.append()
                reported = chaos.random()
                pending += [table.event(table.version)] * (0 if reported < 0.3 else 2 if reported < 0.5 else 1)
            chaos.shuffle(pending)
            # The rest comes after the next commits, so that old events arrive late as well.
            half = len(pending) // 2
            send(pending[:half])
            del pending[:half]
        send(pending)
    with ThreadPoolExecutor(2) as sweepers:
        list(sweepers.map(lambda live: live.sweep(), pair))
    for table in tables:
        expect_exact(pair, table.path.name, table)


def expect_exact(pair: tuple[LiveDecider, LiveDecider], name: str, table: WrittenTable) -> None:
    """The state is a rebuild, each version was folded once, and each partition that is worth a job has one."""
    status = pair[0].get(f"/v1/tables/{name}")
    counters = status["counters"]
    assert status["state"]["version"] == table.version == COMMITS
    assert pair[1].partitions(name) == table.count_files()
    assert status["state"]["rebuilds"] == 0
    assert (counters["commits"], counters["tables_initialized"]) == (COMMITS, 1)
    decisions = pair[1].get(f"/v1/tables/{name}/decisions", limit=500)["decisions"]
    decided = [(one["version"], one["partition_key"]) for one in decisions]
    assert len(decided) == len(set(decided)), "a version was folded twice"
    worth = {
        partition["partition_key"]
        for partition in pair[0].get(f"/v1/tables/{name}/partitions")["partitions"]
        for made in partition["decisions"]
        if made["decision"] == "enqueue"
    }
    waiting = [job["partition_key"] for job in pair[1].get("/v1/jobs", table=name)["jobs"]]
    assert len(waiting) == len(set(waiting))
    assert worth <= set(waiting), "a job was lost"


def test_deciders_of_different_defaults_come_to_agree_and_rebuild_each_table_once(
    redis_url: str, tmp_path: Path
) -> None:
    tables = [WrittenTable(tmp_path / f"t{number}", seed=number) for number in range(4)]
    with LiveDecider(of_lake(redis_url, tmp_path)) as older:
        names = [older.register(table.path, table.path.name) for table in tables]
        with LiveDecider(of_lake(redis_url, tmp_path, OTHER)) as newer:
            for _ in range(4):
                for live in (newer, older):
                    tables[0].append()
                    live.sweep()
            for name, table in zip(names, tables, strict=True):
                status = older.get(f"/v1/tables/{name}")
                assert status["state"]["rebuilds"] == 1
                assert older.partitions(name) == newer.partitions(name) == table.count_files(OTHER)
                assert status["policy"] == newer.get(f"/v1/tables/{name}")["policy"]
            ours, theirs = (live.get("/v1/status")["defaults"] for live in (older, newer))
            assert (ours["in_sync"], theirs["in_sync"]) == (False, True)
            assert ours["version"] == theirs["version"] != ours["own_version"]


def test_the_older_decider_takes_over_the_newer_ones_defaults_for_new_tables_too(
    redis_url: str, tmp_path: Path
) -> None:
    with LiveDecider(of_lake(redis_url, tmp_path)) as older, LiveDecider(of_lake(redis_url, tmp_path, OTHER)) as newer:
        newer.run(newer.services.tables.defaults.refresh())
        older.run(older.services.tables.defaults.refresh())
        table = WrittenTable(tmp_path / "t")
        name = older.register(table.path)
        newer.sweep()
        assert older.partitions(name) == table.count_files(OTHER)
        assert newer.get(f"/v1/tables/{name}")["state"]["rebuilds"] == 0


def test_defaults_that_redis_lost_are_put_back_and_stay_in_force(redis_url: str, tmp_path: Path) -> None:
    import redis as redis_library

    with LiveDecider(of_lake(redis_url, tmp_path)) as older, LiveDecider(of_lake(redis_url, tmp_path, OTHER)) as newer:
        for live in (older, newer, older):
            live.run(live.services.tables.defaults.refresh())
        with redis_library.Redis.from_url(redis_url) as client:
            client.flushall()
        for live in (older, newer):
            live.run(live.services.tables.defaults.refresh())
        versions = {live.get("/v1/status")["defaults"]["version"] for live in (older, newer)}
        assert versions == {newer.services.tables.defaults.own.version}


def test_a_decider_that_cannot_read_what_another_one_set_keeps_its_own(redis_url: str, tmp_path: Path) -> None:
    import redis as redis_library

    with LiveDecider(of_lake(redis_url, tmp_path)) as live:
        live.run(live.services.tables.defaults.refresh())
        with redis_library.Redis.from_url(redis_url) as client:
            client.set("lw:defaults:default", '{"policy": "{\\"fan_in\\": 1}", "tenants": {}}')
        assert live.run(live.services.tables.defaults.refresh()) is False
        assert live.get("/v1/status")["defaults"]["in_sync"] is True
