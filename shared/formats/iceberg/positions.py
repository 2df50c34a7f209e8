"""Positions: a moment of a table's main branch, and which snapshots follow it.

The version of a position is the time of its snapshot in milliseconds, raised where needed so that it grows along the
chain of parents. Sequence numbers would be no versions: tables of format version 1 have none, and neither a rollback
nor a change of properties moves them. A position is on the chain if its snapshot is, or if its snapshot is the parent
of the oldest one that is retained: then nothing between them is missing. A rollback, a replaced table or an expired
snapshot leaves it outside.
"""

from collections.abc import Iterable

from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.table import Position


def chain_versions(timestamps_ms: Iterable[int]) -> list[int]:
    """Return the version of each snapshot of a chain, oldest first: its time, or one more than its parent's version.

    Clocks of writers differ, and Iceberg lets a snapshot be up to a minute older than its parent.
    """
    versions: list[int] = []
    for timestamp_ms in timestamps_ms:
        versions.append(max(timestamp_ms, versions[-1] + 1) if versions else timestamp_ms)
    return versions


def position_digest(table_uuid: str, snapshot_id: int | None) -> str:
    """Return the digest of a position: the snapshot of which table it is, None for a table without one."""
    return f"{table_uuid}.{'' if snapshot_id is None else snapshot_id}"


def digest_snapshot(digest: str, table_uuid: str) -> int | None:
    """Return the snapshot that a digest of this table names, None for a table without one.

    Raises ValueError for the digest of another table, and for one that is none.
    """
    prefix, dot, snapshot = digest.partition(".")
    if not dot or prefix != table_uuid:
        raise ValueError(f"{digest!r} is no position of the table {table_uuid}")
    return int(snapshot) if snapshot else None


def positions(head: TableHead) -> dict[int, Position]:
    """Return the position of each retained snapshot of main, oldest first."""
    return {snapshot: position_of(head, snapshot, version) for snapshot, version in main_versions(head).items()}


def main_versions(head: TableHead) -> dict[int, int]:
    """Return the version of each retained snapshot of main, oldest first."""
    chain = list(head.chain())[::-1]
    return dict(zip((one.id for one in chain), chain_versions(one.timestamp_ms for one in chain), strict=True))


def position_of(head: TableHead, snapshot: int | None, version: int) -> Position:
    """Return the position at a snapshot of a table, with this version."""
    return Position(version, position_digest(head.metadata.table_uuid, snapshot))


def newest_position(head: TableHead) -> Position:
    """Return the position of the metadata: of main's snapshot, or of what was changed since without a snapshot."""
    if head.current is None:
        return position_of(head, None, head.updated_ms)
    version = main_versions(head).get(head.current)
    if version is None:
        return position_of(head, head.current, head.updated_ms)
    was_changed_since = head.updated_ms != head.snapshots[head.current].timestamp_ms
    return position_of(head, head.current, max(version + 1, head.updated_ms) if was_changed_since else version)


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
