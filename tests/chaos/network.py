"""A TCP proxy between workers and Redis whose faults are switched while it runs; it can be pointed elsewhere."""

import time
from enum import StrEnum

from tests.support.proxy import Fate, Proxy


class Weather(StrEnum):
    """What the network does at the moment."""

    FAIR = "fair"
    DELAY = "delay"
    LOSE_REPLY = "lose reply"
    HALF_CLOSE = "half-close"
    BLACK_HOLE = "black hole"


DELAY_S = 0.02
"""Delay of each request in bad weather."""


class Network(Proxy):
    """Passes everything in fair weather."""

    def __init__(self, target_port: int) -> None:
        self.weather = Weather.FAIR
        self.delay_s = DELAY_S
        super().__init__(target_port)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def direct_url(self) -> str:
        """Redis itself, beside the network's weather."""
        return f"redis://127.0.0.1:{self.target_port}/0"

    def cut(self) -> None:
        """End every connection, as a failover does."""
        self.end_connections()

    def fate(self, *, is_reply: bool) -> Fate:
        weather = self.weather
        if weather is Weather.BLACK_HOLE:
            return Fate.DROP
        if weather in (Weather.LOSE_REPLY, Weather.HALF_CLOSE) and is_reply:
            return Fate.END
        if weather is Weather.DELAY and not is_reply:
            time.sleep(self.delay_s)
        return Fate.PASS
