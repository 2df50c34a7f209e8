"""So many at once and no more: the others are refused at once, told when to come again, and no place is ever lost."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from decider.gateway.concurrency import BoundedSemaphore, CallKind, CallSlots, ConcurrencyLimit
from decider.web.errors import ApiError


async def test_some_work_some_wait_and_the_others_are_refused() -> None:
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


async def test_calls_beyond_the_crowd_are_reported_to_come_again_and_probes_are_answered() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, _: Receive, send: Send) -> None:
        if scope["path"] == "/v1/slow":
            entered.set()
            await go.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx.ASGITransport(ConcurrencyLimit(slow, slots={kind: CallSlots(1, 1) for kind in CallKind}))
    async with httpx.AsyncClient(transport=transport, base_url="http://decider") as client:
        first = asyncio.create_task(client.get("/v1/slow"))
        await entered.wait()
        refused = await client.get("/v1/tables")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert (await client.get("/livez")).status_code == 204
        assert (await client.get("/v1/stream")).status_code == 204, "it has slots of its own"
        assert (await client.post("/v1/events")).status_code == 204, "a crowd of one kind leaves room for others"
        assert (await client.patch("/v1/tables/orders")).status_code == 204
        go.set()
        assert (await first).status_code == 204
        assert (await client.get("/v1/tables")).status_code == 204


async def test_a_client_that_has_its_share_leaves_the_rest_to_others() -> None:
    go, inside = asyncio.Event(), asyncio.Semaphore(0)

    async def slow(_: Scope, __: Receive, send: Send) -> None:
        inside.release()
        await go.wait()
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = ConcurrencyLimit(slow, slots=dict.fromkeys(CallKind, CallSlots(3, 2)))

    async def post(address: str) -> int:
        transport = httpx.ASGITransport(guard, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://decider") as client:
            return (await client.post("/v1/events")).status_code

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(post("192.0.2.1")) for _ in range(2)]
        for _ in calls:
            await inside.acquire()
        assert await post("192.0.2.1") == 503
        calls.append(group.create_task(post("192.0.2.2")))
        await inside.acquire()
        assert await post("192.0.2.3") == 503
        go.set()
    assert [call.result() for call in calls] == [202] * 3
    assert await post("192.0.2.1") == 202, "places are given back"
