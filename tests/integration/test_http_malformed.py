"""Whatever a caller sends, the answer is a problem that names the field, and nothing in the store has moved."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis as redis_library

from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.stack import s3_event
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def known(redis_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveDecider, str]]:
    """A decider that knows one table, for many bodies that must not change it."""
    with redis_server.client() as client:
        client.flushall()
    folder = tmp_path_factory.mktemp("lake")
    table = WrittenTable(folder / "orders")
    table.append(5)
    live = LiveDecider(decider_settings(redis_server.url, roots=(folder.as_uri(),), max_body_bytes=65_536)).start()
    yield live, live.register(table.path, "sales.orders")
    live.close()


def dump(redis_url: str) -> dict[bytes, bytes | None]:
    """Everything in the store, byte for byte."""
    with redis_library.Redis.from_url(redis_url) as client:
        return {key: client.dump(key) for key in sorted(client.keys())}


EVENTS: list[tuple[str, bytes, str]] = [
    ("not JSON", b"{", "body"),
    ("nothing", b"", "body"),
    ("not UTF-8", b'{"table": "\xff\xfe"}', "body"),
    ("a number", b"7", "body"),
    ("null", b"null", "body"),
    ("an unknown shape", b'{"hello": 1}', "body"),
    ("nested beyond reason", b"[" * 30_000 + b"]" * 30_000, "body"),
    ("a misspelt field", b'{"table": "sales.orders", "verison": 3}', "verison"),
    ("a table that is a number", b'{"table": 7}', "table"),
    ("a relative path", b'{"table": "a/b"}', "table"),
    ("dots that climb", b'{"table": "/a/../b"}', "table"),
    ("a version below zero", b'{"table": "sales.orders", "version": -1}', "version"),
    ("a version that is text", b'{"table": "sales.orders", "version": "3"}', "version"),
    ("a version beyond 64 bits", b'{"table": "sales.orders", "version": 1' + b"0" * 30 + b"}", "version"),
    ("a version of 5,000 digits", b'{"table": "sales.orders", "version": 1' + b"0" * 5_000 + b"}", "body"),
    ("a list with one bad item", b'[{"table": "sales.orders"}, {"table": null}]', "[1].table"),
    ("records that are no list", b'{"Records": {}}', "Records"),
    (
        "a record without a bucket",
        b'{"Records": [{"eventName": "ObjectCreated:Put", "s3": {}}]}',
        "Records[0].s3.bucket",
    ),
]


@pytest.mark.parametrize(
    ("body", "field"), [(body, field) for _, body, field in EVENTS], ids=[one[0] for one in EVENTS]
)
def test_an_event_that_cannot_be_read_is_refused_by_field(
    known: tuple[LiveDecider, str], redis_server: Any, body: bytes, field: str
) -> None:
    decider, _ = known
    before = dump(redis_server.url)
    answer = decider.client.post("/v1/events", content=body)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["status"], problem["field"]) == (400, 400, field), problem
    assert problem["detail"]
    assert dump(redis_server.url) == before


TABLES: list[tuple[str, Any, str]] = [
    ("no body", b"", "body"),
    ("not JSON", b"{", "body"),
    ("a list", [], "body"),
    ("no location", {}, "location"),
    ("a location that is a number", {"location": 7}, "location"),
    ("an empty location", {"location": ""}, "location"),
    ("a relative path", {"location": "tables/orders"}, "location"),
    ("a scheme that is not known", {"location": "ftp://host/orders"}, "location"),
    ("a control character", {"location": "/tables/\u0000orders"}, "location"),
    ("a lone surrogate", b'{"location": "/tables/\\ud800"}', "location"),
    ("far too long", {"location": "/" + "x" * 5_000}, "location"),
    ("a name with a slash", {"location": "/t", "name": "a/b"}, "name"),
    ("an empty name", {"location": "/t", "name": ""}, "name"),
    ("a name of five parts", {"location": "/t", "name": "a.b.c.d.e"}, "name"),
    ("a tenant with a blank", {"location": "/t", "tenant": "a b"}, "tenant"),
    ("a tenant that would split a key", {"location": "/t", "tenant": "a|b"}, "tenant"),
    ("a field no one knows", {"location": "/t", "tennant": "a"}, "tennant"),
]

OPTIMIZE: list[tuple[str, Any, str]] = [
    ("not JSON", b"{", "body"),
    ("a text", "all", "body"),
    ("partitions that are a text", {"partitions": "dt=1"}, "partitions"),
    ("a partition that is a number", {"partitions": [7]}, "partitions"),
    ("a column that is none", {"partitions": ["country=nl"]}, "partitions.0"),
    ("a text that is no partition", {"partitions": ["dt=2026-01-01", "yesterday"]}, "partitions.1"),
    ("a value that is a number", {"partitions": [{"dt": 7}]}, "partitions"),
    ("too many partitions", {"partitions": ["dt=1"] * 1_001}, "partitions"),
    ("a priority that is none", {"priority": "asap"}, "priority"),
    ("a dry run that is a text", {"dry_run": "perhaps"}, "dry_run"),
    ("a field no one knows", {"froce": True}, "froce"),
]

BODIES = [(f"tables: {name}", "/v1/tables", body, field) for name, body, field in TABLES]
BODIES += [(f"optimize: {name}", "/v1/tables/sales.orders/optimize", body, field) for name, body, field in OPTIMIZE]


@pytest.mark.parametrize(("path", "body", "field"), [one[1:] for one in BODIES], ids=[one[0] for one in BODIES])
def test_a_request_that_cannot_be_used_is_refused_by_field(
    known: tuple[LiveDecider, str], redis_server: Any, path: str, body: Any, field: str
) -> None:
    decider, _ = known
    before = dump(redis_server.url)
    if isinstance(body, bytes):
        answer = decider.client.post(path, content=body, headers={"content-type": "application/json"})
    else:
        answer = decider.post(path, body)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code in (400, 422), problem
    assert problem["field"].startswith(field), problem
    assert dump(redis_server.url) == before


QUERIES = [
    ("/v1/tables?limit=0", "limit"),
    ("/v1/tables?limit=501", "limit"),
    ("/v1/jobs?limit=ten", "limit"),
    ("/v1/jobs?state=lost", "state"),
    ("/v1/jobs?page_token=queued.x", "page_token"),
    ("/v1/jobs?state=queued&page_token=finished.1-1", "page_token"),
    ("/v1/jobs/a|b", "job"),
    ("/v1/tables/a%20b", "name"),
    ("/v1/tables/sales.orders/decisions?at=yesterday", "at"),
    ("/v1/tables/sales.orders/decisions?at=2026-01-01T00:00:00", "at"),
    ("/v1/tables/sales.orders/decisions?partition=country%3Dnl", "partition"),
    ("/v1/tables/sales.orders/decisions?partition=", "partition"),
]


@pytest.mark.parametrize(("path", "field"), QUERIES)
def test_a_query_that_cannot_be_used_is_refused_by_field(known: tuple[LiveDecider, str], path: str, field: str) -> None:
    decider, _ = known
    answer = decider.client.get(path)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


@pytest.mark.parametrize(
    ("method", "path", "status", "field"),
    [
        ("GET", "/v1/tables/no.such", 404, "table"),
        ("DELETE", "/v1/tables/no.such", 404, "table"),
        ("POST", "/v1/tables/no.such/optimize", 404, "table"),
        ("GET", "/v1/jobs/no.such", 404, "job"),
        ("DELETE", "/v1/jobs/no.such", 404, "job"),
        ("GET", "/v1/jobs?table=no.such", 404, "table"),
        ("POST", "/v1/events/carrier-pigeon", 404, "source"),
        ("GET", "/v1/nothing", 404, ""),
        ("PUT", "/v1/tables", 405, ""),
    ],
)
def test_what_is_not_there_is_a_problem_that_names_it(
    known: tuple[LiveDecider, str], method: str, path: str, status: int, field: str
) -> None:
    decider, _ = known
    answer = decider.client.request(method, path, json={} if method == "POST" else None)
    assert (answer.status_code, answer.json()["status"], answer.json()["field"]) == (status, status, field)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("is_chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/tables", "/v1/tables/sales.orders/optimize"])
def test_a_body_above_the_limit_is_refused_while_it_arrives(
    known: tuple[LiveDecider, str], redis_server: Any, path: str, *, is_chunked: bool
) -> None:
    decider, _ = known
    before = dump(redis_server.url)
    sent: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(64):
            sent.append(number)
            yield b" " * 4_096

    body = chunks() if is_chunked else b" " * 70_000
    answer = decider.client.post(path, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["field"]) == (413, "body")
    assert dump(redis_server.url) == before


def test_a_body_of_another_source_is_refused(known: tuple[LiveDecider, str]) -> None:
    decider, _ = known
    answer = decider.post("/v1/events/s3", {"table": "sales.orders"})
    assert (answer.status_code, answer.json()["field"]) == (400, "Records")
    taken = decider.post("/v1/events/s3", s3_event("orders/_delta_log/_last_checkpoint"))
    assert taken.json() == {"accepted": 0, "ignored": [{"reason": "not_a_commit", "count": 1}]}


def test_what_is_too_large_or_too_deep_is_refused_wherever_it_is_sent(
    known: tuple[LiveDecider, str], redis_server: Any
) -> None:
    decider, _ = known
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


def test_a_partitions_name_as_long_as_the_description_allows_can_be_asked_for(known: tuple[LiveDecider, str]) -> None:
    """Each of its 20,000 characters takes twelve bytes in the head of the call."""
    url = httpx.URL(known[0].url)
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
