"""A decider that notes what the time from an event to its decision is spent on; its code runs unchanged inside.

Times are wall clock and include waiting for the event loop. SIGUSR1 has it write the sums since the last one as JSON.
"""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from decider.api.routes.events import EventReceiver
from decider.events.refresh_queue import RefreshQueue
from decider.storage.reading_threads import ReadingThreads
from decider.tracking.refresh import TableRefresher
from services.decider.__main__ import main

PHASES_FILE = "BENCH_PHASES_FILE"

_spent: Counter[str] = Counter()
_is_refresh: ContextVar[bool] = ContextVar("is_refresh", default=False)
_queued: dict[str, float] = {}


def _timed(owner: type, name: str, phase: str, *, only_in_refresh: bool = True) -> None:
    """Add the time of a coroutine method to a phase."""
    real: Callable[..., Any] = getattr(owner, name)

    @wraps(real)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        if only_in_refresh and not _is_refresh.get():
            return await real(*args, **kwargs)
        began = time.perf_counter()
        try:
            return await real(*args, **kwargs)
        finally:
            _spent[phase] += time.perf_counter() - began

    setattr(owner, name, timed)


def _note_queue() -> None:
    """Note when a table is queued and when its refresh begins."""
    put, refresh = RefreshQueue.put, TableRefresher.refresh

    async def noting_put(self: Any, table: Any, version: int | None) -> None:
        _queued.setdefault(table.id, time.perf_counter())
        await put(self, table, version)

    async def noting_refresh(self: Any, table: Any, version: int | None) -> None:
        began = time.perf_counter()
        _spent["waiting"] += began - _queued.pop(table.id, began)
        token = _is_refresh.set(True)
        try:
            await refresh(self, table, version)
        finally:
            _is_refresh.reset(token)
            _spent["refreshing"] += time.perf_counter() - began
            _spent["refreshes"] += 1

    RefreshQueue.put = noting_put  # type: ignore[method-assign]
    TableRefresher.refresh = noting_refresh  # type: ignore[method-assign]


def _write(*_: object) -> None:
    place = Path(os.environ[PHASES_FILE])
    place.with_suffix(".tmp").write_text(json.dumps(_spent))
    place.with_suffix(".tmp").rename(place)
    _spent.clear()


if __name__ == "__main__":
    _timed(EventReceiver, "accept", "accepting", only_in_refresh=False)
    _timed(ReadingThreads, "run", "reading")
    _timed(Redis, "execute_command", "redis")
    _timed(Pipeline, "execute", "redis")
    _note_queue()
    signal.signal(signal.SIGUSR1, _write)
    main()
