"""Reading the index of a table for a decision: the figures of its live files, and who else rewrote it lately."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import structlog

from decider.formats.table_format import TableReader
from shared.errors import Corrupt, InvalidInput
from shared.formats.registry import support_of
from shared.index.rewrites import IndexRewritesSeen, rewrites_seen
from shared.index.signal import IndexSignal
from shared.index.status import IndexQuery
from shared.policy.policy import Policy
from shared.table import BEFORE_FIRST, Commit, Snapshot, TableRef

RECENT_COMMITS = 100
"""Newest commits that are searched for rewrites by others; an evaluation follows a commit within minutes."""

log = structlog.get_logger()


async def read_index(table: TableRef, reader: TableReader, version: int, policy: Policy) -> IndexSignal | None:
    """Read the index of a table; what keeps it from being read is what keeps it from being optimized."""
    snapshot = await reader.snapshot()
    read = support_of(snapshot.metadata.format).index_status
    try:
        # In a thread: the blocks of a large index take seconds, which other tables' events must not wait for.
        query = IndexQuery(optimized_sample=policy.index_sample)
        found = await asyncio.to_thread(read, snapshot, query)
        if found is None:
            return None
        seen = rewrites_seen(await _recent(reader, snapshot))
    except (Corrupt, InvalidInput) as problem:
        return IndexSignal(version, refusal=f"{problem}.")
    signal = IndexSignal.of(found)
    newest = seen.by_others[-1] if seen.by_others else -1
    signal = replace(signal, newest_by_others=newest, doubled=_doubled(seen))
    if signal.doubled:
        log.error("index_rows_doubled", table=table.name, version=seen.again_version, path=seen.again_path)
    return signal


async def _recent(reader: TableReader, snapshot: Snapshot) -> list[Commit]:
    """Return the newest commits of a snapshot's history, in order, as far as it is retained."""
    history = await reader.retained()
    known = [position for position in history.positions if position.version <= snapshot.version]
    if not known:
        return []
    is_whole = history.is_whole and len(known) <= RECENT_COMMITS
    # Without the first commit, the next one is the first whose predecessor can be named.
    after = BEFORE_FIRST if is_whole else known[max(0, len(known) - RECENT_COMMITS - 1)]
    async with aclosing(reader.changes(after, snapshot.metadata, until=snapshot.version)) as found:
        return [commit async for commit in found]


def _doubled(seen: IndexRewritesSeen) -> str:
    if seen.again_version < 0:
        return ""
    return (
        f"version {seen.again_version} rewrote {seen.again_path}, which version {seen.gone_version} had removed, so "
        "its rows are in the table again. Stop the writers, check the rows, and if they are wrong, RESTORE the table "
        f"to version {seen.again_version - 1}"
    )
