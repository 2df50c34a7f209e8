"""Whatever the order of events and sweeps, a table is read once for all that waited, at the newest version named."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from decider.events.refresh_queue import RefreshQueue
from shared.table import TableId, TableRef
from tests.support.refreshing import RecordedRefreshes, refreshing
from tests.support.time_limits import scaled

A, B = (TableRef(TableId(name), name, f"file:///{name}") for name in ("a", "b"))


SWEPT = -1
"""In place of a version: the sweep asks for the table."""


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from([A, B]), st.none() | st.integers(SWEPT, 9)), max_size=20))
def test_in_any_order_each_table_is_read_once_for_all_that_was_asked(
    events: list[tuple[TableRef, int | None]],
) -> None:
    async def story() -> None:
        refreshes = RecordedRefreshes()
        refreshes.open.set()
        inbox = RefreshQueue(refreshes, workers=2)
        for table, version in events:
            await (inbox.put_swept(table) if version == SWEPT else inbox.put(table, version))
        work = asyncio.create_task(refreshing(inbox))
        await inbox.drained()
        work.cancel()
        asked = {table.name: [None if v == SWEPT else v for t, v in events if t is table] for table in (A, B)}
        assert sorted(refreshes.seen, key=lambda refresh: refresh[0]) == [
            (name, None if None in versions else max(v for v in versions if v is not None))
            for name, versions in asked.items()
            if versions
        ]

    asyncio.run(asyncio.wait_for(story(), scaled(20)))
