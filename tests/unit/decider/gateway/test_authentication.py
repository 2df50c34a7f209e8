"""Credentials are read once and never shown; whoever shows wrong ones is slowed down, and no one else."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.gateway.authentication import FAILURES_PER_S, MAX_QUERY_FIELDS, AuthMiddleware
from decider.gateway.body_intake import BODIES_PER_CLIENT, BodyIntake
from decider.gateway.credentials import (
    MAX_SECRETS,
    MAY_ACT_AS,
    Credentials,
    Role,
    TokenHash,
    parse_secrets,
    parse_tokens,
)
from decider.gateway.rate_limit import BURST_S
from decider.gateway.roles import OPEN, ROLES, _fits, needed
from services.decider.settings import decider_settings
from shared.errors import InvalidInput
from tests.support.live_decider import decider_app
from tests.support.time_limits import scaled
from tests.support.webhook_signing import signed_headers

TOKEN = "t0ken-for-tests-only"  # noqa: S105


async def passes(_: Scope, __: Receive, send: Send) -> None:
    """Answer 204 to whatever comes through."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class Caller:
    """Calls a guard at moments of the test's choice."""

    def __init__(self) -> None:
        self.now_s = 0.0
        known = Credentials(parse_tokens(f"viewer:{TOKEN}"))
        self._guard = AuthMiddleware(
            passes, credentials=known, intake=intake(), clock_s=lambda: self.now_s, unix_s=lambda: self.now_s
        )

    def get(self, token: str, *, address: str = "192.0.2.1") -> httpx.Response:
        return called(self._guard, "GET", "/v1/tables", {"authorization": f"Bearer {token}"}, address)

    def post(self, query: str = "", **headers: str) -> httpx.Response:
        return called(self._guard, "POST", f"/v1/events{query}", headers)


def called(app: ASGIApp, method: str, path: str, headers: dict[str, str], address: str = "192.0.2.1") -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(address, 1), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7420") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(call())


def test_whoever_guesses_is_slowed_down_and_no_one_else() -> None:
    caller = Caller()
    burst = int(FAILURES_PER_S * BURST_S)
    assert {caller.get(f"guess-{number}").status_code for number in range(burst)} == {401}
    refused = caller.get("one-too-many")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert caller.get(TOKEN).status_code == 204
    assert caller.get("guess", address="192.0.2.2").status_code == 401
    caller.now_s += 1 / FAILURES_PER_S
    assert [caller.get("guess").status_code for _ in range(2)] == [401, 429]


def test_who_shows_no_secret_has_guessed_none() -> None:
    """SNS calls without its password first, always, and shows it when it is asked."""
    caller = Caller()
    assert {caller.post().status_code for _ in range(50)} == {401}
    shown = [{"authorization": "Basic QQ=="}, {"authorization": "Bearer"}, {"authorization": "Bearer wrong"}]
    answers = [caller.post(**headers).status_code for headers in shown * 10]
    assert (answers[:3], answers[-1]) == ([401, 401, 401], 429)
    assert caller.post("?key=wrong").status_code == 429
    assert caller.post().status_code == 401


def test_a_key_is_searched_among_a_few_parameters() -> None:
    known = Credentials(parse_tokens(f"hook:{TOKEN}"))
    guard = AuthMiddleware(passes, credentials=known, intake=intake(), clock_s=lambda: 0.0, unix_s=lambda: 0.0)
    few, many = "a=b&" * (MAX_QUERY_FIELDS - 1), "a=b&" * MAX_QUERY_FIELDS
    assert called(guard, "POST", f"/v1/events?{few}key={TOKEN}", {}).status_code == 204
    assert called(guard, "POST", f"/v1/events?{many}key={TOKEN}", {}).status_code == 401


SECRET = "s3cret-for-tests-only-of-32-chars-and-more"  # noqa: S105
PROOF = signed_headers(SECRET.encode(), at_s=0, body=b"")


def intake() -> BodyIntake:
    return BodyIntake(limit_bytes=1_000, timeout_s=scaled(60))


def signed_guard(app: ASGIApp) -> AuthMiddleware:
    known = Credentials(secrets=parse_secrets(SECRET))
    return AuthMiddleware(app, credentials=known, intake=intake(), clock_s=lambda: 0.0, unix_s=lambda: 0.0)


@pytest.mark.parametrize("failure", [429, 500, 503, None])
def test_a_signed_call_that_could_not_be_served_may_be_repeated(failure: int | None) -> None:
    """None: the application breaks off without an answer."""
    statuses = [failure, 202]

    async def answers(_: Scope, __: Receive, send: Send) -> None:
        status = statuses.pop(0)
        if status is None:
            raise RuntimeError("broken off")
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = signed_guard(answers)
    found = [called(guard, "POST", "/v1/events", PROOF).status_code for _ in range(3)]
    assert found == [failure or 500, 202, 409]


