"""A sweep requests every table: at once until one has succeeded, then spread over most of its interval."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from decider.background.sweep import SPREAD, Sweep
from decider.events.refresh_queue import RefreshQueue
from decider.store.table_registry import TableRegistry
from shared.errors import RetryableError
from shared.table import TableId, TableRef


class Registry:
    """Four tables, behind a Redis that is away at the first call."""

    def __init__(self) -> None:
        self.calls = 0

    async def count(self) -> int:
        self.calls += 1
        if self.calls == 1:
            raise RetryableError("away")
        return 4

    async def all(self) -> AsyncIterator[TableRef]:
        for number in range(4):
            yield TableRef(TableId(f"t{number}"), f"t{number}", f"file:///t{number}")


async def unused(_table: TableRef, _version: int | None) -> None:
    raise AssertionError("nothing serves the queue")


def test_the_first_sweep_comes_at_once_and_the_next_ones_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses_s: list[float] = []

    async def noted(pause_s: float) -> None:
        pauses_s.append(pause_s)

    async def story() -> None:
        sweep = Sweep(cast("TableRegistry", Registry()), RefreshQueue(unused), interval_s=100.0)
        with pytest.raises(RetryableError):
            await sweep.run_once()
        assert (await sweep.run_once()).tables == 4
        assert pauses_s == []
        assert (await sweep.run_once()).tables == 4
        assert pauses_s == [100.0 * SPREAD / 4] * 4
        await sweep.run_once(spread_s=0.0)
        assert len(pauses_s) == 4

    monkeypatch.setattr(asyncio, "sleep", noted)
    asyncio.run(story())
