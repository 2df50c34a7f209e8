"""A snapshot of main as a commit: the files that it added and removed, by the entries of the manifests it wrote.

Operations carry Delta's names where they mean the same: `overwrite` is what Iceberg's writers call a MERGE or UPDATE.
"""

from collections.abc import Iterable, Mapping

from shared.formats.iceberg.deletes import NO_DELETES, AppliedDeletes
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY, REPLACE, TAGS_KEY
from shared.formats.iceberg.tags import decode_tags, file_tags
from shared.jobs.payload import EXPIRE
from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Commit, DataFile, DeleteFile, Position, RemovedFile

_REMOVALS = frozenset({"delete", "overwrite"})
"""Operations of a snapshot that deletes rows by their age: whole files, or some that it writes again."""

OPERATIONS: Mapping[str, str] = {"append": "WRITE", "overwrite": "MERGE", "delete": "DELETE", REPLACE: "OPTIMIZE"}


def own_metadata(snapshot: SnapshotRecord) -> CommitMetadata | None:
    """Return what we wrote into the summary of a snapshot that changes no data, None if it is not ours."""
    return commit_metadata.decode(snapshot.summary[COMMIT_KEY]) if snapshot.is_of_ours else None


def own_removal(snapshot: SnapshotRecord) -> CommitMetadata | None:
    """Return what we wrote into the summary of a snapshot that deletes rows by their age, None if it is not ours."""
    ours = commit_metadata.decode(snapshot.summary.get(COMMIT_KEY)) if snapshot.operation in _REMOVALS else None
    return ours if ours is not None and ours.mode == EXPIRE else None


class FileHistory:
    """When, and with which tags, the retained snapshots of a table added its files."""

    def __init__(self, head: TableHead) -> None:
        self._by_id = head.snapshots
        self._by_sequence = {one.sequence_number: one for one in head.snapshots.values() if one.sequence_number}
        self._tags: dict[int, Mapping[str, Mapping[str, str]]] = {}

    def data_file(self, entry: Entry, deletes: AppliedDeletes = NO_DELETES) -> DataFile:
        """Return a live file with the deletes that apply; where its snapshot expired, without time and most tags."""
        by = self._by_id.get(entry.snapshot or 0)
        return DataFile(
            entry.path,
            entry.size_bytes,
            entry.partition,
            dv_id=deletes.id,
            rows=entry.rows,
            deleted_rows=deletes.rows,
            modified_ms=by.timestamp_ms if by is not None else 0,
            tags=self._tags_of(by, entry.path),
        )

    def removed_file(self, entry: Entry) -> RemovedFile:
        """Return a removed file; where the snapshot that added it expired, only the tag in its name is known."""
        by = self._by_sequence.get(entry.file_sequence)
        tags = self._tags_of(by, entry.path)
        return RemovedFile(
            entry.path, None, entry.size_bytes, entry.partition, tags=None if by is None and not tags else tags
        )

    def _tags_of(self, by: SnapshotRecord | None, path: str) -> Mapping[str, str]:
        if by is None:
            return file_tags({}, path)
        if by.id not in self._tags:
            self._tags[by.id] = decode_tags(by.summary.get(TAGS_KEY))
        return file_tags(self._tags[by.id], path)


def snapshot_commit(snapshot: SnapshotRecord, at: Position, entries: Iterable[Entry], history: FileHistory) -> Commit:
    """Return a snapshot as a commit; `entries` come from the manifests that it wrote."""
    added: list[DataFile] = []
    removed: list[RemovedFile] = []
    added_deletes: list[DeleteFile] = []
    removed_deletes: list[DeleteFile] = []
    for entry in entries:
        if entry.snapshot not in (snapshot.id, None):
            continue  # Kept from before.
        match entry.status, entry.kind:
            case EntryStatus.ADDED, None:
                added.append(history.data_file(entry))
            case EntryStatus.DELETED, None:
                removed.append(history.removed_file(entry))
            case EntryStatus.ADDED, _:
                added_deletes.append(delete_file(entry))
            case EntryStatus.DELETED, _:
                removed_deletes.append(delete_file(entry))
    ours, removal = own_metadata(snapshot), own_removal(snapshot)
    mark = ours or removal
    return Commit(
        version=at.version,
        timestamp_ms=snapshot.timestamp_ms,
        operation=OPERATIONS.get(_operation(snapshot, is_removal=removal is not None), snapshot.operation),
        added=tuple(added),
        removed=tuple(removed),
        data_change=not snapshot.changes_no_row,
        origin=None if mark is None else mark.origin,
        digest=at.digest,
        added_deletes=tuple(added_deletes),
        removed_deletes=tuple(removed_deletes),
        deduplicated_version=None if ours is None else ours.deduplicated_version,
        superseded_files=int(snapshot.parent is not None) + len(removed_deletes),
        cells=None if ours is None else ours.cell_report,
    )


def _operation(snapshot: SnapshotRecord, *, is_removal: bool) -> str:
    if snapshot.changes_no_row:
        return REPLACE
    return "delete" if is_removal else snapshot.operation


def delete_file(entry: Entry) -> DeleteFile:
    """Return the delete file of an entry that is one; raises ValueError for one that is none."""
    if entry.kind is None:
        raise ValueError(f"{entry.path} is no delete file")
    return DeleteFile(entry.path, entry.partition, entry.kind, entry.rows)