def test_a_signed_call_that_was_refused_may_be_repeated_once_its_answer_begins_and_is_done_once() -> None:
    """The first call ends after the second one was served: its end does not permit a third."""
    statuses, repeated = [503, 202], list[int]()

    async def answers(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": statuses.pop(0), "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def post(app: ASGIApp) -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://decider") as client:
            return (await client.post("/v1/events", headers=PROOF)).status_code

    guard = signed_guard(answers)

    async def impatient(scope: Scope, receive: Receive, send: Send) -> None:
        async def seen(message: Message) -> None:
            if message["type"] == "http.response.start":
                repeated.append(await post(guard))
            await send(message)

        await guard(scope, receive, seen)

    assert asyncio.run(post(impatient)) == 503
    assert repeated == [202]
    assert asyncio.run(post(guard)) == 409


@pytest.mark.parametrize("slow", [BODIES_PER_CLIENT, 3 * BODIES_PER_CLIENT])
def test_bodies_that_trickle_keep_no_client_from_signing_not_even_behind_the_same_address(slow: int) -> None:
    async def scenario() -> list[int]:
        guard, go, reading = signed_guard(passes), asyncio.Event(), asyncio.Semaphore(0)

        async def trickle() -> AsyncIterator[bytes]:
            reading.release()
            await go.wait()
            yield b"?"

        async def post(address: str, **body: Any) -> int:
            transport = httpx.ASGITransport(guard, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://decider") as client:
                return (await client.post("/v1/events", headers=PROOF, **body)).status_code

        async with asyncio.TaskGroup() as group:
            held = [group.create_task(post("192.0.2.1", content=trickle())) for _ in range(slow)]
            for _ in held:
                await reading.acquire()
            found = [await post("192.0.2.1"), await post("192.0.2.2")]
            go.set()
        return found

    assert asyncio.run(scenario()) == [204, 409]


@pytest.mark.parametrize(
    ("site", "status"),
    [(None, 204), ("same-origin", 204), ("none", 204), ("cross-site", 403), ("same-site", 403), ("", 403)],
)
def test_without_tokens_a_browser_must_not_say_that_another_site_calls(site: str | None, status: int) -> None:
    guard = AuthMiddleware(passes, credentials=Credentials(), intake=intake(), clock_s=lambda: 0.0, unix_s=lambda: 0.0)
    headers = {} if site is None else {"sec-fetch-site": site}
    assert called(guard, "GET", "/v1/tables", headers).status_code == status


SHORT_SECRET = "s3cret-for-tests-only-of-32-chars"  # noqa: S105


def test_every_route_has_its_role() -> None:
    found = iter_route_contexts(decider_app().routes)
    routes = {(method, str(route.path)) for route in found for method in (route.methods or set()) - {"HEAD"}}
    assert len(routes) > 20
    role_of = {route: {one for one in ROLES if one[0] == route[0] and _fits(route[1], one[1])} for route in routes}
    assert {route for route in routes - OPEN if not role_of[route]} == set(), "give these a role in roles.py"
    assert not set(ROLES) & OPEN
    assert routes >= OPEN
    assert set().union(*role_of.values()) == set(ROLES), "these roles are of no route"


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/livez", None),
        ("HEAD", "/livez", None),
        ("OPTIONS", "/v1/events/azure", None),
        ("POST", "/v1/events", Role.HOOK),
        ("POST", "/v1/events/s3", Role.HOOK),
        ("GET", "/v1/tables/sales.orders", Role.VIEWER),
        ("HEAD", "/v1/tables", Role.VIEWER),
        ("DELETE", "/v1/tables/sales.orders", Role.ADMIN),
        ("GET", "/v1/tables/a/b", Role.ADMIN),
        ("GET", "/v1/tables/", Role.ADMIN),
        ("GET", "/openapi.json", Role.VIEWER),
        ("PUT", "/v1/tables", Role.ADMIN),
        ("GET", "/nothing", Role.ADMIN),
        ("POST", "/livez", Role.ADMIN),
    ],
)
def test_what_is_not_in_the_table_is_the_administrators(method: str, path: str, role: Role | None) -> None:
    assert needed(method, path) is role


def test_roles_include_each_other_but_a_hook_only_tells_and_a_viewer_only_looks() -> None:
    assert MAY_ACT_AS[Role.HOOK] == {Role.HOOK}
    assert MAY_ACT_AS[Role.VIEWER] == {Role.VIEWER}
    assert MAY_ACT_AS[Role.OPERATOR] == set(Role) - {Role.ADMIN}
    assert MAY_ACT_AS[Role.ADMIN] == set(Role)


