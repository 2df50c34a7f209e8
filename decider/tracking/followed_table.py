"""Cache of a process about a table that it follows, beside the stored state."""

import asyncio
from dataclasses import dataclass, field

from shared.table import BEFORE_FIRST, Position

TRUSTED_MS = 60_000
"""How long a table whose commits are applied is assumed to be the same one without a check."""


@dataclass(slots=True)
class FollowedTable:
    """Where a table was verified, whether its log was listed, and a lock for following it.

    lock: events and timers of a table often come at once. Two that read a log of millions of files take twice the
    memory, and the work of one is lost.
    """

    verified: Position = BEFORE_FIRST
    verified_ms: int = 0
    is_listed: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_trusted(self, position: Position, now_ms: int) -> bool:
        """Return whether a table is known to be the same one at this position, so that no request has to confirm it."""
        return self.verified == position and now_ms - self.verified_ms < TRUSTED_MS

    def verify(self, position: Position, now_ms: int) -> None:
        """Note that the table's history contains this position."""
        self.verified, self.verified_ms = position, now_ms
