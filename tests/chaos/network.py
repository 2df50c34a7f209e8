"""A TCP proxy between workers and Redis whose faults are switched while it runs; it can be pointed elsewhere."""

import contextlib
import socket
import threading
import time
from enum import StrEnum

from tests.support.time_limits import scaled


class Weather(StrEnum):
    """What the network does at the moment."""

    FAIR = "fair"
    DELAY = "delay"
    LOSE_REPLY = "lose reply"
    HALF_CLOSE = "half-close"
    BLACK_HOLE = "black hole"


DELAY_S = 0.02


class Network:
    """Listens on `port`; each connection is two threads, one per direction."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.weather = Weather.FAIR
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def direct_url(self) -> str:
        """Redis itself, beside the network's weather."""
        return f"redis://127.0.0.1:{self.target_port}/0"

    def cut(self) -> None:
        """End every connection, as a failover does."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def close(self) -> None:
        """Listen no more, and wait until the last connection has ended."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(scaled(10))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), timeout=scaled(2))
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            self._sockets += [client, server]
            self._begin(client, server, is_reply=False)
            self._begin(server, client, is_reply=True)

    def _begin(self, source: socket.socket, sink: socket.socket, *, is_reply: bool) -> None:
        thread = threading.Thread(target=self._carry, args=(source, sink, is_reply), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket, is_reply: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                weather = self.weather
                if weather is Weather.BLACK_HOLE or (weather is Weather.LOSE_REPLY and is_reply):
                    if weather is Weather.LOSE_REPLY:
                        break
                    continue
                if weather is Weather.HALF_CLOSE and is_reply:
                    sink.shutdown(socket.SHUT_WR)
                    break
                if weather is Weather.DELAY:
                    time.sleep(DELAY_S)
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        # Each of a connection's two threads closes what it reads from.
        source.close()