def test_tokens_are_read_in_pairs_and_known_again_without_being_kept() -> None:
    hashed = hashlib.sha256(b"another-token-for-tests").hexdigest()
    tokens = parse_tokens(
        f"# who posts events\nhook:{TOKEN}, viewer:sha256:{hashed}\n\noperator: third-token-for-tests\n"
    )
    known = Credentials(tokens)
    assert [token.role for token in tokens] == [Role.HOOK, Role.VIEWER, Role.OPERATOR]
    assert known.bearer(TOKEN) == tokens[0]
    assert known.bearer("another-token-for-tests") == tokens[1]
    assert known.bearer(TOKEN + "x") is known.bearer("") is known.bearer("\udc80") is None
    assert TOKEN not in repr(known)
    assert hashlib.sha256(TOKEN.encode()).hexdigest() not in repr(known)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TOKEN, "entry 1 is no role:token pair"),
        (f"hook:{TOKEN},boss:{TOKEN}", "entry 2 is no role:token pair"),
        ("hook:t0ken", "entry 1: expected at least 16"),
        ("hook:t0ken-with a blank in it", "entry 1: expected at least 16"),
        (",".join([f"hook:{TOKEN}"] * 1_001), "at most 1000"),
    ],
)
def test_what_is_no_token_is_refused_by_its_number(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        parse_tokens(text)
    assert "t0ken" not in str(raised.value)


def test_secrets_are_long_and_few() -> None:
    assert parse_secrets(f"{SHORT_SECRET}, {SHORT_SECRET}2") == (SHORT_SECRET.encode(), f"{SHORT_SECRET}2".encode())
    with pytest.raises(ValueError, match="at least 32"):
        parse_secrets(TOKEN)
    with pytest.raises(ValueError, match="at most 4"):
        parse_secrets(",".join([SHORT_SECRET] * (MAX_SECRETS + 1)))


def test_a_secret_of_standard_webhooks_is_base64_of_24_to_64_bytes() -> None:
    def text(secret: bytes) -> str:
        return "whsec_" + base64.b64encode(secret).decode()

    assert parse_secrets(f"{text(bytes(24))},{SHORT_SECRET},{text(bytes(64))}") == (
        bytes(24),
        SHORT_SECRET.encode(),
        bytes(64),
    )
    for bad in (text(bytes(23)), text(bytes(65)), "whsec_", "whsec_" + "!" * 40, text(bytes(32))[:-1]):
        with pytest.raises(ValueError, match="24 to 64 bytes in base64 after whsec_") as refused:
            parse_secrets(bad)
        assert bad.removeprefix("whsec_") == "" or bad.removeprefix("whsec_") not in str(refused.value)


def test_settings_put_all_tokens_together_and_never_show_one(tmp_path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"operator:{TOKEN}3\n")
    found = decider_settings(
        {
            "LAKEWRIGHT_TOKEN": TOKEN,
            "LAKEWRIGHT_TOKENS": f"hook:{TOKEN}2",
            "LAKEWRIGHT_TOKENS_FILE": str(file),
            "LAKEWRIGHT_HMAC_SECRETS": SHORT_SECRET,
            "LAKEWRIGHT_HMAC_WINDOW_S": "60",
            "LAKEWRIGHT_EVENTS_PER_S": "5",
            "LAKEWRIGHT_CALLS_PER_S": "4",
            "LAKEWRIGHT_BODY_TIMEOUT_S": "3",
            "LAKEWRIGHT_SNS_TOPICS": "arn:aws:sns:eu-west-1:1:a, arn:aws:sns:eu-west-1:1:b",
            "LAKEWRIGHT_WEBHOOK_ORIGINS": "events.example.com",
        }
    )
    assert [token.role for token in found.access.credentials.tokens] == [Role.ADMIN, Role.HOOK, Role.OPERATOR]
    assert (found.access.credentials.window_s, found.access.credentials.secrets) == (60, (SHORT_SECRET.encode(),))
    assert (found.limits.events_per_s, found.limits.calls_per_s, found.limits.body_timeout_s) == (5, 4, 3)
    assert found.access.sns_topics == ("arn:aws:sns:eu-west-1:1:a", "arn:aws:sns:eu-west-1:1:b")
    assert found.access.webhook_origins == ("events.example.com",)
    assert TOKEN not in repr(found)
    assert SHORT_SECRET not in repr(found)
    assert TokenHash.of(Role.HOOK, f"{TOKEN}2").name == found.access.credentials.tokens[1].name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAKEWRIGHT_TOKENS", "hook:s3cret"),
        ("LAKEWRIGHT_TOKENS", "s3cret-without-a-role"),
        ("LAKEWRIGHT_TOKENS_FILE", "/nowhere/s3cret"),
        ("LAKEWRIGHT_HMAC_SECRETS", "s3cret"),
        ("LAKEWRIGHT_HMAC_WINDOW_S", "0"),
        ("LAKEWRIGHT_EVENTS_PER_S", "none"),
        ("LAKEWRIGHT_CALLS_PER_S", "-1"),
        ("LAKEWRIGHT_BODY_TIMEOUT_S", "1e9"),
    ],
)
def test_a_bad_setting_is_refused_by_name_and_secrets_are_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name) as raised:
        decider_settings({name: value})
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "hashed",
    [
        "sha256:" + hashlib.sha256(b"").hexdigest(),
        "sha256:" + hashlib.sha256(b"another-token-for-tests").hexdigest().upper(),
        "sha256:" + hashlib.sha256(b"another-token-for-tests").hexdigest()[:-1],
        "sha256:" + hashlib.sha256(b"another-token-for-tests").hexdigest() + "  -",
    ],
)
def test_a_hash_that_is_none_or_of_nothing_is_refused_and_is_no_token_itself(hashed: str) -> None:
    with pytest.raises(ValueError, match="entry 1: expected 64") as refused:
        parse_tokens(f"admin:{hashed}")
    assert hashed not in str(refused.value)
