"""A TCP proxy in this process before one port; what it does to connections and to what they carry is a subclass's."""

import contextlib
import socket
import threading
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from tests.support.time_limits import scaled

CHUNK = 65_536


class Fate(Enum):
    """What happens to bytes that were read."""

    PASS = auto()
    DROP = auto()
    END = auto()
    """They are dropped, and their connection ends."""


class Proxy:
    """Listens on `port`; each connection is two threads, one per direction."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._start(self._accept)

    def fate(self, *, is_reply: bool) -> Fate:
        """Return what happens to bytes of a request or of a reply, which were read just now."""
        return Fate.PASS

    def opened(self, client: socket.socket) -> socket.socket:
        """Return a client's connection as it is read from and written to; raises OSError if it is not taken."""
        return client

    def end_connections(self) -> None:
        """End every connection that there is."""
        for one in self._sockets:
            _end(one)
        self._sockets.clear()

    def close(self) -> None:
        """Listen no more, and wait until the last connection has ended."""
        _end(self._listener)
        self._listener.close()
        self.end_connections()
        for thread in self._threads:
            thread.join(scaled(10))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, client)

    def _serve(self, accepted: socket.socket) -> None:
        try:
            client = self.opened(accepted)
            server = socket.create_connection(("127.0.0.1", self.target_port), timeout=scaled(2))
        except OSError:
            accepted.close()
            return
        server.settimeout(None)
        self._sockets += [client, server]
        self._start(self._carry, server, client, True)
        self._carry(client, server, False)

    def _carry(self, source: socket.socket, sink: socket.socket, is_reply: bool) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(CHUNK):
                fate = self.fate(is_reply=is_reply)
                if fate is Fate.END:
                    break
                if fate is Fate.PASS:
                    sink.sendall(data)
        for one in (source, sink):
            _end(one)
        # Each of a connection's two threads closes what it reads from.
        source.close()

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


class TcpProxy(Proxy):
    """Passes everything until it is cut or stalled."""

    _is_cut = _is_stalled = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """End every connection, and every new one."""
        self._is_cut = True
        self.end_connections()

    def stall(self) -> None:
        """Keep every connection open, and pass nothing."""
        self._is_stalled = True

    def restore(self) -> None:
        """Pass connections again; stalled ones, which have lost data, end."""
        if self._is_stalled:
            self.end_connections()
        self._is_cut = self._is_stalled = False

    def opened(self, client: socket.socket) -> socket.socket:
        if self._is_cut:
            raise ConnectionResetError
        return client

    def fate(self, *, is_reply: bool) -> Fate:
        return Fate.DROP if self._is_stalled else Fate.PASS
