"""A TCP proxy in this process that lets a call through and keeps its reply: the worst moment to lose a connection."""

import threading

from tests.support.proxy import Fate, Proxy


class ReplyThief(Proxy):
    """`steal(n)` swallows the next n replies, each together with its connection."""

    def __init__(self, target_port: int) -> None:
        self._lock = threading.Lock()
        self.left_to_steal = 0
        super().__init__(target_port)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def steal(self, replies: int = 1) -> None:
        with self._lock:
            self.left_to_steal = replies

    def fate(self, *, is_reply: bool) -> Fate:
        with self._lock:
            if not is_reply or self.left_to_steal == 0:
                return Fate.PASS
            self.left_to_steal -= 1
            return Fate.END
