"""A TCP proxy before one port that can be cut, or stalled, until it is restored.

Cut: connections end, and new ones end at once. Stalled: connections stay open, and nothing passes.
"""

import socket

from tests.support.proxy import Fate, Proxy


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
