"""Handles messages of event queues: their tables are refreshed, and what cannot be used is set aside.

A message may be acknowledged when it is handled: its table is registered, and each decider that starts reads all
registered tables again, so a crash between the two, or a message delivered twice, costs a read. What may succeed later
is left in the queue.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import structlog

from decider.events.detect import parse_body
from decider.events.resolver import EventResolver
from decider.events.table_hint import IgnoredReason
from decider.store.registry.rejected_events import MAX_BODY_CHARS, RejectedEvent, RejectedEvents
from shared.errors import InvalidInput

MAX_DELIVERIES = 10
"""Deliveries of a message whose table cannot be read, or of too many unknown tables, before it is set aside."""

LATER = frozenset({IgnoredReason.UNREADABLE, IgnoredReason.UNKNOWN_LIMIT})
"""Reasons that may be gone at the next delivery."""

MALFORMED = "malformed"
"""Reason in the metric of events."""

log = structlog.get_logger()


class MessageResult(StrEnum):
    """Outcome of a message: handled and set aside ones are acknowledged, others are delivered again."""

    HANDLED = "handled"
    SET_ASIDE = "set_aside"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a queue: where it comes from, its body, and how often it was delivered, from 1 on."""

    source: str
    body: bytes
    deliveries: int = 1


class MessageHandler:
    """Handles one message at a time, of any source."""

    def __init__(
        self,
        resolver: EventResolver,
        rejected: RejectedEvents,
        *,
        bucket_locations: Mapping[str, str],
        count: Callable[[int, Mapping[str, int]], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._resolver = resolver
        self._rejected = rejected
        self._bucket_locations = bucket_locations
        self._count = count
        self._now_ms = now_ms

    async def handle(self, message: Message) -> MessageResult:
        """Handle a message. Raises LakewrightError if Redis does not answer: it is delivered again."""
        try:
            parse = partial(parse_body, message.body, bucket_locations=self._bucket_locations)
            events = await asyncio.to_thread(parse)
        except InvalidInput as problem:
            await self._set_aside(message, str(problem))
            self._count(0, {MALFORMED: 1})
            return MessageResult.SET_ASIDE
        accepted, ignored = await self._resolver.accept(events.hints)
        if late := sorted(LATER & ignored.keys()):
            if message.deliveries < MAX_DELIVERIES:
                return MessageResult.LATER
            await self._set_aside(message, f"{', '.join(late)} in {message.deliveries} deliveries")
        for reason, count in events.ignored:
            ignored[reason] += count
        self._count(accepted, ignored)
        return MessageResult.SET_ASIDE if late else MessageResult.HANDLED

    async def _set_aside(self, message: Message, reason: str) -> None:
        body = message.body.decode(errors="replace")[:MAX_BODY_CHARS]
        await self._rejected.add(RejectedEvent(self._now_ms(), message.source, reason, body))
        log.warning("event_rejected", source=message.source, reason=reason)
