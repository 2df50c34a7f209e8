"""A TCP proxy in this process that lets a call through and keeps its reply: the worst moment to lose a connection."""

import contextlib
import socket
import threading
from collections.abc import Callable

from tests.support.time_limits import scaled


class ReplyThief:
    """Listens on `port`; `steal(n)` swallows the next n replies, each together with its connection."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._to_steal = 0
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def left_to_steal(self) -> int:
        return self._to_steal

    def steal(self, replies: int = 1) -> None:
        with self._lock:
            self._to_steal = replies

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            _cut(one)
        for thread in self._threads:
            thread.join(scaled(10))

    def _begin(self, work: Callable[..., None], *args: socket.socket) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._sockets += [client, server]
            self._begin(self._requests, client, server)
            self._begin(self._replies, server, client)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        _cut(server)
        client.close()

    def _replies(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if self._steals():
                    break
                client.sendall(data)
        _cut(client)
        server.close()

    def _steals(self) -> bool:
        with self._lock:
            if self._to_steal == 0:
                return False
            self._to_steal -= 1
            return True


def _cut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
