"""Logging never fails and never floods: who logs goes on, whatever becomes of the line.

A line that cannot be rendered or written (the disk is full, the reader of a pipe has gone) is lost and counted; the
next line that is written is followed by their number. Warnings and errors of one kind are bounded in number, because
what others cause (connections, bodies, logs of tables) would otherwise fill the disk; the next one that passes says how
many did not.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from structlog.typing import EventDict

BURST = 100
"""Warnings and errors of one kind that are logged at once: more than a person reads."""

PER_S = 5.0
"""And per second after that: with a traceback of 10 kB each, 50 kB."""

MAX_KINDS = 1_000
"""Kinds that are remembered; our own events are fewer, and the one that was silent longest is forgotten."""

LIBRARY_KIND_CHARS = 60
"""Beginning of a library's message that makes a kind: what follows often has addresses and numbers."""


@dataclass(slots=True)
class _Kind:
    """The rest of a kind's allowance at a moment, and how many lines were left out since the last one."""

    allowance: float
    at_s: float
    left_out: int = 0


class FloodLimit:
    """Says of each warning or error whether it is logged."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._kinds: OrderedDict[str, _Kind] = OrderedDict()
        self._lock = threading.Lock()

    def passes(self, kind: str) -> int | None:
        """Return None for a line that is left out; otherwise how many of its kind were since the last one."""
        with self._lock:
            now_s = self._clock_s()
            known = self._kinds.pop(kind, None) or _Kind(BURST, now_s)
            known.allowance = min(BURST, known.allowance + (now_s - known.at_s) * PER_S)
            known.at_s = now_s
            self._kinds[kind] = known
            if len(self._kinds) > MAX_KINDS:
                self._kinds.popitem(last=False)
            if known.allowance < 1:
                known.left_out += 1
                return None
            known.allowance -= 1
            left_out, known.left_out = known.left_out, 0
            return left_out

    def process(self, _logger: object, _name: str, event: EventDict) -> EventDict:
        """Drop an event of our own that is one too many; a processor of structlog."""
        if event["level"] in ("debug", "info"):
            return event
        left_out = self.passes(str(event["event"]))
        if left_out is None:
            raise structlog.DropEvent
        if left_out:
            event["left_out"] = left_out
        return event

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop a message of a library that is one too many; a filter of the standard library."""
        left_out = self.passes(f"{record.name}|{str(record.msg)[:LIBRARY_KIND_CHARS]}")
        if left_out:
            record.msg = f"{record.msg} ({left_out} more were left out)"
        return left_out is not None


class LostLines:
    """Counts the lines that could not be written."""

    def __init__(self) -> None:
        self._unreported = 0
        self._lock = threading.Lock()

    def add(self, lines: int = 1) -> None:
        """Record that lines were lost."""
        with self._lock:
            self._unreported += lines

    def take_unreported(self) -> int:
        """Return how many were lost since the last call."""
        with self._lock:
            count, self._unreported = self._unreported, 0
            return count


def never_raising(logger: type[Any], lost: LostLines) -> type[Any]:
    """Return a class of loggers that lose a line instead of raising."""

    class NeverRaising(logger):  # type: ignore[misc]
        """A logger whose failures are counted."""

        def _proxy_to_logger(self, method_name: str, event: str | None = None, **values: Any) -> Any:
            missing = 1
            try:
                super()._proxy_to_logger(method_name, event, **values)
                missing = lost.take_unreported()
                if missing:
                    super()._proxy_to_logger("warning", "log_lines_lost", lines=missing)
            except Exception:  # noqa: BLE001 - no caller can do anything about it, nor log it
                lost.add(missing)

    return NeverRaising


class NeverRaisingHandler(logging.StreamHandler[Any]):
    """Writes the messages of libraries, and counts those that are lost."""

    def __init__(self, stream: Any, lost: LostLines) -> None:
        super().__init__(stream)
        self._lost = lost

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002 - named by the standard library
        """Count a message that could not be written; the standard library would print a traceback to nowhere."""
        self._lost.add()
