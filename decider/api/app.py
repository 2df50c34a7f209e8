"""The REST application over its services, with all of `routes`; background tasks run for as long as it does."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.api import routes
from decider.api.dependencies import ProbeSources
from decider.api.health_snapshot import HealthReader
from decider.api.metrics import RequestCounter
from decider.api.openapi import describe
from decider.api.services import Services
from decider.background.runner import BackgroundTasks
from decider.gateway.authentication import AuthMiddleware
from decider.gateway.body_intake import BodyIntake, WholeBodies
from decider.gateway.call_deadline import CallDeadline
from decider.gateway.concurrency import ConcurrencyLimit, SafeWrites
from decider.gateway.rate_limit import RateLimit
from decider.web import errors

DESCRIPTION = """
Lakewright compacts lakehouse tables while they are being written. Post commit events, register tables, list decisions
and jobs, and administer the queue. Every error is a problem document (RFC 9457).
"""

TAGS = [
    {"name": "events", "description": "Commit events of stores, catalogs and writers."},
    {"name": "tables", "description": "Tables, their state and decisions."},
    {"name": "jobs", "description": "Waiting, running and finished rewrites."},
    {"name": "queue", "description": "Queue depth, dispatch order, weights, limits and pauses."},
    {"name": "actors", "description": "Workers that run jobs."},
    {"name": "status", "description": "Service status and event stream."},
    {"name": "health", "description": "Probes and metrics."},
]


class _DocumentedApp(FastAPI):
    """An application with a completed OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, built at the first call."""
        if self.openapi_schema is None:
            self.openapi_schema = describe(self)
        return self.openapi_schema


def create_app(services: Services, traces: Any = None, on_task_end: Callable[[], None] = lambda: None) -> FastAPI:
    """Build the application; its lifespan starts and stops the background tasks.

    `traces`: OpenTelemetry's provider, which records its requests; None: they are not recorded. `on_task_end`: called
    if a background task ended although it was not asked to.
    """
    background = BackgroundTasks(services.background, on_task_end)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        background.start()
        try:
            yield
        finally:
            await background.close()
            await services.operations.redis.aclose()

    app = _DocumentedApp(
        title="Lakewright",
        version=services.http.settings.release,
        description=DESCRIPTION.strip(),
        openapi_tags=TAGS,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own pages load scripts from another host.
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        telemetry=_telemetry(traces),
    )
    app.state.services = services
    app.state.probes = ProbeSources(
        HealthReader(services.tables, services.queue, services.operations.safety, time.monotonic), background
    )
    for module in iter_modules(routes.__path__):
        app.include_router(import_module(f"{routes.__name__}.{module.name}").router)
    errors.install(app)
    _protect(app, services)
    return app


def _telemetry(traces: Any) -> TelemetryConfig:
    """Return which requests FastAPI records by itself: calls of the API, without its stream, which lasts for hours."""
    return TelemetryConfig(
        tracer_provider=traces,
        tracing=traces is not None,
        metrics=False,
        logs=False,
        operation_spans=False,
        auto_configure=False,
        exclude=lambda scope: not scope["path"].startswith("/v1/") or scope["path"] == "/v1/stream",
    )


def _protect(app: FastAPI, services: Services) -> None:
    """Add the middleware; the last one added runs first.

    Order: metrics, security headers, authentication, rate (known clients only), the body, a slot, the deadline, and
    the durability of Redis for writes. So no client holds a slot while its body trickles.
    """
    limits = services.http.settings.limits
    intake = BodyIntake(limit_bytes=limits.max_body_bytes, timeout_s=limits.body_timeout_s)
    app.add_middleware(SafeWrites, safety=services.operations.safety)
    app.add_middleware(CallDeadline, timeout_s=limits.request_timeout_s)
    app.add_middleware(ConcurrencyLimit)
    app.add_middleware(WholeBodies, intake=intake)
    app.add_middleware(
        RateLimit, events_per_s=limits.events_per_s, calls_per_s=limits.calls_per_s, clock_s=time.monotonic
    )
    app.add_middleware(
        AuthMiddleware,
        credentials=services.http.settings.credentials,
        intake=intake,
        clock_s=time.monotonic,
        unix_s=lambda: services.operations.now_ms() / 1000,
    )
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestCounter, metrics=services.operations.metrics)


def _operation_id(route: APIRoute) -> str:
    return route.name


HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Default headers of each response."""

_OWN_FILES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

PAGES: Mapping[str, str] = MappingProxyType({"/": _OWN_FILES, "/docs": _OWN_FILES})
"""Content security policy per page: own files and own API only. The style sheet of Swagger UI has images
as `data:`."""


class SecurityHeaders:
    """Adds the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def armoured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"] in PAGES:
                    headers["content-security-policy"] = PAGES[scope["path"]]
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, armoured)
