"""Reads the manifests of a snapshot: those that it wrote, for what changed, or all of them, for what is live."""

import asyncio
from collections.abc import Sequence

from decider.formats.iceberg.source import MetadataSource
from shared.formats.iceberg.manifests import Entry, EntryStatus, Manifest, decode_manifest, decode_manifest_list
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead

READ_AHEAD = 16
"""Manifests requested at once: enough to hide the latency of a store."""


class EntryReader:
    """Reads the entries of one table's snapshots; raises what its source raises, and Corrupt for damaged files."""

    def __init__(self, source: MetadataSource) -> None:
        self._source = source

    async def written(self, head: TableHead, snapshot: SnapshotRecord) -> Sequence[Entry]:
        """Return the entries of the manifests that a snapshot wrote, kept ones among them."""
        manifests = await self.manifests(snapshot)
        return await self._entries(head, [one for one in manifests if one.added_by in (snapshot.id, None)])

    async def live(self, head: TableHead, snapshot: SnapshotRecord) -> Sequence[Entry]:
        """Return the entries of all files that are live in a snapshot, delete files among them."""
        entries = await self._entries(head, await self.manifests(snapshot))
        return [entry for entry in entries if entry.status is not EntryStatus.DELETED]

    async def manifests(self, snapshot: SnapshotRecord) -> Sequence[Manifest]:
        """Return the manifests that the list of a snapshot names."""
        body = await self._source.read(snapshot.manifest_list)
        return await asyncio.to_thread(decode_manifest_list, body, snapshot.manifest_list)

    async def _entries(self, head: TableHead, manifests: Sequence[Manifest]) -> Sequence[Entry]:
        found: list[Entry] = []
        for start in range(0, len(manifests), READ_AHEAD):
            some = manifests[start : start + READ_AHEAD]
            bodies = await asyncio.gather(*(self._source.read(one.path) for one in some))
            for body, manifest in zip(bodies, some, strict=True):
                found += await asyncio.to_thread(decode_manifest, body, manifest, head.specs)
        return found
