"""Logs have one event with key-values: lines for people on a terminal, JSON for machines everywhere else.

A setting overrides the guess: a terminal multiplexer may want JSON, and a file that people read may want lines.
"""

import logging
import re
import sys
from typing import TextIO

import structlog
from structlog.typing import Processor

from services.log_limits import FloodLimit, LostLines, NeverRaisingHandler, never_raising
from services.visible_text import visible

_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str, form: str = "auto", stream: TextIO | None = None) -> None:
    """Send our own events and events of libraries to `stream` (default: standard error), from this level on.

    form: `json`, one object a line; `console`, lines for people; `auto`, whichever suits the stream.
    """
    stream = stream or sys.stderr
    is_for_people = form == "console" or (form == "auto" and stream.isatty())
    lost, flood = LostLines(), FloodLimit()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _drop_rehearsed,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    ending: list[Processor] = [_make_visible, _console(stream), _keep_colors_only]
    if not is_for_people:
        ending = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared[:3], flood.process, *shared[3:], *ending],
        wrapper_class=never_raising(structlog.make_filtering_bound_logger(LEVELS[level]), lost),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = NeverRaisingHandler(stream, lost)
    handler.addFilter(flood.filter)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_drop_meta, *ending])
    )
    logging.basicConfig(level=max(LEVELS[level], logging.WARNING), handlers=[handler], force=True)


def _console(stream: TextIO) -> Processor:
    """Return what writes lines for people.

    A pretty traceback takes seconds, in which a service would stand still, and shows local variables, which may hold
    secrets.
    """
    return structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)


def _drop_rehearsed(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Leave out what the actor's self-test provokes on purpose, a conflict above all; its warnings are shown."""
    if event.get("self_test") and event["level"] in ("debug", "info"):
        raise structlog.DropEvent
    return event


def _make_visible(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape the control characters of texts; of values inside others the renderer shows the representation."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in event.items()}


def _keep_colors_only(_logger: object, _name: str, rendered: object) -> str:
    """Escape what is left, in tracebacks above all, but for the colors of the renderer and its line breaks."""
    parts = _COLOR.split(str(rendered))
    return "".join(part if at % 2 else "\n".join(map(visible, part.split("\n"))) for at, part in enumerate(parts))


def _drop_meta(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return structlog.stdlib.ProcessorFormatter.remove_processors_meta(logger, name, event)
