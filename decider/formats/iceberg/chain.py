"""The chain of main: which snapshots follow a position, and which positions its snapshots are.

A position is on the chain if its snapshot is, or if its snapshot is the parent of the oldest one that is retained: then
nothing between them is missing. A rollback, a replaced table or an expired snapshot leaves it outside.
"""

from decider.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg import chain_versions, digest_snapshot, position_digest
from shared.table import Position


def positions(head: TableHead) -> dict[int, Position]:
    """Return the position of each retained snapshot of main, oldest first."""
    chain = list(head.chain())[::-1]
    versions = chain_versions(one.timestamp_ms for one in chain)
    return {one.id: position_of(head, one.id, version) for one, version in zip(chain, versions, strict=True)}


def position_of(head: TableHead, snapshot: int | None, version: int) -> Position:
    """Return the position at a snapshot of a table, with this version."""
    return Position(version, position_digest(head.metadata.table_uuid, snapshot))


def newest_position(head: TableHead) -> Position:
    """Return the position of the metadata: of main's snapshot, or of what was changed since without a snapshot."""
    if head.current is None:
        return position_of(head, None, head.updated_ms)
    at = positions(head).get(head.current)
    if at is None:
        return position_of(head, head.current, head.updated_ms)
    if head.updated_ms == head.snapshots[head.current].timestamp_ms:
        return at
    return position_of(head, head.current, max(at.version + 1, head.updated_ms))


def snapshots_after(head: TableHead, position: Position) -> list[SnapshotRecord] | None:
    """Return the snapshots of main after a position, oldest first; None if the position is not on the chain.

    A position without a digest is the one before the first snapshot.
    """
    try:
        known = digest_snapshot(position.digest, head.metadata.table_uuid) if position.digest else None
    except ValueError:
        return None
    later: list[SnapshotRecord] = []
    parent = head.current
    for snapshot in head.chain():
        if snapshot.id == known:
            return later[::-1]
        later.append(snapshot)
        parent = snapshot.parent
    return later[::-1] if parent == known else None
