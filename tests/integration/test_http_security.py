"""Who may call what, over real HTTP: tokens, passwords, keys, signatures, rates, slow bodies, silence on secrets."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decider.api.app import HEADERS
from decider.gateway.credentials import Credentials, parse_secrets, parse_tokens
from tests.support.event_samples import SAMPLES, dumped
from tests.support.live_decider import LiveDecider, WrittenTable, deciders
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack, s3_event
from tests.support.time_limits import scaled
from tests.support.waiting import until
from tests.support.webhook_signing import signed_headers

pytestmark = pytest.mark.redis

TOKENS = {role: f"{role}-t0ken-for-tests-only" for role in ("hook", "viewer", "operator", "admin")}
SECRET = "s3cret-for-tests-only-of-32-chars-and-more"  # noqa: S105
KNOWN = Credentials(
    tokens=parse_tokens(",".join(f"{role}:{token}" for role, token in TOKENS.items())), secrets=parse_secrets(SECRET)
)
EVENT = dumped({"table": "sales.orders"})


@pytest.fixture
def start(redis_url: str) -> Iterator[Callable[..., LiveDecider]]:
    """Start deciders with settings of the test's choice."""
    with deciders(redis_url, known=KNOWN) as start_one:
        yield start_one


CALLS = [
    ("POST", "/v1/events", EVENT, {"hook", "operator", "admin"}),
    ("GET", "/v1/tables", b"", {"viewer", "operator", "admin"}),
    ("GET", "/v1/status", b"", {"viewer", "operator", "admin"}),
    ("GET", "/openapi.json", b"", {"viewer", "operator", "admin"}),
    ("POST", "/v1/queue/pause", b'{"scope": "queue"}', {"operator", "admin"}),
    ("GET", "/v1/queue/settings", b"", {"viewer", "operator", "admin"}),
    ("PATCH", "/v1/queue/settings", b'{"max_attempts": 5}', {"admin"}),
    ("PUT", "/v1/queue/weights", b'{"scope": "tenant", "name": "a", "weight": 2}', {"admin"}),
    ("DELETE", "/v1/tables/no.such", b"", {"admin"}),
    ("GET", "/nothing", b"", {"admin"}),
]


def test_each_call_is_for_its_roles_and_for_no_one_without_a_token(start: Callable[..., LiveDecider]) -> None:
    live = start()
    for method, path, body, allowed in CALLS:
        for role, token in TOKENS.items():
            headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            answer = live.client.request(method, path, content=body, headers=headers)
            if role in allowed:
                assert answer.status_code in (200, 202, 404), (role, path, answer.text)
            else:
                assert (answer.status_code, answer.json()["type"]) == (403, "urn:lakewright:problem:forbidden")
                assert role in answer.json()["detail"]
        stranger = live.client.request(method, path, content=body)
        assert (stranger.status_code, stranger.json()["field"]) == (401, "Authorization")
        assert stranger.headers["content-type"] == "application/problem+json"


def test_a_webhook_may_show_its_token_as_a_password_or_a_key_and_no_one_else_may(
    start: Callable[..., LiveDecider],
) -> None:
    live = start()
    hook, admin = TOKENS["hook"], TOKENS["admin"]
    assert live.client.post("/v1/events", content=EVENT, auth=("sns", hook)).status_code == 202
    assert live.client.post("/v1/events/lakewright", params={"key": hook}, content=EVENT).status_code == 202
    for shown in ({"auth": ("x", admin)}, {"params": {"key": admin}}):
        refused = live.client.post("/v1/events", content=EVENT, **shown)
        assert (refused.status_code, "bearer tokens only" in refused.json()["detail"]) == (403, True)
    for shown in ({"auth": ("x", TOKENS["viewer"])}, {"params": {"key": TOKENS["viewer"]}}):
        assert live.client.get("/v1/tables", **shown).status_code == 401
    asked = live.client.post("/v1/events", content=EVENT)
    assert (asked.status_code, "Basic" in asked.headers["www-authenticate"]) == (401, True)
    for wrong in ("Basic", "Basic !", "Basic " + "QQ==", "Bearer", f"Digest {hook}", f"bearer{hook}"):
        assert live.client.post("/v1/events", content=EVENT, headers={"authorization": wrong}).status_code == 401


def signed(body: bytes, secret: str = SECRET, at_s: float | None = None) -> dict[str, str]:
    return signed_headers(secret.encode(), at_s=int(time.time() if at_s is None else at_s), body=body)


def test_a_signed_webhook_is_taken_once_and_signs_nothing_else(
    start: Callable[..., LiveDecider],
) -> None:
    live = start()
    headers = signed(EVENT)
    assert live.client.post("/v1/events", content=EVENT, headers=headers).status_code == 202
    again = live.client.post("/v1/events", content=EVENT, headers=headers)
    assert (again.status_code, again.json()["field"]) == (409, "webhook-signature")
    for bad in (signed(EVENT, "another-secret-for-tests-of-32-chars"), signed(b"other"), signed(EVENT, at_s=1.0)):
        refused = live.client.post("/v1/events", content=EVENT, headers=bad)
        assert (refused.status_code, refused.json()["field"].startswith("webhook-")) == (401, True)
    assert live.client.get("/v1/tables", headers=signed(b"")).status_code == 401
    large = live.client.post("/v1/events", content=iter([b" " * 600_000] * 2), headers=signed(b""))
    assert (large.status_code, large.json()["field"]) == (413, "body")


