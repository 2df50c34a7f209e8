"""Reads events as they occur: the capped streams that the scripts write, from a reader's position on.

Nothing is kept for a reader: one that is slow or away resumes by an id, and misses only what its stream has dropped
meanwhile. Entries of several streams come in the order of the server's clock. A reader polls, because a blocking read
would hold a connection for as long as a client watches.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.stored_values import milliseconds
from shared.errors import InvalidInput
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId

COUNT = 100
"""Entries read of one stream at once; what is left comes with the next poll."""

MOVES_OVERLAP_MS = 1_000
"""Milliseconds of moves that are read again: more than a script takes."""

RUNS, NOTES, LEDGER = "runs", "notes", "ledger."
"""Names of streams in ids: finished runs, what no worker reports, and a table's decisions by its id."""

_ID = re.compile(r"(\d{1,19})-(\d{1,19})/([A-Za-z0-9_.-]{1,310})")
_LAST_SEQ = 2**64 - 1


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of a stream; `at_ms` is the server's clock."""

    at_ms: int
    seq: int
    stream: str
    fields: Mapping[str, str]

    @property
    def id(self) -> str:
        """Position of this entry among all, from which a reader resumes."""
        return f"{self.at_ms}-{self.seq}/{self.stream}"

    @property
    def table(self) -> TableId | None:
        """The table of the ledger."""
        return TableId(self.stream.removeprefix(LEDGER)) if self.stream.startswith(LEDGER) else None


@dataclass(slots=True)
class StreamPosition:
    """One reader's position: the last entry that it got of each stream, and where a stream that is new to it begins."""

    start: str
    last_ids: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class MovePosition:
    """One reader's position among the moves of tables' states: the newest time, and what it got of the last second."""

    at_ms: int
    seen: dict[TableId, int] = field(default_factory=dict)


def position_after(last_id: str) -> StreamPosition:
    """Return the position of a reader that has seen the entry of this id; raises InvalidInput for text that is no id.

    Entries of other streams of the same millisecond are sent again, because it is not known whether they were sent.
    """
    match = _ID.fullmatch(last_id)
    if match is None:
        raise InvalidInput(
            f"{last_id[:80]!r} is no event's id", field="Last-Event-ID", allowed="the id of an event of this stream"
        )
    at_ms, seq, stream = int(match[1]), int(match[2]), match[3]
    before = f"{at_ms - 1}-{_LAST_SEQ}" if at_ms else "0-0"
    return StreamPosition(before, {stream: f"{at_ms}-{seq}"})


class StreamReader:
    """Reads the streams of one queue."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._redis = queue.redis
        self._name = queue.name

    @translate_redis_errors
    async def now(self) -> StreamPosition:
        """Return the position of a reader that starts now, by the server's clock."""
        return StreamPosition(f"{milliseconds(await self._redis.time())}-0")

    @translate_redis_errors
    async def read(self, position: StreamPosition, streams: Sequence[str]) -> tuple[StreamEntry, ...]:
        """Return the new entries of these streams, oldest first, and advance the position."""
        if not streams:
            return ()
        by_key = {self._key(stream): stream for stream in streams}
        asked: Any = {key: position.last_ids.get(stream, position.start) for key, stream in by_key.items()}
        found: Any = await self._redis.xread(asked, count=COUNT)
        rows = found.items() if isinstance(found, dict) else found
        entries: list[StreamEntry] = []
        cut: tuple[int, int] | None = None
        for key, some in rows:
            # A newer protocol wraps the entries of a stream in one more list.
            flat = some[0] if some and isinstance(some[0], list) else some
            read = [_entry(by_key[text(key)], *one) for one in flat]
            entries += read
            if len(read) >= COUNT:
                # This stream has more entries: later ones of other streams wait for them.
                end = (read[-1].at_ms, read[-1].seq)
                cut = end if cut is None else min(cut, end)
        entries = [one for one in entries if cut is None or (one.at_ms, one.seq) <= cut]
        entries.sort(key=lambda one: (one.at_ms, one.seq, one.stream))
        for one in entries:
            position.last_ids[one.stream] = f"{one.at_ms}-{one.seq}"
        return tuple(entries)

    @translate_redis_errors
    async def moved(self, position: MovePosition) -> tuple[TableId, ...]:
        """Return the tables whose state has moved since the position, each once, and advance it.

        The last second is read again, because a script may write its entry after one with a later time was read.
        """
        found: Any = await self._redis.zrange(
            keys.changed_tables(self._name), position.at_ms - MOVES_OVERLAP_MS, "+inf", byscore=True, withscores=True
        )
        moves = {TableId(text(table)): int(score) for table, score in found}
        new = tuple(table for table, at_ms in moves.items() if position.seen.get(table) != at_ms)
        position.at_ms = max(moves.values(), default=position.at_ms)
        position.seen = {table: at_ms for table, at_ms in moves.items() if at_ms >= position.at_ms - MOVES_OVERLAP_MS}
        return new

    def _key(self, stream: str) -> str:
        if stream == RUNS:
            return keys.runs(self._name)
        if stream == NOTES:
            return keys.events(self._name)
        return keys.ledger(self._name, stream.removeprefix(LEDGER))


def _entry(stream: str, raw_id: bytes | str, raw: Mapping[bytes | str, bytes | str]) -> StreamEntry:
    at_ms, _, seq = text(raw_id).partition("-")
    return StreamEntry(int(at_ms), int(seq), stream, {text(name): text(value) for name, value in raw.items()})
