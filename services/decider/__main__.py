"""`python -m services.decider`: reads the environment and serves the API until SIGTERM or Ctrl-C."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

import structlog
import uvicorn

from services.decider import settings as decider_variables
from services.decider.build import build_app, release
from services.decider.header_timeout import HeaderTimeoutProtocol
from services.decider.open_connections import OpenConnections, is_one_of
from services.decider.settings import DeciderSettings, decider_settings
from services.descriptors import raise_descriptor_limit
from services.logs import configure_logs
from services.process_exit import ProcessExit
from services.service_help import parse_no_arguments
from services.settings import (
    CATALOGS,
    DATA_DIR,
    ICEBERG_FOLDERS,
    LOG_FORMAT,
    OTLP_ENDPOINT,
    OTLP_TRACES_ENDPOINT,
    STORE_OPTIONS,
    log_format,
)
from services.tracing import start_traces, stop_traces
from services.visible_text import visible_lines
from shared.errors import LakewrightError

if TYPE_CHECKING:
    from services.opentelemetry import OpenTelemetryTracer

STOP_S = 5
"""Seconds that requests in flight may take after a signal; they are short, and supervisors wait about ten."""

IDLE_S = 75
"""Seconds that a connection may be idle between calls: longer than the minute after which load balancers and webhook
senders let go, or a call is lost that was sent while we were closing."""

RESERVED_DESCRIPTORS = 384
"""Descriptors that no client gets: Redis, object stores, logs of tables, files of Python, and two rounds of BACKLOG
connections that are accepted before one can be refused."""

BACKLOG = 128
"""Connections that wait to be accepted, and that are accepted in one round of the event loop."""

SWITCH_INTERVAL_S = 0.0005
"""Longest time that a thread keeps the interpreter while another waits for it; Python's default is 0.005 s.

While a thread evaluates the partitions of a large table, the event loop waits so long after each call that lets threads
run, which are a dozen for a commit: the p99 of other tables was seven times as high as without, and is two to three
times."""

VARIABLES = (
    *(DATA_DIR, LOG_FORMAT, STORE_OPTIONS, CATALOGS, ICEBERG_FOLDERS),
    *(OTLP_ENDPOINT, OTLP_TRACES_ENDPOINT),
)
"""Environment variables that are read by functions shared between services."""

log = structlog.get_logger()


class DeciderServer(uvicorn.Server):
    """The HTTP server; it ends by itself if a background task has ended, with `has_failed` set."""

    has_failed = False

    def fail(self) -> None:
        """End, because a process without one of its tasks must not look healthy; a supervisor starts it again."""
        self.has_failed = self.should_exit = True


def server(settings: DeciderSettings, tracer: "OpenTelemetryTracer | None" = None) -> DeciderServer:
    """Build the HTTP server; it handles SIGTERM and SIGINT itself and ends with open requests answered."""

    def fail() -> None:
        built.fail()

    limits, proxies = settings.limits, settings.access.trusted_proxies
    room = max(1, min(limits.max_connections, raise_descriptor_limit() - RESERVED_DESCRIPTORS))
    connections = OpenConnections(room, is_one_of(proxies))
    built = DeciderServer(
        uvicorn.Config(
            build_app(settings, tracer.provider if tracer else None, fail),
            host=settings.address.host,
            port=settings.address.port,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            backlog=BACKLOG,
            http=cast("type[asyncio.Protocol]", partial(HeaderTimeoutProtocol, connections)),
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=STOP_S,
        )
    )
    return built


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Serve; 0 after a requested end, 1 if a background task has ended, and with a sentence if it cannot start."""
    try:
        settings = decider_settings(environment)
        configure_logs(settings.log_level, log_format(environment))
        tracer = start_traces("decider", release(), environment)
        serving = server(settings, tracer)
    except LakewrightError as problem:
        print(f"lakewright decider: {visible_lines(str(problem))}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        # Uvicorn handles them while it serves and raises them again when it is done; these make that a normal end.
        signal.signal(number, lambda _number, _frame: setattr(serving, "should_exit", True))
    address = f"{settings.address.host}:{settings.address.port}"
    log.info("decider_starting", address=address, roots=settings.locations.roots)
    _tune_interpreter()
    try:
        serving.run()
    finally:
        stop_traces(tracer)
    log.info("decider_stopped", failed=serving.has_failed)
    return 0 if serving.started and not serving.has_failed else 1


def _tune_interpreter() -> None:
    """Keep the pauses of the event loop short."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # What is loaded now stays: without this, each full collection goes through all of it, for a tenth of a second.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    parse_no_arguments(sys.argv[1:], service="decider", settings=decider_variables, also=VARIABLES)
    ended = ProcessExit()
    ended.code = main()
