"""A TCP proxy before one port that can be cut, or stalled, until it is restored.

Cut: connections end, and new ones end at once. Stalled: connections stay open, and nothing passes.
"""

import contextlib
import socket
import threading

from tests.support.time_limits import scaled

CHUNK = 65_536


class TcpProxy:
    """Each connection is two threads, one per direction."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._is_cut = self._is_stalled = False
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """End every connection, and every new one."""
        self._is_cut = True
        self._end_connections()

    def stall(self) -> None:
        """Keep every connection open, and pass nothing."""
        self._is_stalled = True

    def restore(self) -> None:
        """Pass connections again; stalled ones, which have lost data, end."""
        if self._is_stalled:
            self._end_connections()
        self._is_cut = self._is_stalled = False

    def close(self) -> None:
        """Listen no more, and wait until the last connection has ended."""
        self.cut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(scaled(10))

    def _end_connections(self) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target_port))
            self._sockets += [client, server]
            self._start(self._copy, client, server)
            self._start(self._copy, server, client)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if not self._is_stalled:
                    target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _start(self, work: object, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()
