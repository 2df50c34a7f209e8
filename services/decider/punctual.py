"""A request has to arrive in time: whoever sends a byte a second holds a connection and memory for that long only.

Uvicorn closes connections that are silent between requests; one that never completes a request it would keep for ever.
"""

import asyncio

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVAL_S = 30.0
"""Seconds from the first byte of a request, or from a connection's opening, to the last byte of its body: 1 MiB at
35 kB/s."""

log = structlog.get_logger()


class PunctualProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with a bound on how long a request may take to arrive."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Take what arrived; a request that is complete may take its time to be answered."""
        self._expect()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(ARRIVAL_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        log.warning("request_too_slow", client=self.client and self.client[0], seconds=ARRIVAL_S)
        self._late = None
        self.transport.close()
