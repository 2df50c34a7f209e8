"""Upkeep of an Iceberg table by its newest metadata: one reader for each kind that there is for these tables."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from decider.formats.iceberg.entries import EntryReader
from shared.formats.iceberg.column_statistics import changed_rows
from shared.formats.iceberg.delete_merges import LiveDelete, superfluous
from shared.formats.iceberg.manifests import Entry, count_manifests
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.positions import snapshots_after
from shared.layout.upkeep import COMPUTE_STATISTICS, CONVERT_DELETES, MERGE_DELETES, REWRITE_MANIFESTS, UpkeepFound
from shared.table import DeleteKind, ExaminedTable, Position
from shared.whole_numbers import whole_number

_DELETED = "deleted-data-files"

_Read = Callable[[EntryReader, TableHead, ExaminedTable | None], Awaitable[UpkeepFound | None]]


async def upkeep(
    reader: EntryReader, head: TableHead, kinds: Collection[str], examined: Mapping[str, ExaminedTable]
) -> Mapping[str, UpkeepFound]:
    """Return what these metadata need, of these kinds; see `TableReader.upkeep`."""
    if head.current is None:
        return {}
    found = {kind: await read(reader, head, examined.get(kind)) for kind, read in READERS.items() if kind in kinds}
    return {kind: one for kind, one in found.items() if one is not None}


async def _manifests(reader: EntryReader, head: TableHead, _examined: ExaminedTable | None) -> UpkeepFound:
    """Count manifests by their list."""
    return count_manifests(await reader.manifests(_newest(head)), head.metadata.configuration)


async def _statistics(_reader: EntryReader, head: TableHead, _examined: ExaminedTable | None) -> UpkeepFound | None:
    """Count the rows that changed since the newest statistics by the summaries of snapshots."""
    return changed_rows(head)


async def _delete_files(reader: EntryReader, head: TableHead, examined: ExaminedTable | None) -> UpkeepFound:
    """Count delete files by the manifests that have some."""
    found = await reader.live(head, _newest(head), only_deletes=True)
    return _without_refused(found, head, examined, _superfluous)


async def _deletes_by_value(reader: EntryReader, head: TableHead, examined: ExaminedTable | None) -> UpkeepFound:
    """Count delete files by value by the manifests that have some delete file."""
    found = await reader.live(head, _newest(head), only_deletes=True)
    return _without_refused(found, head, examined, _by_value)


def _newest(head: TableHead) -> SnapshotRecord:
    return head.snapshots[head.current or 0]


def _superfluous(entries: Iterable[Entry], head: TableHead) -> UpkeepFound:
    deletes = (
        LiveDelete(one.delete_id, one.kind, one.referenced, one.partition, one.rows)
        for one in entries
        if one.kind is not None
    )
    return superfluous(deletes, head.protocol.min_writer).files


def _by_value(entries: Iterable[Entry], _head: TableHead) -> UpkeepFound:
    count = sum(one.kind is DeleteKind.EQUALITY for one in entries)
    return UpkeepFound(count, count)


def _without_refused(
    entries: Sequence[Entry],
    head: TableHead,
    examined: ExaminedTable | None,
    count: Callable[[Iterable[Entry], TableHead], UpkeepFound],
) -> UpkeepFound:
    """Count delete files; those that were there when a run refused what it found are not in excess."""
    found, new = count(entries, head), _new_snapshots(head, examined)
    if new is None:
        return found
    refused = min(count([one for one in entries if one.snapshot not in new], head).excess, found.excess)
    return replace(found, excess=found.excess - refused, refused=refused)


def _new_snapshots(head: TableHead, examined: ExaminedTable | None) -> frozenset[int | None] | None:
    """Return the snapshots of main after the one that a run examined; None: what it refused may be possible now."""
    if examined is None or (later := snapshots_after(head, Position(0, examined.digest))) is None:
        return None
    if examined.waits_for_data and any(_removes_data(one) for one in later):
        return None
    return frozenset((None, *(one.id for one in later)))


def _removes_data(snapshot: SnapshotRecord) -> bool:
    """Return whether a snapshot removed data files: its writer counts them only then."""
    return whole_number(snapshot.summary.get(_DELETED, "0")) != 0


READERS: Mapping[str, _Read] = MappingProxyType(
    {
        REWRITE_MANIFESTS.kind: _manifests,
        COMPUTE_STATISTICS.kind: _statistics,
        MERGE_DELETES.kind: _delete_files,
        CONVERT_DELETES.kind: _deletes_by_value,
    }
)
"""Readers by the kind of job."""
