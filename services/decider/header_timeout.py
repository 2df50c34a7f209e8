"""A call's head must arrive in a few seconds and have few lines, or its connection ends; a body has no tiny chunks.

Thousands that trickle would use up all sockets, and one of many lines holds everybody up while it is read. The server
bounds how long a connection idles between calls, and how large a head may be, but neither of these (docs/adr/0007).
"""

import asyncio
import re
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from services.decider.open_connections import OpenConnections

HEAD_S = 10.0
"""Seconds from a connection's start, or from a head's first byte, to its last; over any line it takes less than one."""

MAX_HEAD_BYTES = 262_144
"""Bytes of a call's head: a partition's name of 20,000 characters in a query is up to 240,000 when it is escaped."""

MAX_HEAD_LINES = 200
"""Lines of a call's head; browsers and proxies together send fewer than fifty, and 65,000 take a tenth of a second."""

MAX_TINY_CHUNKS = 1_000
"""Chunks of a body that may be below TINY_CHUNK_BYTES; 43,000 of one byte take a quarter of a second."""

TINY_CHUNK_BYTES = 64
"""Bytes of a chunk; writers that stream send whole events, which are longer."""

_RESPONDING = (h11.SEND_RESPONSE, h11.SEND_BODY)
"""States of a connection from the end of a head to the end of its response."""

_BLANK_LINE = re.compile(rb"\n\r?\n")


class LimitedConnection(h11.Connection):
    """A connection that refuses what is costly to read: heads of many lines, and bodies in many tiny chunks."""

    _chunks = 0
    _body_bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event; raises RemoteProtocolError, which the server answers with 400 and the end."""
        if self.their_state is h11.IDLE:
            self._chunks = self._body_bytes = 0
            if _has_many_lines(self.trailing_data[0]):
                raise h11.RemoteProtocolError(f"the head has more than {MAX_HEAD_LINES} lines")
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._chunks += 1
            self._body_bytes += len(event.data)
            if self._chunks > MAX_TINY_CHUNKS + self._body_bytes // TINY_CHUNK_BYTES:
                raise h11.RemoteProtocolError("the body comes in too many tiny chunks")
        return event


class HeaderTimeoutProtocol(asyncio.Protocol):
    """Stands between a transport and the server's protocol for HTTP, with a clock for heads; bodies have their own.

    It reads the state of its own h11 connection, which replaces the server protocol's own: the only thing that is
    not public there, and the tests of this file's limits notice if it moves.
    """

    head_s = HEAD_S
    address = ""
    """Address of the client; empty where the transport has none."""

    def __init__(self, connections: OpenConnections, **given: Any) -> None:
        self._connections = connections
        self._http = H11Protocol(**given)
        self._connection = self._http.conn = LimitedConnection(h11.SERVER, MAX_HEAD_BYTES)
        self._transport: asyncio.Transport | None = None
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first head."""
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        if not self._connections.add(self):
            transport.abort()
        self._http.connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        """Stop the clock once a head is there, and start it with the first byte of the next."""
        self._http.data_received(data)
        if self._connection.our_state in _RESPONDING:
            self._stop()
            self._connections.begins_call(self)
        elif self._end is None:
            self._start()

    def eof_received(self) -> None:
        """Pass it on."""
        self._http.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock for good."""
        self._stop()
        self._connections.remove(self)
        self._http.connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """True if no call is in progress: its head is not there yet, or its response has been sent."""
        return self._connection.our_state not in _RESPONDING

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _start(self) -> None:
        if self._transport is not None:
            self._end = asyncio.get_running_loop().call_later(self.head_s, self._transport.close)

    def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


def _has_many_lines(received: bytes) -> bool:
    """Return whether a head, as much of it as is there, has too many lines; what follows it does not count."""
    if received.count(b"\n") <= MAX_HEAD_LINES:
        return False
    end = _BLANK_LINE.search(received)
    return received.count(b"\n", 0, end.end() if end else len(received)) > MAX_HEAD_LINES
