"""A call's head must arrive in a few seconds, or its connection ends: thousands that trickle would use up all sockets.

The server bounds how long a connection idles between calls, and how large a head may be, but not how long one takes.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_S = 10.0
"""Seconds from a connection's start, or from a head's first byte, to its last; over any line it takes less than one."""

MAX_HEAD_BYTES = 262_144
"""Bytes of a call's head: a cell's name of 20,000 characters in a query is up to 240,000 when it is escaped."""


class EndsSlowHeads(H11Protocol):
    """The server's protocol for HTTP with a clock for heads; bodies have their own."""

    head_s = HEAD_S

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first head."""
        super().connection_made(transport)
        self._end = self.loop.call_later(self.head_s, transport.close)

    def data_received(self, data: bytes) -> None:
        """Stop the clock once a head is there, and start it with the first byte of the next."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop()
        elif self._end is None:
            self._end = self.loop.call_later(self.head_s, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock for good."""
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
