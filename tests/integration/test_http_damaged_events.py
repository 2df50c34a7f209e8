"""Hundreds of damaged events over real HTTP: each is a problem that names a field, and the store is as before."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis as redis_library

from tests.support.event_samples import SAMPLES, Sample, damages, dumped
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def decider(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDecider]:
    """A decider that knows `sales.orders` and allows everything below its folder and the bucket of the samples."""
    with redis_server.client() as client:
        client.flushall()
    folder = tmp_path_factory.mktemp("lake")
    table = WrittenTable(folder / "orders")
    settings = decider_settings(redis_server.url, roots=(folder.as_uri(),), max_body_bytes=65_536)
    live = LiveDecider(settings).start()
    live.register(table.path, "sales.orders")
    yield live
    live.close()


def dump(redis_url: str) -> dict[bytes, bytes | None]:
    """Everything in the store, byte for byte."""
    with redis_library.Redis.from_url(redis_url) as client:
        return {key: client.dump(key) for key in sorted(client.keys())}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_the_sample_is_taken_and_every_damaged_one_is_refused(
    decider: LiveDecider, redis_server: RedisServer, sample: Sample
) -> None:
    for path in ("/v1/events", f"/v1/events/{sample.source}"):
        answer = decider.client.post(path, content=dumped(sample.body))
        assert answer.status_code in (200, 202), answer.text
    decider.drain()
    before = dump(redis_server.url)
    for damage in damages(sample):
        answer = decider.client.post(f"/v1/events/{sample.source}", content=damage.body)
        problem: dict[str, Any] = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, problem["status"]) == (400, 400), (damage.name, problem)
        assert problem["field"].startswith(damage.field), (damage.name, problem)
        assert problem["allowed"], damage.name
        assert decider.client.post("/v1/events", content=damage.body).status_code < 500
    assert dump(redis_server.url) == before


def test_what_is_too_large_or_too_deep_is_refused_wherever_it_is_sent(
    decider: LiveDecider, redis_server: RedisServer
) -> None:
    before = dump(redis_server.url)
    deep = b'{"location": ' + b"[" * 900 + b"]" * 900 + b"}"
    headers = {"content-type": "application/json"}
    for path in ("/v1/events", "/v1/tables", "/v1/tables/sales.orders/optimize", "/v1/queue/pause"):
        large = decider.client.post(path, content=b'{"table": "' + b"x" * 70_000 + b'"}', headers=headers)
        assert (large.status_code, large.json()["field"]) == (413, "body")
        for body in (deep, deep.replace(b"location", b"table"), b"[" * 20_000, b'{"table": ' + b"9" * 20_000 + b"}"):
            answer = decider.client.post(path, content=body, headers=headers)
            assert answer.status_code in (400, 422), (path, answer.text[:200])
            assert len(answer.content) < 4_096
    assert dump(redis_server.url) == before


def test_a_partitions_name_as_long_as_the_description_allows_can_be_asked_for(decider: LiveDecider) -> None:
    """Each of its 20,000 characters takes twelve bytes in the head of the call."""
    url = httpx.URL(decider.url)
    # Not by httpx, which makes no call that long.
    connection = http.client.HTTPConnection(url.host, url.port, timeout=scaled(30))
    try:
        connection.request("GET", "/v1/tables/sales.orders/decisions?partition=" + "%F0%9F%A7%8A" * 20_000)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    assert (answer.status, json.loads(text)["field"]) == (422, "partition")
    assert len(text) < 4_096