def test_a_client_that_is_too_fast_waits_and_another_does_not(start: Callable[..., LiveDecider]) -> None:
    live = start(calls_per_s=0.1, events_per_s=0.1)
    for method, path, role, other in (
        ("GET", "/v1/tables", "viewer", "admin"),
        ("POST", "/v1/events", "hook", "admin"),
    ):
        answers = [
            live.client.request(method, path, content=EVENT, headers={"authorization": f"Bearer {TOKENS[one]}"})
            for one in (role, role, other)
        ]
        assert [answer.status_code for answer in answers] == [answers[0].status_code, 429, answers[0].status_code]
        assert answers[1].json()["type"] == "urn:lakewright:problem:rate-limited"
        assert 1 <= int(answers[1].headers["retry-after"]) <= 10
    assert all(live.client.get("/livez").status_code == 200 for _ in range(5))


def test_a_body_that_trickles_is_ended_and_holds_no_one_up(start: Callable[..., LiveDecider]) -> None:
    live = start(known=Credentials(), body_timeout_s=scaled(0.3))
    port = httpx.URL(live.url).port or 0
    slow = [socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) for _ in range(20)]
    try:
        for one in slow:
            one.sendall(b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        assert live.client.post("/v1/events", content=EVENT).status_code == 202
        for one in slow:
            answer = b"".join(iter(lambda one=one: one.recv(65_536), b""))  # type: ignore[misc]
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b'"urn:lakewright:problem:request-timeout"' in answer
    finally:
        for one in slow:
            one.close()


def test_without_tokens_no_other_sites_page_may_call(start: Callable[..., LiveDecider]) -> None:
    live = start(known=Credentials())
    here = ({}, {"host": "localhost:7420"}, {"origin": live.url}, {"host": "[::1]:7420"})
    for headers in here:
        assert live.client.get("/v1/tables", headers=headers).status_code == 200
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example"}, {"host": "["}):
        refused = live.client.post("/v1/events", content=EVENT, headers=headers)
        assert (refused.status_code, refused.json()["field"]) in {(403, "Host"), (400, "")}


def test_every_answer_is_armoured_and_a_stranger_learns_no_version(start: Callable[..., LiveDecider]) -> None:
    live = start()
    release = live.services.http.settings.release
    for path in ("/livez", "/readyz", "/v1/status", "/metrics", "/docs", "/openapi.json", "/nothing"):
        answer = live.client.get(path)
        for name, value in HEADERS.items():
            if path != "/docs" or name != "content-security-policy":
                assert answer.headers[name] == value, (path, name)
        assert release not in answer.text


def test_azures_handshakes_are_answered(start: Callable[..., LiveDecider]) -> None:
    live = start()
    body = next(dumped(sample.body) for sample in SAMPLES if sample.file == "azure_validation")
    key = {"key": TOKENS["hook"]}
    for path in ("/v1/events", "/v1/events/azure"):
        assert live.client.post(path, content=body).status_code == 401
        answer = live.client.post(path, params=key, content=body)
        assert answer.status_code == 200, "202 is no answer to Event Grid"
        assert answer.json() == {"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"}
    asked = {"WebHook-Request-Origin": "eventgrid.azure.net"}
    granted = live.client.options("/v1/events/cloudevents", headers=asked)
    assert (granted.status_code, granted.headers["WebHook-Allowed-Origin"]) == (200, "eventgrid.azure.net")
    assert int(granted.headers["WebHook-Allowed-Rate"]) == 6_000_000
    other = live.client.options("/v1/events", headers={"WebHook-Request-Origin": "evil.example"})
    assert (other.status_code, other.json()["field"]) == (403, "WebHook-Request-Origin")
    assert live.client.options("/v1/events").status_code == 422
    assert live.client.options("/v1/events/pigeon", headers=asked).status_code == 404


@pytest.mark.e2e
def test_no_secret_is_ever_logged(redis_server: RedisServer, tmp_path: Any) -> None:
    """A real process at the most talkative level, called rightly and wrongly in every way; then its log is searched."""
    with redis_server.client() as client:
        client.flushall()
    tokens = tmp_path / "tokens"
    tokens.write_text(f"hook:{TOKENS['hook']}\nviewer:{TOKENS['viewer']}\n")
    stack = Stack(tmp_path, redis_server)
    environment = {
        "LAKEWRIGHT_TOKEN": TOKENS["admin"],
        "LAKEWRIGHT_TOKENS_FILE": str(tokens),
        "LAKEWRIGHT_TOKENS": f"operator:{TOKENS['operator']}",
        "LAKEWRIGHT_HMAC_SECRETS": SECRET,
        "LAKEWRIGHT_LOG_LEVEL": "debug",
    }
    process = stack.start("decider", ["-m", "services.decider"], **environment)
    proof = signed(EVENT)
    try:
        with httpx.Client(base_url=stack.url, trust_env=False, timeout=scaled(20)) as client:
            until("the decider serves", lambda: is_alive(client), seconds=60)
            client.post("/v1/events", content=EVENT, headers=proof)
            client.post("/v1/events", content=EVENT, headers=proof)
            for token in (*TOKENS.values(), "wr0ng-t0ken-for-tests"):
                bearer = {"authorization": f"Bearer {token}"}
                client.post("/v1/events", content=EVENT, params={"key": token})
                client.post("/v1/events", content=EVENT, auth=("x", token))
                client.post("/v1/tables", json={"location": "/nowhere"}, headers=bearer)
                client.get("/v1/tables", headers=bearer)
            body = next(sample.body for sample in SAMPLES if sample.file == "sns_subscription")
            client.post("/v1/events", json=body, params={"key": TOKENS["hook"]})
        process.terminate(20)
    finally:
        stack.close()
    log = process.log.read_text()
    assert "decider_starting" in log
    assert "subscription_rejected" in log
    shown = [*TOKENS.values(), "wr0ng-t0ken", SECRET, proof["webhook-signature"][3:], body["Token"]]
    assert [secret for secret in shown if secret in log] == []


@pytest.mark.e2e
def test_passwords_of_stores_are_neither_logged_nor_answered(redis_server: RedisServer, tmp_path: Any) -> None:
    stack = Stack(tmp_path, redis_server)
    environment = {
        "LAKEWRIGHT_REDIS_URL": redis_server.url.replace("//", "//someone:r3dis-passw0rd@"),
        "LAKEWRIGHT_STORE_OPTIONS": '{"aws_secret_access_key": "st0re-passw0rd", "aws_region": "eu-west-1"}',
        "LAKEWRIGHT_LOG_LEVEL": "debug",
    }
    process = stack.start("decider", ["-m", "services.decider"], **environment)
    try:
        with httpx.Client(base_url=stack.url, trust_env=False, timeout=scaled(20)) as client:
            until("the decider serves", lambda: is_alive(client), seconds=60)
            texts = [client.get(path).text for path in ("/readyz", "/v1/status", "/v1/tables", "/metrics", "/v1/queue")]
            texts.append(client.post("/v1/tables", json={"location": "s3://lake/orders"}).text)
        process.terminate(20)
    finally:
        stack.close()
    texts.append(process.log.read_text())
    assert "decider_stopped" in texts[-1]
    assert [text for text in texts if "passw0rd" in text] == []


def test_a_forged_event_for_another_place_changes_nothing(start: Callable[..., LiveDecider], tmp_path: Any) -> None:
    table = WrittenTable(tmp_path / "lake" / "orders")
    WrittenTable(tmp_path / "private" / "orders")
    live = start(known=Credentials(), roots=((tmp_path / "lake").as_uri(),))
    live.register(table.path, "sales.orders")
    forged = [
        s3_event("orders/_delta_log/00000000000000000001.json", "another-bucket"),
        {"table": str(tmp_path / "private" / "orders")},
        {"table": (tmp_path / "lake-too").as_uri()},
        # The second once more, in another shape: one hint.
        {"table": f"file://{tmp_path}/private/orders"},
    ]
    before = live.get("/v1/tables")
    answer = live.post("/v1/events", forged).json()
    live.drain()
    assert answer == {"accepted": 0, "ignored": [{"reason": "outside_allowed_roots", "count": 3}]}
    assert live.get("/v1/tables") == before


def test_forged_events_below_an_allowed_root_fill_neither_registry_nor_store(
    start: Callable[..., LiveDecider], tmp_path: Any
) -> None:
    """Ten thousand places that are none cost 64 looks a delivery, and leave nothing behind."""
    live = start(known=Credentials(), roots=(tmp_path.as_uri(),))
    forged = [{"table": f"{tmp_path}/forged/{number}"} for number in range(10_000)]
    ignored = {one["reason"]: one["count"] for one in live.post("/v1/events", forged).json()["ignored"]}
    assert ignored == {"table_not_found": 64, "unknown_table_limit": 9_936}
    assert live.get("/v1/tables")["tables"] == []


def test_clients_that_leave_within_their_body_are_counted_and_no_error_of_ours(
    start: Callable[..., LiveDecider], caplog: pytest.LogCaptureFixture
) -> None:
    live = start(known=Credentials())
    host, port = live.client.base_url.host, live.client.base_url.port or 0
    for _ in range(20):
        with socket.create_connection((host, port), timeout=scaled(10)) as leaving:
            leaving.sendall(b"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n[")

    def left() -> bool:
        return 'method="POST",route="other",status="499"} 20.0' in live.client.get("/metrics").text

    until("all are counted", left)
    assert 'status="500"' not in live.client.get("/metrics").text
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def is_alive(client: httpx.Client) -> bool:
    try:
        return client.get("/livez").status_code == 200
    except httpx.TransportError:
        return False
