"""Whoever shows wrong secrets is slowed down, by a clock that the test sets; whoever shows the right one is not."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.gateway.authentication import FAILURES_PER_S, MAX_QUERY_FIELDS, AuthMiddleware
from decider.gateway.body_intake import BODIES_PER_CLIENT, BodyIntake
from decider.gateway.credentials import Credentials, parse_secrets, parse_tokens
from decider.gateway.rate_limit import BURST_S
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
