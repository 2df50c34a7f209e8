"""Whoever shows wrong secrets is slowed down, by a clock that the test sets; whoever shows the right one is not."""

import asyncio

import httpx
from starlette.types import Receive, Scope, Send

from decider.http.auth import FAILURES_PER_S, Guard
from decider.http.credentials import Credentials, parse_tokens
from decider.http.rates import BURST_S

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
        self._guard = Guard(passes, credentials=known, clock_s=lambda: self.now_s, unix_s=lambda: self.now_s)

    def get(self, token: str, *, address: str = "192.0.2.1") -> httpx.Response:
        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(self._guard, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://decider") as client:
                return await client.get("/v1/tables", headers={"authorization": f"Bearer {token}"})

        return asyncio.run(call())


def test_whoever_guesses_is_slowed_down_and_nobody_else() -> None:
    caller = Caller()
    burst = int(FAILURES_PER_S * BURST_S)
    assert {caller.get(f"guess-{number}").status_code for number in range(burst)} == {401}
    refused = caller.get("one-too-many")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert caller.get(TOKEN).status_code == 204
    assert caller.get("guess", address="192.0.2.2").status_code == 401
    caller.now_s += 1 / FAILURES_PER_S
    assert [caller.get("guess").status_code for _ in range(2)] == [401, 429]
