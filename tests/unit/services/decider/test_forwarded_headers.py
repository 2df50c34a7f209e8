"""`X-Forwarded-For` is ignored, even from this host: a client could name another address at each request."""

import asyncio

import httpx

from decider.gateway.authentication import FAILURES_PER_S
from decider.gateway.credentials import Credentials, parse_tokens
from decider.gateway.rate_limit import BURST_S
from services.decider.__main__ import server
from services.decider.settings import AccessSettings, DeciderSettings

TOKEN = "t0ken-for-tests-only"  # noqa: S105


def test_a_client_that_guesses_tokens_is_slowed_down_whatever_address_it_claims() -> None:
    known = Credentials(parse_tokens(f"viewer:{TOKEN}"))
    serving = server(DeciderSettings(access=AccessSettings(known=known)))
    serving.config.load()

    async def guess() -> list[int]:
        transport = httpx.ASGITransport(serving.config.loaded_app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7420") as client:
            return [
                (
                    await client.get(
                        "/v1/tables",
                        headers={"authorization": "Bearer wrong", "x-forwarded-for": f"192.0.2.{number}"},
                    )
                ).status_code
                for number in range(int(2 * FAILURES_PER_S * BURST_S))
            ]

    assert 429 in asyncio.run(guess()), "each address that it claims has a limit of its own"
