"""A real Apache Kafka broker: events doubled, reordered, and consumers and broker killed at any time lose nothing."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from shared.queue import keys
from tests.integration.test_kafka import (  # noqa: F401 - the same tests, with the brokers of this module
    TOPIC,
    Brokers,
    event,
    start,
    test_a_message_that_cannot_be_used_is_set_aside_and_shown_and_delays_no_other,
    test_a_message_that_was_handled_and_not_committed_comes_again_and_changes_nothing,
    test_events_that_are_doubled_and_in_any_order_lead_to_the_tables_newest_version,
    test_two_members_share_the_partitions_and_one_that_leaves_is_replaced,
)
from tests.support.kafka_broker import KafkaBroker
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.stack import ROOT
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.timeout(900), pytest.mark.long("kafka")]

KILLS = 6
TABLES = 80
SEED = int(os.environ.get("LAKEWRIGHT_KAFKA_SEED", "1"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    folder = tmp_path / "kafka"
    folder.mkdir()
    found = KafkaBroker(folder)
    found.start()
    yield found
    found.kill()


@pytest.fixture
def brokers(broker: KafkaBroker) -> Brokers:
    options = {"bootstrap.servers": broker.servers}
    admin = AdminClient(options)  # Its futures end with it.
    (created,) = admin.create_topics([NewTopic(TOPIC, num_partitions=2)]).values()
    created.result(timeout=scaled(30))
    return Brokers(Producer(options), options | {"session.timeout.ms": "6000"})


def consume_in_a_process(redis: str, root: Path, servers: str) -> "subprocess.Popen[bytes]":
    """Run a decider as a process of its own, which can be killed at any instruction."""
    environment = {
        **os.environ,
        "LAKEWRIGHT_REDIS_URL": redis,
        "LAKEWRIGHT_HTTP_ADDRESS": "127.0.0.1:0",
        "LAKEWRIGHT_ROOTS": root.as_uri(),
        "LAKEWRIGHT_DISCOVER": "active",
        "LAKEWRIGHT_DISCOVERY_S": "0",
        "LAKEWRIGHT_SWEEP_S": "86400",
        "LAKEWRIGHT_ADVICE_CPU": "0",
        "LAKEWRIGHT_KAFKA_TOPICS": TOPIC,
        "LAKEWRIGHT_KAFKA_OPTIONS": json.dumps({"bootstrap.servers": servers, "session.timeout.ms": "6000"}),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "services.decider"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )


@contextmanager
def consuming(redis: RedisServer, lake: Path, brokers: Brokers) -> Iterator[LiveDecider]:
    """Run a decider in this process that reads the topic."""
    access = {"kafka_topics": (TOPIC,), "kafka_options": brokers.options}
    with LiveDecider(decider_settings(redis.url, roots=(lake.as_uri(),), **access)) as live:
        yield live


def registered(server: RedisServer) -> set[str]:
    """Return the names of the registered tables."""
    with server.client() as client:
        return {name.decode() for name in client.hkeys(keys.TABLE_NAMES)}


def test_deciders_that_are_killed_while_they_consume_lose_no_event(
    brokers: Brokers, broker: KafkaBroker, own_redis_server: RedisServer, tmp_path: Path
) -> None:
    """Each table is known by its events alone: there is no discovery, and no sweep."""
    chance = random.Random(SEED)
    lake = tmp_path / "lake"
    tables = [WrittenTable(lake / f"t{number}", days=("2026-01-01",)) for number in range(TABLES)]
    sent: tuple[list[str], list[str]] = ([], [])
    for table in chance.sample(tables * 3, 3 * TABLES):
        number = chance.randrange(2)
        sent[number].append(table.path.name)
        brokers.send(event(table, 0), partition=number)
    open_offsets = 0
    for _ in range(KILLS):
        before = registered(own_redis_server)
        process = consume_in_a_process(own_redis_server.url, lake, broker.servers)
        try:
            until(
                "it handles messages",
                lambda before=before: len(found := registered(own_redis_server)) == TABLES or found > before,  # type: ignore[misc]
                seconds=120,
            )
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        committed = [max(0, offset) for offset in brokers.committed()]
        handled = {name for names, offset in zip(sent, committed, strict=True) for name in names[:offset]}
        assert handled <= registered(own_redis_server), "an offset was committed whose message had no effect"
        open_offsets += len(registered(own_redis_server) - handled) > 0
    assert open_offsets, "none was killed between handling and committing: this shows nothing"
    with consuming(own_redis_server, lake, brokers) as live:
        until("all is committed", lambda: brokers.committed() == [len(names) for names in sent], seconds=120)
        assert registered(own_redis_server) == {table.path.name for table in tables}
        live.drain()
        assert all(live.get(f"/v1/tables/{table.path.name}")["state"]["version"] == 0 for table in tables)
        assert live.get("/v1/rejected-events") == {"rejected": []}


def test_a_broker_that_is_killed_and_comes_back_delays_events_and_loses_none(
    brokers: Brokers, broker: KafkaBroker, own_redis_server: RedisServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    first, second = (WrittenTable(lake / name) for name in ("first", "second"))
    with consuming(own_redis_server, lake, brokers) as live:
        brokers.send(event(first, 0), "no JSON")
        until("the first is there", lambda: live.client.get("/v1/tables/first").is_success, seconds=60)
        broker.kill()
        first.append()
        broker.start()
        brokers.send(event(first, 1), event(second, 0), partition=1)
        until("the second is there", lambda: live.client.get("/v1/tables/second").is_success, seconds=120)
        until("the first is read again", lambda: live.get("/v1/tables/first")["state"]["version"] == 1, seconds=60)
        until("all is committed", lambda: brokers.committed() == [2, 2], seconds=60)
        (rejected,) = live.get("/v1/rejected-events")["rejected"]
        assert (rejected["body"], rejected["source"]) == ("no JSON", "kafka:commits[0]@1")
