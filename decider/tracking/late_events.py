"""The commits that an event leads to: those up to the one that it names, and more if it comes late.

If as much time has passed as between two commits, the next one is there, as a rule: to read it now costs no more than
to read it for its own event, and no decision rests on files that are gone.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from decider.formats.table_format import TableReader
from decider.store.tables.table_state import TableState
from shared.table import Commit


async def commits_after(
    reader: TableReader, cursor: TableState, hinted: int | None, now_ms: Callable[[], int]
) -> AsyncGenerator[Commit, None]:
    """Yield the commits after a cursor up to the hinted version, and those after it as well if the hint is late.

    hinted: None for all that there are. Raises what reading the log raises.
    """
    last: Commit | None = None
    async with aclosing(reader.changes(cursor.position, cursor.metadata, until=hinted)) as commits:
        async for last in commits:
            yield last
    every_ms = cursor.pace.every_ms
    if hinted is None or last is None or not every_ms or now_ms() - last.timestamp_ms <= every_ms:
        return
    async with aclosing(reader.changes(last.position, last.metadata or cursor.metadata)) as commits:
        async for commit in commits:
            yield commit
