"""Logs have one event with key-values: lines for people on a terminal, JSON for machines everywhere else.

A setting overrides the guess: a terminal multiplexer may want JSON, and a file that people read may want lines.
"""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import Processor

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str, form: str = "auto", stream: TextIO | None = None) -> None:
    """Send our own events and those of libraries to `stream` (default: standard error), from this level on.

    form: `json`, one object a line; `console`, lines for people; `auto`, whichever suits the stream.
    """
    stream = stream or sys.stderr
    is_for_people = form == "console" or (form == "auto" and stream.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _drop_rehearsed,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    ending: list[Processor] = [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
    if not is_for_people:
        ending = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_drop_meta, *ending])
    )
    logging.basicConfig(level=max(LEVELS[level], logging.WARNING), handlers=[handler], force=True)


def _drop_rehearsed(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Leave out what the actor's self-test provokes on purpose, a conflict above all; its warnings are shown."""
    if event.get("self_test") and event["level"] in ("debug", "info"):
        raise structlog.DropEvent
    return event


def _drop_meta(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return structlog.stdlib.ProcessorFormatter.remove_processors_meta(logger, name, event)
