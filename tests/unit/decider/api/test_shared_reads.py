"""A costly read is made once for all who wait, and nothing that a route does takes a thread."""

import asyncio
import inspect
from collections.abc import Iterator

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel

from decider.api.app import create_app
from decider.api.shared_reads import MAX_WAITING, SharedReads
from decider.web.errors import ApiError
from services.decider.build import build_services
from services.decider.settings import DeciderSettings


class Answer(BaseModel):
    """What was read."""

    number: int


class Reads:
    """Reads that take until they are released."""

    def __init__(self) -> None:
        self.begun = self.at_once = self.most = 0
        self.inside, self.release = asyncio.Event(), asyncio.Event()

    async def make(self) -> Answer:
        self.begun += 1
        number = self.begun
        self.inside.set()
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.release.wait()
        self.at_once -= 1
        return Answer(number=number)


async def test_all_who_wait_share_the_next_read_and_none_gets_one_that_began_before_it_asked() -> None:
    shared, reads = SharedReads(), Reads()
    first = asyncio.create_task(shared.get("queue", reads.make))
    await reads.inside.wait()
    others = [asyncio.create_task(shared.get("queue", reads.make)) for _ in range(16)]
    another = asyncio.create_task(shared.get("backlog", reads.make))
    await asyncio.sleep(0)
    reads.release.set()
    assert (await first).body == b'{"number":1}'
    assert {bytes((await one).body) for one in others} == {b'{"number":2}'}
    assert (await another).body == b'{"number":3}'
    assert (reads.begun, reads.most) == (3, 1)


async def test_too_many_different_reads_are_refused_and_one_that_fails_keeps_no_other_out() -> None:
    shared, reads = SharedReads(), Reads()
    waiting = [asyncio.create_task(shared.get(f"read {number}", reads.make)) for number in range(MAX_WAITING + 1)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError, match="Too many"):
        await waiting[-1]
    reads.release.set()
    await asyncio.gather(*waiting[:-1])

    async def failing() -> Answer:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await shared.get("queue", failing)
    assert (await shared.get("queue", reads.make)).status_code == 200


def _calls(dependant: Dependant) -> Iterator[object]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)


def _routes() -> list[APIRoute]:
    app = create_app(build_services(DeciderSettings()))
    return [route for context in iter_route_contexts(app.routes) if isinstance(route := context.route, APIRoute)]


ROUTES = _routes()


@pytest.mark.parametrize("route", ROUTES, ids=[f"{min(route.methods)} {route.path}" for route in ROUTES])
def test_a_route_and_its_dependencies_are_coroutines(route: APIRoute) -> None:
    plain = [
        call
        for call in _calls(route.dependant)
        if not (inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call))
    ]
    assert plain == [], "these run in a thread at every request: make them `async def`"
