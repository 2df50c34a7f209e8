"""Our history is read from the summaries of the table's snapshots, so that it survives Redis, deciders and releases.

It ends where snapshots have expired. Paging costs nothing: all snapshots are in the metadata; only ours are read.
"""

from collections.abc import Iterable, Sequence

from decider.formats.iceberg.commits import own_metadata
from decider.formats.iceberg.entries import EntryReader
from decider.formats.iceberg.source import MetadataSource
from decider.formats.rewrites import FileStats, Rewrite, RewritePage
from decider.formats.table_format import MAX_SCANNED
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.positions import main_versions
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.policy.levels import SMALL_LEVELS


class IcebergRewrites:
    """Finds Lakewright's snapshots on main."""

    def __init__(self, source: MetadataSource) -> None:
        self._source = source
        self._entries = EntryReader(source)
        self.location = source.location

    async def page(self, *, limit: int, before: int | None = None, max_scanned: int = MAX_SCANNED) -> RewritePage:
        """Return up to `limit` events of versions below `before` (None: from the newest on)."""
        head = await self._source.head()
        versions = main_versions(head)
        found: list[Rewrite] = []
        older = [one for one in head.chain() if before is None or versions[one.id] < before]
        for snapshot in older[:max_scanned]:
            if len(found) == limit:
                return RewritePage(tuple(found), versions[snapshot.id] + 1)
            ours = own_metadata(snapshot)
            if ours is not None:
                found.append(await self._event(head, snapshot, ours, versions[snapshot.id]))
        left = older[max_scanned:]
        return RewritePage(tuple(found), versions[left[0].id] + 1 if left else None)

    async def _event(self, head: TableHead, snapshot: SnapshotRecord, ours: CommitMetadata, version: int) -> Rewrite:
        return rewrite_of(snapshot, ours, version, await self._entries.written(head, snapshot))


def rewrite_of(snapshot: SnapshotRecord, ours: CommitMetadata, version: int, written: Iterable[Entry]) -> Rewrite:
    """Return the event of a snapshot of ours, by the entries of the manifests that it wrote, kept ones among them."""
    entries = [entry for entry in written if entry.snapshot in (snapshot.id, None)]
    removed = [entry for entry in entries if entry.status is EntryStatus.DELETED and entry.kind is None]
    new = [entry for entry in entries if entry.status is EntryStatus.ADDED]
    added = [entry for entry in new if entry.kind is None]
    paths = {entry.path for entry in added}
    late = [entry for entry in new if entry.referenced in paths]  # Rows that others deleted while they were rewritten.
    before, after = _state(ours, removed), _state(ours, added)
    rows = _rows(added) - _rows(late)
    # What is seen before equals what is seen after, as the actor proved; the rest was left out or is hidden.
    return Rewrite(
        version=version,
        mark=ours,
        finished_ms=snapshot.timestamp_ms,
        inputs=_stats(removed, before, rows),
        outputs=_stats(added, after, rows),
        deleted_rows=max(0, _rows(removed) - _rows(added)),
        entropy_removed=None if before is None or after is None else before.shortfall - after.shortfall,
    )


def _rows(entries: Iterable[Entry]) -> int:
    return sum(entry.rows for entry in entries)


def _state(ours: CommitMetadata, entries: Iterable[Entry]) -> PartitionStats | None:
    return None if ours.size_levels is None else stats_of_sizes(ours.size_levels, [one.size_bytes for one in entries])


def _stats(entries: Sequence[Entry], state: PartitionStats | None, rows: int) -> FileStats:
    full = 0 if state is None else state.files - state.small_files
    return FileStats(
        num_files=len(entries),
        bytes=sum(entry.size_bytes for entry in entries),
        rows=rows,
        levels=None if state is None else (*state.counts[:SMALL_LEVELS], full),
        files=tuple(entry.path for entry in entries),
    )
