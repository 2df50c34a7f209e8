"""No request pays for a thread: FastAPI runs each plain function among routes and their dependencies in its pool."""

import inspect
from collections.abc import Iterator

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from decider.api.app import create_app
from services.decider.build import build_services
from services.decider.settings import DeciderSettings


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
