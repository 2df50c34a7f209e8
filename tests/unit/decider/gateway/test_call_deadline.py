"""A call has a deadline, a share per client and a bounded body; what only computes ends with its client."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from decider.gateway.body_intake import BODIES, BODIES_PER_CLIENT, BodyIntake, ClientLeft
from decider.gateway.call_deadline import CallDeadline
from decider.gateway.concurrency import BoundedSemaphore, CallKind, CallSlots, ConcurrencyLimit
from decider.web.errors import ApiError
from tests.support.time_limits import scaled


class Call:
    """One call of an application that never answers by itself."""

    def __init__(self, method: str, path: str) -> None:
        self.scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "query_string": b""}
        self.sent: list[Any] = []
        self.left, self.inside = asyncio.Event(), asyncio.Event()
        self.is_cancelled = False
        self._is_read = False

    async def receive(self) -> Any:
        if self._is_read:
            await self.left.wait()
            return {"type": "http.disconnect"}
        self._is_read = True
        return {"type": "http.request", "body": b"whole", "more_body": False}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def app(self, _: Any, receive: Any, __: Any) -> None:
        assert (await receive())["body"] == b"whole"
        self.inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise

    async def made(self, timeout_s: float) -> None:
        await CallDeadline(self.app, timeout_s=timeout_s)(self.scope, self.receive, self.send)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/events"), ("GET", "/v1/queue"), ("POST", "/v1/tables/a/optimize")]
)
def test_a_call_without_a_response_is_given_up_with_503_and_the_setting(method: str, path: str) -> None:
    async def scenario() -> Call:
        call = Call(method, path)
        await call.made(0.05)
        return call

    call = asyncio.run(scenario())
    assert call.is_cancelled
    assert call.sent[0]["status"] == 503
    assert b"LAKEWRIGHT_REQUEST_TIMEOUT_S" in call.sent[1]["body"]


@pytest.mark.parametrize(
    ("method", "path", "ends"),
    [
        ("GET", "/v1/jobs", True),
        ("POST", "/v1/tables/a/optimize", True),
        ("POST", "/v1/tables/a/what-if", True),
        ("POST", "/v1/events", False),
        ("PATCH", "/v1/tables/a", False),
    ],
)
def test_what_only_computes_ends_with_its_client_unanswered_and_a_change_goes_on(
    method: str, path: str, *, ends: bool
) -> None:
    async def scenario() -> Call:
        call = Call(method, path)
        made = asyncio.create_task(call.made(3_600.0))
        await call.inside.wait()
        call.left.set()
        await asyncio.wait([made], timeout=0.2)
        assert made.done() is ends
        assert call.is_cancelled is ends
        made.cancel()
        await asyncio.gather(made, return_exceptions=True)
        return call

    assert asyncio.run(scenario()).sent == []


async def test_the_stream_lasts_as_long_as_its_client_wants() -> None:
    call = Call("GET", "/v1/stream")
    made = asyncio.create_task(call.made(0.0))
    await call.inside.wait()
    assert not call.is_cancelled
    made.cancel()
    await asyncio.gather(made, return_exceptions=True)


def test_a_response_that_is_streamed_receives_the_body_once_and_then_waits_for_its_client() -> None:
    """Starlette reads on until the client has left: the same message again and again would keep the loop busy."""
    received: list[str] = []

    async def app(_: Any, receive: Any, __: Any) -> None:
        received.append((await receive())["type"])
        again = asyncio.create_task(receive())
        await asyncio.sleep(0)
        received.append("waits" if not again.done() else again.result()["type"])
        again.cancel()

    async def scenario() -> None:
        call = Call("GET", "/docs/assets/start.js")
        await CallDeadline(app, timeout_s=scaled(60))(call.scope, call.receive, call.send)

    asyncio.run(scenario())
    assert received == ["http.request", "waits"]


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


SCOPE: dict[str, Any] = {"type": "http", "headers": []}


async def nothing() -> Any:
    await asyncio.Event().wait()


def source(*messages: dict[str, Any]) -> Any:
    waiting = list(messages)

    async def receive() -> Any:
        return waiting.pop(0)

    return receive


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def begin(intake: BodyIntake, client: str, count: int = 1) -> "list[asyncio.Task[bytes]]":
    """Begin bodies that never arrive."""
    begun = [asyncio.create_task(intake.read(SCOPE, nothing, client)) for _ in range(count)]
    await asyncio.sleep(0)
    return begun


async def statuses(readings: "list[asyncio.Task[bytes]]") -> list[int]:
    """Return how the bodies that ended did; 0 for one that is still read."""
    for _ in range(5):
        await asyncio.sleep(0)
    found = []
    for one in readings:
        problem = one.exception() if one.done() else None
        found.append(problem.status_code if isinstance(problem, HTTPException) else 0)
        one.cancel()
    return found


async def test_a_body_is_joined_and_bounded_in_bytes_announced_or_not() -> None:
    intake = BodyIntake(limit_bytes=4, timeout_s=scaled(60))
    assert await intake.read(SCOPE, source(part(b"ab", more=True), part(b"cd")), "a") == b"abcd"
    with pytest.raises(HTTPException, match="4 bytes") as large:
        await intake.read(SCOPE, source(part(b"abc", more=True), part(b"de", more=True)), "a")
    assert large.value.status_code == 413
    with pytest.raises(HTTPException, match="4 bytes"):
        await intake.read({"type": "http", "headers": [(b"content-length", b"5")]}, nothing, "a")


async def test_a_body_of_two_lengths_is_refused_and_its_connection_ends() -> None:
    intake = BodyIntake(limit_bytes=4, timeout_s=scaled(60))
    both = {"type": "http", "headers": [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")]}
    with pytest.raises(HTTPException, match="not both") as smuggled:
        await intake.read(both, source(part(b"ab")), "a")
    assert (smuggled.value.status_code, smuggled.value.headers) == (400, {"connection": "close"})


async def test_a_body_that_does_not_come_is_refused_with_the_setting() -> None:
    with pytest.raises(HTTPException, match="LAKEWRIGHT_BODY_TIMEOUT_S") as late:
        await BodyIntake(limit_bytes=4, timeout_s=0.0).read(SCOPE, nothing, "a")
    assert late.value.status_code == 408


async def test_a_client_that_leaves_within_its_body_is_not_answered() -> None:
    intake = BodyIntake(limit_bytes=4, timeout_s=scaled(60))
    with pytest.raises(ClientLeft):
        await intake.read(SCOPE, source(part(b"ab", more=True), {"type": "http.disconnect"}), "a")
    assert not intake._readings


async def test_a_clients_oldest_body_gives_way_to_its_newer_ones_and_those_of_others_stay() -> None:
    intake = BodyIntake(limit_bytes=4, timeout_s=scaled(60))
    others, own = await begin(intake, "b"), await begin(intake, "a", BODIES_PER_CLIENT + 3)
    assert await intake.read(SCOPE, source(part(b"ab")), "a") == b"ab"
    assert await statuses(own) == [503] * 4 + [0] * (BODIES_PER_CLIENT - 1)
    assert await statuses(others) == [0]


async def test_where_all_clients_together_are_too_many_the_oldest_gives_way() -> None:
    intake = BodyIntake(limit_bytes=4, timeout_s=scaled(60))
    slow = [one for client in range(BODIES) for one in await begin(intake, f"client {client}")]
    assert await intake.read(SCOPE, source(part(b"ab")), "honest") == b"ab"
    assert await statuses(slow) == [503] + [0] * (BODIES - 1)
