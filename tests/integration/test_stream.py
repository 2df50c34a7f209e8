"""The event stream tells what happens, resumes where it broke, and neither readers nor Redis can break it."""

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from decider.api.http_settings import StreamSlots
from decider.gateway.credentials import Credentials, parse_tokens
from decider.store.queue.stream_reader import COUNT, LEDGER, NOTES, RUNS, StreamReader, position_after
from services.cli.client import ApiClient, ServerSentEvent
from shared.errors import InvalidInput
from shared.queue import keys
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def decider(redis_url: str) -> Iterator[LiveDecider]:
    live = LiveDecider(decider_settings(redis_url)).start(stream_slots=StreamSlots(limit=2, poll_s=0.1))
    yield live
    live.close()


class Reader:
    """A client of the stream in a thread of its own; it ends when it is asked to, or after the events it wants."""

    def __init__(self, decider: LiveDecider, last_id: str | None = None, **params: Any) -> None:
        self.heard: queue.Queue[ServerSentEvent] = queue.Queue()
        self._url, self._last_id, self._params = decider.url, last_id, params
        self._passed: list[ServerSentEvent] = []
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def next(self, event: str) -> ServerSentEvent:
        """Return the next event of this kind; others are kept, because kinds have no order among each other."""
        for reported in self._passed:
            if reported.event == event:
                self._passed.remove(reported)
                return reported
        while True:
            reported = self.heard.get(timeout=scaled(20))
            if reported.event == event:
                return reported
            self._passed.append(reported)

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(scaled(20))
        assert not self._thread.is_alive()

    def _read(self) -> None:
        with ApiClient(self._url) as api:
            for reported in api.events("/v1/stream", self._params, self._last_id):
                self.heard.put(reported)
                if self._leaving.is_set():
                    return


def leave_all(decider: LiveDecider, *readers: Reader) -> None:
    """Let readers go: each ends at the next event it hears, so one is made."""
    for reader in readers:
        reader._leaving.set()
    with decider_redis(decider) as client:
        client.xadd(keys.events("default"), {"event": "bye", "job": "t.0.compact", "detail": ""})
    for reader in readers:
        reader.leave()


def decider_redis(decider: LiveDecider) -> Any:
    import redis

    return redis.Redis.from_url(decider.settings.redis_url)


