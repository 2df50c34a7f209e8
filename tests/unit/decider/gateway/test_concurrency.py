"""So many at once and no more: the others are refused at once, told when to come again, and no place is ever lost."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from decider.gateway.concurrency import BoundedSemaphore, ConcurrencyLimit
from decider.web.errors import ApiError


def test_some_work_some_wait_and_the_others_are_refused() -> None:
    async def scenario() -> None:
        turns, go = BoundedSemaphore("what-ifs", at_once=1, waiting=1), asyncio.Event()
        working: list[int] = []

        async def work(number: int) -> None:
            async with turns.turn():
                working.append(number)
                await go.wait()

        async with asyncio.TaskGroup() as group:
            for number in range(2):
                group.create_task(work(number))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert working == [0]
            with pytest.raises(ApiError, match="what-ifs") as refused:
                await work(2)
            assert refused.value.status == 503
            go.set()
        await work(3)
        assert working == [0, 1, 3]

    asyncio.run(scenario())


def test_calls_beyond_the_crowd_are_reported_to_come_again_and_probes_are_answered() -> None:
    async def scenario() -> None:
        entered, go = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, _: Receive, send: Send) -> None:
            if scope["path"] == "/slow":
                entered.set()
                await go.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        transport = httpx.ASGITransport(ConcurrencyLimit(slow, limit=1))
        async with httpx.AsyncClient(transport=transport, base_url="http://decider") as client:
            first = asyncio.create_task(client.get("/slow"))
            await entered.wait()
            refused = await client.get("/v1/tables")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert (await client.get("/livez")).status_code == 204
            go.set()
            assert (await first).status_code == 204
            assert (await client.get("/v1/tables")).status_code == 204

    asyncio.run(scenario())
