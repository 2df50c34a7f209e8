"""The history of one table: samples an hour for 30 days, and what happened to it.

A sample is taken after each hour in which the table changed; a table without events writes nothing. It holds the sums
of its files and the counters since it was registered, as `fleet_history` does for all tables together. Marks are what a
chart needs beside them: one that a crash loses changes nothing else.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from decider.state.table_summary import TableSummary
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors, translating_redis_errors
from decider.store.samples import KEPT, SampleStep, add_sample, read_samples
from shared.policy.properties import read_properties
from shared.prices import Usage
from shared.queue import keys
from shared.queue.command import WrongKey
from shared.queue.decode import text
from shared.table import TableId
from shared.typed_json import from_json

STEP = SampleStep.HOUR

MARKS_KEPT = 200  # As in lua/include/mark.lua.
"""Newest marks of a table; a stream drops them in parts, so that some more are there."""

MAX_DETAIL = 300
"""Characters of a mark's text."""

PAGE = 500
"""Tables per round trip."""

LEAST_MS = int(STEP) // 4
"""Milliseconds between the last sample and now, below which now stands for both."""


class MarkKind(StrEnum):
    """Kind of a mark. The queue's scripts write the first three."""

    PAUSED = "paused"
    RESUMED = "resumed"
    QUARANTINED = "quarantined"
    PROPERTIES = "properties"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to a table; detail: the kind of job, or the properties that changed."""

    at_ms: int
    kind: MarkKind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TableSample:
    """Files of a table at a time, and its counters until then, by their own names.

    files_needed: files that would do for the same bytes; small_files: those below the full size.
    """

    at_ms: int
    files: int
    files_needed: int
    small_files: int
    bytes: int
    commits: int = 0
    bytes_added: int = 0
    backlog_bytes_done: int = 0
    jobs_run: int = 0
    jobs_failed: int = 0
    bytes_replaced: int = 0
    bytes_written: int = 0
    files_replaced: int = 0
    files_written: int = 0
    usage_core_ms: int = 0
    usage_bytes_read: int = 0
    usage_bytes_written: int = 0
    usage_reads: int = 0
    usage_writes: int = 0

    @property
    def usage(self) -> Usage:
        """Use of cores and of the store by all runs on the table."""
        return Usage(
            *(self.usage_core_ms, self.usage_bytes_read, self.usage_bytes_written),
            *(self.usage_reads, self.usage_writes),
        )

    @property
    def files_fewer(self) -> int:
        """Decrease of the file count by all rewrites."""
        return self.files_replaced - self.files_written


_COUNTED = [one.name for one in fields(TableSample)][5:]
"""Counters of a table that a sample has."""


class TableHistory:
    """Samples and marks of the tables of one queue."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def record_changed(self, at_ms: int) -> int:
        """Keep a sample of each table that has changed since the last call; return their number.

        A second one of the same hour, after a crash, is left out.
        """
        redis, name = self._queue.redis, self._queue.name
        since = text(await redis.get(keys.sampled_changes(name)) or b"0")
        found: Any = await redis.zrange(keys.changed_tables(name), f"({since}", "+inf", byscore=True, withscores=True)
        changed = [TableId(text(table)) for table, _ in found]
        for start in range(0, len(changed), PAGE):
            samples = await self.present(changed[start : start + PAGE], at_ms)
            async with redis.pipeline(transaction=False) as pipe:
                for table, sample in samples.items():
                    add_sample(pipe, keys.history(name, int(STEP), table), STEP, sample)
                # One whose key is damaged has no history; the others have theirs.
                await pipe.execute(raise_on_error=False)
        if found:
            await redis.set(keys.sampled_changes(name), int(max(score for _, score in found)))
        return len(changed)

    @translate_redis_errors
    async def present(self, tables: Sequence[TableId], at_ms: int) -> dict[TableId, TableSample]:
        """Return samples of these tables as they are now, without those that have not been read."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for table in tables:
                pipe.hget(keys.table_state(self._queue.name, table), "summary")
                pipe.hmget(keys.counters(self._queue.name, table), _COUNTED)
            found = await pipe.execute(raise_on_error=False)
        return {
            table: _sample(at_ms, from_json(TableSummary, summary), counted)
            for table, summary, counted in zip(tables, found[::2], found[1::2], strict=True)
            if isinstance(summary, bytes | str) and isinstance(counted, list)
        }

    @translate_redis_errors
    async def samples(self, table: TableId, now_ms: int) -> tuple[TableSample, ...]:
        """Return the samples of a table in the last 30 days, the oldest first, and it as it is now.

        A sample of the last minutes is left out: rates between it and now would be of seconds.
        """
        key = keys.history(self._queue.name, int(STEP), table)
        kept = await read_samples(self._queue.redis, key, STEP, TableSample, 0)
        settled = (one for one in kept if one.at_ms <= now_ms - LEAST_MS)
        now = (await self.present([table], now_ms)).values()
        return since((*settled, *now), now_ms - KEPT[STEP] * STEP)

    async def mark(self, table: TableId, kind: MarkKind, detail: str = "") -> None:
        """Note what happened to a table, at the server's time; a damaged key stops nothing, as in scripts."""
        entry: Any = {"kind": str(kind), "detail": detail[:MAX_DETAIL]}
        with suppress(WrongKey), translating_redis_errors():
            await self._queue.redis.xadd(keys.marks(self._queue.name, table), entry, maxlen=MARKS_KEPT)

    async def mark_properties(self, table: TableId, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Note which properties that Lakewright reads changed, of a table or of its overrides, if any did."""
        was, now = _known_properties(before), _known_properties(after)
        names = sorted(name for name in {**was, **now} if was.get(name) != now.get(name))
        changes = (f"{name} = {now[name]}" if name in now else f"{name} removed" for name in names)
        if detail := ", ".join(changes):
            await self.mark(table, MarkKind.PROPERTIES, detail)

    @translate_redis_errors
    async def marks(self, table: TableId, since_ms: int) -> tuple[Mark, ...]:
        """Return what happened to a table from a time on, the oldest first."""
        found: Any = await self._queue.redis.xrange(keys.marks(self._queue.name, table), min=f"{max(0, since_ms)}-0")
        raw = ((entry, {text(name): text(value) for name, value in values.items()}) for entry, values in found)
        return tuple(
            Mark(int(text(entry).partition("-")[0]), MarkKind(one["kind"]), one.get("detail", ""))
            for entry, one in raw
            if one.get("kind") in tuple(MarkKind)
        )


def _known_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    layer = read_properties(configuration)
    names = {*layer.property_names.values(), *(issue.property for issue in layer.issues)}
    return {name: configuration[name] for name in names if name in configuration}


def _sample(at_ms: int, summary: TableSummary, counted: Sequence[bytes | str | None]) -> TableSample:
    counters = {name: int(value or 0) for name, value in zip(_COUNTED, counted, strict=True)}
    return TableSample(at_ms, summary.files, summary.files_needed, summary.small_files, summary.bytes, **counters)


def since(samples: Sequence[TableSample], since_ms: int) -> tuple[TableSample, ...]:
    """Return the samples from a time on, and before them the table at that time, if there is an older one."""
    older = [one for one in samples if one.at_ms < since_ms]
    return (
        *(replace(one, at_ms=since_ms) for one in older[-1:]),
        *(one for one in samples if one.at_ms >= since_ms),
    )


def with_rests(samples: Sequence[TableSample]) -> tuple[TableSample, ...]:
    """Return samples with one more at the end of each longer rest: a table changed only in the hour before a sample."""
    found = list(samples[:1])
    for before, sample in pairwise(samples):
        if sample.at_ms - before.at_ms > 2 * STEP:
            found.append(replace(before, at_ms=sample.at_ms - STEP))
        found.append(sample)
    return tuple(found)
