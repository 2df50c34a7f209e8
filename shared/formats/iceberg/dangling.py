"""Delete files that apply to no data file: rewrites and deletions of other writers leave them, and readers open them.

A delete file applies to the data file that it names, or to those of its partition that are not younger (by value: that
are older). A rollback may bring such files back, so what is found is true of one snapshot only.
"""

from collections.abc import Collection, Generator, Iterable, Sequence

from shared.errors import Corrupt
from shared.formats.iceberg.deletes import can_name_rows
from shared.formats.iceberg.manifests import Entry, EntryStatus, Manifest, decode_manifest, decode_manifest_list
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.orphans import file_key
from shared.formats.iceberg.walk import Bodies, Read, chunks
from shared.table import DeleteKind, PartitionKey

Entries = Generator[Read, Bodies, list[Entry]]


class DanglingSearch:
    """A search that can be repeated on newer metadata of one table: a manifest never changes, so each is read once.

    What was live in any of them counts as live, and delete files that are new count as needed.
    """

    def __init__(self) -> None:
        self._candidates: frozenset[str] | None = None
        self._named: frozenset[str] = frozenset()
        self._read: set[str] = set()
        self._live: set[str] = set()
        self._oldest: dict[PartitionKey, int] = {}
        self._oldest_nameable: dict[PartitionKey, int] = {}

    def find(self, head: TableHead) -> Generator[Read, Bodies, tuple[Entry, ...]]:
        """Return the delete files of main's newest snapshot that apply to no data file, in the order of their paths.

        Data files are read only if there are delete files. Raises Corrupt for manifests that cannot be read.
        """
        if head.current is None:
            return ()
        path = head.snapshots[head.current].manifest_list
        (body,) = yield Read((path,))
        manifests = decode_manifest_list(_present(body, path), path)
        deletes = yield from _live_entries(head, [one for one in manifests if one.has_deletes])
        if self._candidates is None:
            self._candidates = frozenset(one.delete_id for one in deletes)
            self._named = frozenset(file_key(one.referenced) for one in deletes if one.referenced)
        candidates = [one for one in deletes if one.delete_id in self._candidates]
        if not candidates:
            return ()
        unread = [one for one in manifests if not one.has_deletes and one.path not in self._read]
        ours = {one.sequence_number for one in head.snapshots.values() if one.is_of_ours}
        for some in chunks(unread):
            self._note((yield from _live_entries(head, some)), ours)
            self._read.update(one.path for one in some)
        # Without a sequence number, nothing is known of what it applies to.
        found = (one for one in candidates if one.sequence and not self._is_needed(one, head.unpartitioned))
        return tuple(sorted(found, key=lambda one: one.delete_id))

    def _note(self, files: Iterable[Entry], ours: Collection[int]) -> None:
        for one in files:
            where = one.partition
            self._oldest[where] = min(self._oldest.get(where, one.sequence), one.sequence)
            # An output of ours has a path that no older file of positions can name.
            since = max(one.sequence, one.file_sequence) if one.file_sequence in ours else one.sequence
            self._oldest_nameable[where] = min(self._oldest_nameable.get(where, since), since)
            if self._named and (key := file_key(one.path)) in self._named:
                self._live.add(key)

    def _is_needed(self, delete: Entry, unpartitioned: Collection[int]) -> bool:
        if delete.kind is not DeleteKind.EQUALITY:
            oldest = self._oldest_nameable.get(delete.partition)
            is_shared = not delete.referenced and oldest is not None and can_name_rows(delete.sequence, oldest)
            return is_shared or file_key(delete.referenced) in self._live
        if delete.spec in unpartitioned:
            return min(self._oldest.values(), default=delete.sequence) < delete.sequence
        return self._oldest.get(delete.partition, delete.sequence) < delete.sequence


def _live_entries(head: TableHead, manifests: Sequence[Manifest]) -> Entries:
    found: list[Entry] = []
    for some in chunks(manifests):
        bodies = yield Read(tuple(one.path for one in some))
        for manifest, body in zip(some, bodies, strict=True):
            entries = decode_manifest(_present(body, manifest.path), manifest, head.specs)
            found += (one for one in entries if one.status is not EntryStatus.DELETED)
    return found


def _present(body: bytes | None, path: str) -> bytes:
    if body is None:
        raise Corrupt(f"{path} is missing, and the newest snapshot needs it")
    return body
