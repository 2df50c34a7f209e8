"""Bodies arrive whole, in time and within bounds, or are refused; who trickles gives way; who leaves is no error."""

import asyncio
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from decider.gateway.body_intake import BODIES, BODIES_PER_CLIENT, BodyIntake, ClientLeft
from tests.support.time_limits import scaled

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
