"""Reads the manifests of snapshots: those that they wrote, for what changed, or all of them, for what is live.

A manifest stays in the lists of later snapshots until it is rewritten, so the newest list has what most appends wrote.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence

from decider.formats.iceberg.source import MetadataSource
from shared.formats.iceberg.manifests import (
    Entry,
    EntryStatus,
    Manifest,
    decode_manifest,
    decode_manifest_list,
)
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.whole_numbers import whole_number

READ_AHEAD = 16
"""Manifests requested at once: enough to hide the latency of a store."""

_ADDED = "added-data-files"
_NOT_OF_APPENDS = frozenset({"deleted-data-files", "added-delete-files", "removed-delete-files"})


class EntryReader:
    """Reads the entries of one table's snapshots; raises what its source raises, and Corrupt for damaged files."""

    def __init__(self, source: MetadataSource) -> None:
        self._source = source

    async def written(self, head: TableHead, snapshot: SnapshotRecord) -> Sequence[Entry]:
        """Return the entries of the manifests that a snapshot wrote, kept ones among them."""
        return await self._entries(head, await self._written(snapshot))

    async def written_by_each(
        self, head: TableHead, snapshots: Sequence[SnapshotRecord]
    ) -> AsyncGenerator[tuple[SnapshotRecord, Sequence[Entry]], None]:
        """Yield the same for snapshots of one chain, oldest first, with one list where no manifest vanished."""
        listed = await self.manifests(snapshots[-1]) if snapshots else ()
        by_writer: dict[int | None, list[Manifest]] = defaultdict(list)
        for manifest in listed:
            by_writer[manifest.added_by].append(manifest)
        for start in range(0, len(snapshots), READ_AHEAD):
            some = snapshots[start : start + READ_AHEAD]
            of_each: list[Sequence[Manifest]] = []
            for one in some:
                if one is snapshots[-1]:
                    of_each.append(_written_by(one, listed))
                else:
                    still_listed = by_writer[one.id]
                    of_each.append(still_listed if _are_all(one, still_listed) else await self._written(one))
            entries = iter(await self._entries_of_each(head, [one for found in of_each for one in found]))
            for snapshot, manifests in zip(some, of_each, strict=True):
                yield snapshot, [entry for _ in manifests for entry in next(entries)]

    async def live(
        self, head: TableHead, snapshot: SnapshotRecord, *, only_deletes: bool = False, column: int | None = None
    ) -> Sequence[Entry]:
        """Return the entries of all files that are live in a snapshot, delete files among them; or of these alone.

        column: the id of a column whose bounds the entries shall have.
        """
        manifests = [one for one in await self.manifests(snapshot) if one.has_deletes or not only_deletes]
        entries = await self._entries(head, manifests, column)
        return [entry for entry in entries if entry.status is not EntryStatus.DELETED]

    async def manifests(self, snapshot: SnapshotRecord) -> Sequence[Manifest]:
        """Return the manifests that the list of a snapshot names."""
        body = await self._source.read(snapshot.manifest_list)
        return await asyncio.to_thread(decode_manifest_list, body, snapshot.manifest_list)

    async def _written(self, snapshot: SnapshotRecord) -> Sequence[Manifest]:
        return _written_by(snapshot, await self.manifests(snapshot))

    async def _entries(
        self, head: TableHead, manifests: Sequence[Manifest], column: int | None = None
    ) -> Sequence[Entry]:
        return [entry for found in await self._entries_of_each(head, manifests, column) for entry in found]

    async def _entries_of_each(
        self, head: TableHead, manifests: Sequence[Manifest], column: int | None = None
    ) -> Sequence[Sequence[Entry]]:
        found: list[Sequence[Entry]] = []
        for start in range(0, len(manifests), READ_AHEAD):
            some = manifests[start : start + READ_AHEAD]
            bodies = await self._source.read_each([one.path for one in some])
            found += await asyncio.to_thread(_decoded, head, some, bodies, column)
        return found


def _decoded(
    head: TableHead, manifests: Sequence[Manifest], bodies: Sequence[bytes], column: int | None
) -> list[Sequence[Entry]]:
    pairs = zip(bodies, manifests, strict=True)
    return [decode_manifest(body, manifest, head.specs, column) for body, manifest in pairs]


def _written_by(snapshot: SnapshotRecord, own: Sequence[Manifest]) -> Sequence[Manifest]:
    """Return the manifests of a snapshot's own list that it wrote."""
    return [one for one in own if one.added_by in (snapshot.id, None)]


def _are_all(snapshot: SnapshotRecord, found: Sequence[Manifest]) -> bool:
    """Return whether surely all manifests that a snapshot wrote are these, which a later list still has.

    They are those of an append if they add as many files as it says. Other snapshots write manifests of what they
    removed, which the next ones leave out.
    """
    named = whole_number(snapshot.summary.get(_ADDED, ""))
    if snapshot.operation != "append" or named is None or not _NOT_OF_APPENDS.isdisjoint(snapshot.summary):
        return False
    is_known = all(one.added_files is not None and not one.has_deletes for one in found)
    return is_known and sum(one.added_files or 0 for one in found) == named