def test_decisions_jobs_and_depth_are_reported_as_they_happen_and_a_reader_resumes(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    name = decider.register(table.path, "orders")
    reader = Reader(decider)
    assert reader.next("connected").data == {"tables": 1, "all_tables": True}
    table.append(4)
    decider.post("/v1/events", {"table": name})
    first = reader.next("decision")
    assert (first.data["table"], first.data["version"], first.data["decision"]) == ("orders", 1, "skip")
    assert first.data["message"].startswith("Version 1, dt=2026-01-01: skip.")
    while (reported := reader.next("decision")).data["decision"] == "skip":
        pass
    assert reported.data["outcome"] == "queued"
    while reader.next("queue").data["depth"]["queued"] != 1:
        pass
    for change in ("pause", "resume"):  # It changes no depth.
        decider.post(f"/v1/queue/{change}", {"scope": "queue", "name": ""}).raise_for_status()
        assert reader.next("queue").data["depth"]["queued"] == 1
    (job,) = decider.get("/v1/jobs")["jobs"]
    decider.client.delete(f"/v1/jobs/{job['id']}")
    cancelled = reader.next("job").data
    assert (cancelled["job"], cancelled["event"]) == (job["id"], "cancel")

    again = Reader(decider, last_id=first.id)
    versions = [again.next("decision").data["version"] for _ in range(3)]
    assert versions == [2, 3, 4]
    assert again.next("job").data["job"] == job["id"]
    leave_all(decider, reader, again)


def test_a_reader_may_name_tables_and_kinds(decider: LiveDecider, tmp_path: Path) -> None:
    for name in ("one", "two"):
        decider.register(WrittenTable(tmp_path / name).path, name)
    named = Reader(decider, table=["two"], about=["decisions", "jobs"])
    assert named.next("connected").data == {"tables": 1, "all_tables": True}
    for name in ("one", "two"):
        WrittenTable(tmp_path / name)
        decider.post("/v1/events", {"table": name})
    assert named.next("decision").data["table"] == "two"
    leave_all(decider, named)
    heard = [named.heard.get() for _ in range(named.heard.qsize())]
    assert {reported.event for reported in heard} <= {"decision", "job"}
    assert decider.client.get("/v1/stream", params={"table": "three"}).status_code == 404
    assert decider.client.get("/v1/stream", params={"about": "weather"}).status_code == 422


def test_readers_are_bounded_and_a_place_is_free_again_when_one_leaves(decider: LiveDecider) -> None:
    readers = [Reader(decider), Reader(decider)]
    for reader in readers:
        reader.next("connected")
    refused = decider.client.get("/v1/stream")
    assert refused.status_code == 503
    assert "limit 2, per client" in refused.json()["detail"]
    leave_all(decider, *readers)
    until("their places are free", lambda: decider.services.http.stream_slots.taken == 0)
    next_one = Reader(decider)
    next_one.next("connected")
    leave_all(decider, next_one)


def test_one_client_cannot_take_all_places(redis_url: str) -> None:
    tokens = {name: f"{name}-t0ken-for-tests-only" for name in ("one", "two")}
    known = Credentials(parse_tokens(",".join(f"viewer:{token}" for token in tokens.values())))
    with closing(
        LiveDecider(decider_settings(redis_url, known=known)).start(
            stream_slots=StreamSlots(limit=4, per_client=1, poll_s=0.1)
        )
    ) as live:
        bearers = [{"authorization": f"Bearer {token}"} for token in tokens.values()]
        with live.client.stream("GET", "/v1/stream", headers=bearers[0]) as first:
            assert first.status_code == 200
            assert live.client.get("/v1/stream", headers=bearers[0]).status_code == 503
            with live.client.stream("GET", "/v1/stream", headers=bearers[1]) as second:
                assert second.status_code == 200


@pytest.mark.parametrize("last_id", ["x", "1-1", "1-/runs", "1-1/ru ns", "-1-1/runs", "1" * 20 + "-1/runs"])
def test_an_id_that_no_event_had_is_refused(decider: LiveDecider, last_id: str) -> None:
    answer = decider.client.get("/v1/stream", headers={"last-event-id": last_id})
    assert (answer.status_code, answer.json()["field"]) == (422, "Last-Event-ID")
    with pytest.raises(InvalidInput):
        position_after(last_id)


def test_trouble_is_reported_and_the_stream_goes_on_when_redis_is_back(own_redis_server: RedisServer) -> None:
    with closing(
        LiveDecider(decider_settings(own_redis_server.url)).start(stream_slots=StreamSlots(poll_s=0.1))
    ) as live:
        reader = Reader(live)
        reader.next("connected")
        own_redis_server.kill()
        assert "answer" in reader.next("error").data["detail"]
        own_redis_server.start()
        with own_redis_server.client() as client:
            client.xadd(keys.events("default"), {"event": "preempted", "job": "t.0.compact", "detail": "a-1 7"})
        reported = reader.next("job").data
        assert (reported["event"], reported["table_id"], reported["detail"]) == ("preempted", "t", "a-1 7")
        leave_all(live, reader)


def test_a_record_of_a_newer_release_is_reported_as_unreadable_and_hides_nothing(
    decider: LiveDecider, tmp_path: Path
) -> None:
    decider.register(WrittenTable(tmp_path / "orders").path, "orders")
    found = decider.run(decider.services.tables.registry.find("orders"))
    assert found is not None
    reader = Reader(decider)
    reader.next("connected")
    with decider_redis(decider) as client:
        raw = json.loads(client.xrevrange(keys.ledger("default", found.id), count=1)[0][1][b"record"])
        for record in (raw | {"policy": '{"full_file_threshold":"1/100"}'}, raw):
            client.xadd(keys.ledger("default", found.id), {"record": json.dumps(record), "out": ""})
    reported = [reader.next("decision").data for _ in range(2)]
    assert [one["decision"] for one in reported] == ["unreadable", raw["verdict"]]
    assert [one["version"] for one in reported] == [raw["v"]] * 2
    leave_all(decider, reader)


def test_entries_of_several_streams_come_once_each_in_the_order_of_the_clock(decider: LiveDecider) -> None:
    """More than one read takes of one stream: what others have beyond its end waits for it."""
    streams = [RUNS, NOTES, LEDGER + "t"]
    with decider_redis(decider) as client:
        for number in range(3 * COUNT):
            key = (keys.runs("default"), keys.events("default"), keys.ledger("default", "t"))[min(number % 5, 2)]
            client.xadd(key, {"n": number}, id=f"{1_000 + number // 2}-{number}")
    tails: StreamReader = decider.services.queue.streams

    def read_on(tail: Any) -> list[tuple[str, str]]:
        found = []
        while some := decider.run(tails.read(tail, streams)):
            found += [(entry.id, entry.fields["n"]) for entry in some]
        return found

    start = decider.run(tails.now())
    whole = read_on(replace(start, start="0-0"))
    assert [int(number) for _, number in whole] == list(range(3 * COUNT))
    for place in (0, 57, 199):
        later = read_on(position_after(whole[place][0]))
        assert later[-1] == whole[-1]
        rest = whole[place + 1 :]
        again = [one for one in later if one not in rest]
        assert [one for one in later if one in rest] == rest, "nothing is missing"
        assert all(one[0].partition("-")[0] == whole[place][0].partition("-")[0] for one in again)


def test_the_command_line_watches(decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    name = decider.register(table.path, "orders")
    start = decider.run(decider.services.queue.streams.now()).start
    table.append(1)
    decider.post("/v1/events", {"table": name})
    decider.drain()

    def watch(*arguments: str) -> str:
        wanted = ["watch", "--count", "2", "--about", "decisions", "--since", f"{start}/runs"]
        result = decider.command(*arguments, *wanted)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    hello, decision = watch().splitlines()[:2]
    assert hello == "Watching 1 table."
    assert "orders  Version 1, dt=2026-01-01: skip." in decision
    events = [json.loads(line) for line in watch("--json").splitlines()]
    assert [event["event"] for event in events] == ["connected", "decision"]
    assert events[1]["id"].endswith(LEDGER + events[1]["data"]["table_id"])


def test_a_stream_is_no_cached_page(decider: LiveDecider) -> None:
    with httpx.stream("GET", f"{decider.url}/v1/stream", trust_env=False, timeout=scaled(20)) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-cache"
    until("its place is free", lambda: decider.services.http.stream_slots.taken == 0)


def test_a_reader_of_tables_gets_those_whose_state_moved_and_what_moved_while_it_was_away(
    decider: LiveDecider, tmp_path: Path
) -> None:
    """Commits that lead to no decision count, too, and so do those of other deciders: the script notes them."""
    table = WrittenTable(tmp_path / "t")
    other = WrittenTable(tmp_path / "other")
    for name, one in (("a.t", table), ("a.other", other)):
        decider.register(one.path, name)
    identity = decider.get("/v1/tables/a.t")["id"]
    reader = Reader(decider, about="tables", table="a.t")
    reader.next("connected")
    table.append()
    other.append()
    decider.sweep()
    heard = reader.next("tables")
    assert (heard.data["table_ids"], heard.data["more"], heard.id) == ([identity], False, None)
    reader._leaving.set()  # It ends at the next event it hears.
    table.append()
    decider.sweep()
    reader.leave()
