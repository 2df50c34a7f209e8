"""`X-Forwarded-For` is ignored but from proxies that are named: a client could name another address at each request."""

import asyncio

import httpx
import pytest

from decider.gateway.authentication import FAILURES_PER_S
from decider.gateway.credentials import Credentials, parse_tokens
from decider.gateway.rate_limit import BURST_S
from services.decider.__main__ import server
from services.decider.settings import AccessSettings, DeciderSettings

TOKEN = "t0ken-for-tests-only"  # noqa: S105


@pytest.mark.parametrize(
    ("proxies", "is_slowed_down"), [((), True), (("10.0.0.0/8",), True), (("10.0.0.1", "127.0.0.0/8"), False)]
)
def test_a_client_that_guesses_tokens_is_slowed_down_whatever_address_it_claims_but_by_a_named_proxy(
    proxies: tuple[str, ...], is_slowed_down: bool
) -> None:
    known = Credentials(parse_tokens(f"viewer:{TOKEN}"))
    serving = server(DeciderSettings(access=AccessSettings(known=known, trusted_proxies=proxies)))
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

    assert (429 in asyncio.run(guess())) is is_slowed_down
