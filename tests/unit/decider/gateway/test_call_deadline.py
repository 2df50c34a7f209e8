"""A call ends by its deadline; one that only computes ends with its client, and a change does not."""

import asyncio
from typing import Any

import pytest

from decider.gateway.call_deadline import CallDeadline
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
