"""Upkeep of an Iceberg table by its newest metadata: one reader for each kind that there is for these tables."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from types import MappingProxyType

from decider.formats.iceberg.entries import EntryReader
from shared.formats.iceberg.column_statistics import changed_rows
from shared.formats.iceberg.delete_merges import LiveDelete, superfluous
from shared.formats.iceberg.manifests import count_manifests, keeps_rows
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.layout.upkeep import COMPUTE_STATISTICS, CONVERT_DELETES, MERGE_DELETES, REWRITE_MANIFESTS, UpkeepFound
from shared.table import DeleteKind

_Read = Callable[[EntryReader, TableHead, SnapshotRecord], Awaitable[UpkeepFound | None]]


async def upkeep(reader: EntryReader, head: TableHead, kinds: Collection[str]) -> Mapping[str, UpkeepFound]:
    """Return what these metadata need, of these kinds; see `TableReader.upkeep`."""
    if head.current is None:
        return {}
    newest = head.snapshots[head.current]
    found = {kind: await read(reader, head, newest) for kind, read in READERS.items() if kind in kinds}
    return {kind: one for kind, one in found.items() if one is not None}


async def _manifests(reader: EntryReader, head: TableHead, newest: SnapshotRecord) -> UpkeepFound | None:
    """Count manifests by their list; None where they cannot be rewritten."""
    if not keeps_rows(head.protocol.min_writer):
        return None
    return count_manifests(await reader.manifests(newest), head.metadata.configuration)


async def _statistics(_reader: EntryReader, head: TableHead, _newest: SnapshotRecord) -> UpkeepFound | None:
    """Count the rows that changed since the newest statistics by the summaries of snapshots."""
    return changed_rows(head)


async def _delete_files(reader: EntryReader, head: TableHead, newest: SnapshotRecord) -> UpkeepFound:
    """Count delete files by the manifests that have some."""
    found = await reader.live(head, newest, only_deletes=True)
    deletes = (
        LiveDelete(one.delete_id, one.kind, one.referenced, one.partition, one.rows)
        for one in found
        if one.kind is not None
    )
    return superfluous(deletes, head.protocol.min_writer).files


async def _deletes_by_value(reader: EntryReader, head: TableHead, newest: SnapshotRecord) -> UpkeepFound:
    """Count delete files by value by the manifests that have some delete file."""
    found = await reader.live(head, newest, only_deletes=True)
    count = sum(one.kind is DeleteKind.EQUALITY for one in found)
    return UpkeepFound(count, count)


READERS: Mapping[str, _Read] = MappingProxyType(
    {
        REWRITE_MANIFESTS.kind: _manifests,
        COMPUTE_STATISTICS.kind: _statistics,
        MERGE_DELETES.kind: _delete_files,
        CONVERT_DELETES.kind: _deletes_by_value,
    }
)
"""Readers by the kind of job."""
