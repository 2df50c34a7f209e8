"""A format that only tests know is followed, decided, rewritten and listed beside Delta; nothing else is changed."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.ports import TableEngine
from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from decider.formats.delta.format import DeltaFormat
from decider.formats.registry import TableFormats
from decider.formats.table_format import StorageAccess
from shared.jobs.payload import JobPayload
from shared.queue import queries
from shared.queue.model import JobState
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.time_limits import scaled
from tests.support.toy_format import FROZEN, ToyEngine, ToyFormat, ToyTable

pytestmark = pytest.mark.redis

TIMES = LeaseTimes(lease_s=scaled(10.0), interval_s=1.0, margin_s=scaled(2.0), stop_grace_s=1.0)


def both_formats(access: StorageAccess) -> TableFormats:
    return TableFormats(access, [DeltaFormat(access), ToyFormat(access)])


@pytest.fixture
def decider(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    settings = decider_settings(redis_url, roots=(str(tmp_path),))
    with LiveDecider(settings, with_formats=both_formats) as live:
        yield live


class ToyActor:
    """One slot that can do nothing but the toy format."""

    def __init__(self, url: str) -> None:
        self.queue = SyncQueueExecutor(connect(url), "default")
        self._heartbeat = Heartbeat(SyncQueueExecutor(connect(url), "default"), "toy-actor", TIMES)
        self._heartbeat.start()
        engines = EngineSet([ToyEngine()])
        self.worker = Worker(
            engines, self.queue, ActorContext("toy-actor", self._heartbeat, threading.Event()), WorkerSettings()
        )
        about = ActorInfo(1, 1, "here", {}, engines.abilities)
        Presence(self.queue, "toy-actor", about, ttl_ms=60_000).announce((), busy_slots=0)

    def close(self) -> None:
        self._heartbeat.close()


@pytest.fixture
def actor(redis_url: str) -> Iterator[ToyActor]:
    made = ToyActor(redis_url)
    yield made
    made.close()


def toy_table(path: Path, commits: int = 12) -> ToyTable:
    made = ToyTable(path)
    made.create()
    for number in range(commits):
        made.append([f"row-{number}-{row}" for row in range(200)])
    return made


def test_the_engine_has_each_method_of_its_port() -> None:
    """No type checker reads it, and the worker calls some of them only after a failure."""
    methods = {name for name in vars(TableEngine) if not name.startswith("_")}
    assert "find_commit" in methods
    assert methods <= set(dir(ToyEngine))


def test_a_table_of_another_format_is_followed_decided_and_rewritten(
    decider: LiveDecider, actor: ToyActor, tmp_path: Path
) -> None:
    table = toy_table(tmp_path / "toys")
    rows = table.rows()
    name = decider.register(table.path, "toys")
    (job,) = actor.queue.run(queries.jobs("default", JobState.QUEUED)).jobs
    assert JobPayload.decode(job.payload).format == "toy"
    assert actor.worker.run_next()
    assert len(table.live()) < 12
    assert table.rows() == rows
    decider.sweep()
    (partition,) = decider.partitions(name).values()
    assert (partition.files, partition.bytes) == (len(table.live()), sum(table.live().values()))
    (event,) = decider.get(f"/v1/tables/{name}/optimizations")["optimizations"]
    assert event["version"] == table.versions()[-1]
    assert event["job"] == job.id
    table.append(["one more"])
    decider.sweep()
    (partition,) = decider.partitions(name).values()
    assert partition.files == len(table.live())


def test_each_actor_takes_the_jobs_of_its_format_and_the_others_wait_in_sight(
    decider: LiveDecider, actor: ToyActor, tmp_path: Path
) -> None:
    toys, orders = toy_table(tmp_path / "toys"), WrittenTable(tmp_path / "orders")
    orders.append(20)
    decider.register(orders.path, "orders")
    decider.register(toys.path, "toys")
    while actor.worker.run_next():
        pass
    assert len(toys.live()) < 12
    answer = decider.get("/v1/actors")
    assert answer["actors"][0]["abilities"] == ["toy/compact", "toy/sort"]
    (unserved,) = answer["unserved"]
    assert unserved["ability"] == "delta/compact"
    assert unserved["jobs"] >= 1
    metrics = decider.client.get("/metrics").text
    assert f'lakewright_jobs_without_actor{{ability="delta/compact"}} {unserved["jobs"]}.0' in metrics


def test_discovery_finds_tables_of_every_format(decider: LiveDecider, tmp_path: Path) -> None:
    toy_table(tmp_path / "sales" / "toys", commits=1)
    WrittenTable(tmp_path / "sales" / "orders")
    decider.run(decider.services.requests.discovery.run_once())
    decider.drain()
    assert {one["name"] for one in decider.get("/v1/tables")["tables"]} == {"sales.toys", "sales.orders"}


def test_a_refusal_of_the_format_is_shown_and_nothing_is_queued(
    decider: LiveDecider, actor: ToyActor, tmp_path: Path
) -> None:
    table = toy_table(tmp_path / "toys")
    table.commit(metadata={"uuid": "toy-1", "configuration": {FROZEN: "1"}})
    name = decider.register(table.path, "toys")
    assert decider.get(f"/v1/tables/{name}")["refusal"]["reason"].startswith("the table is frozen")
    assert actor.queue.run(queries.jobs("default", JobState.QUEUED)).jobs == ()


def test_a_table_of_another_format_may_take_a_place(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader that was kept for a table gives way once its format is no longer there."""
    monkeypatch.setattr("decider.tracking.followed_table.TRUSTED_MS", 0)
    place = tmp_path / "t"
    orders = WrittenTable(place)
    name = decider.register(place, "t")
    for file in sorted((orders.path / "_delta_log").iterdir()):
        file.unlink()
    (orders.path / "_delta_log").rmdir()
    table = toy_table(place, commits=3)
    decider.sweep()
    decider.sweep()
    (partition,) = decider.partitions(name).values()
    assert partition.files == len(table.live())
