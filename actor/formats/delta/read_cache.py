"""Cache of what was read of a table, brought up to date by the commits since: a job rarely lists a snapshot.

Delta rebuilds the state of a table by a Spark job after every new version, for a partition of ten files as for a
million. Commits are small and list exactly what was added and removed, so reading those since gives the same
files. Where they might not (other metadata, a path with several spellings, a removal of what was never seen, a commit
undone since), the snapshot is listed again.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from actor.formats.delta.actions import LoggedFile, decode_add, encode, vector_id
from actor.formats.delta.live_files import LiveGroup, is_plain
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.snapshot_cache import MAX_COMMITS_REPLAYED
from shared.layout.planner import FileGroup
from shared.table import FileKey, PartitionKey

MAX_CACHED_FILES = 100_000
"""Files whose JSON is kept over all tables, about 1 KB each; a read evicts the least recent one.

A partition or table counts as one file more, so that empty ones are evicted, too.
"""


@dataclass(frozen=True, slots=True)
class CachedRead:
    """The live files of one partition, or of the whole table (`partition` None), at one version under one shape.

    `digest` is that version's commit's: None matches no commit.
    """

    partition: PartitionKey | None
    version: int
    digest: str | None
    shape: TableShape
    files: Mapping[FileKey, LoggedFile]

    def of(self, partition: PartitionKey) -> tuple[LoggedFile, ...]:
        """Return the files of a partition that is covered."""
        return tuple(
            logged for logged in self.files.values() if self.partition is not None or logged.file.partition == partition
        )

    @property
    def weight(self) -> int:
        """Its weight in the bound, in files."""
        return 1 + len(self.files)


class ReadCache:
    """Results of the latest reads; bounded, and safe to use from several threads."""

    def __init__(self, max_files: int = MAX_CACHED_FILES) -> None:
        self._max_files = max_files
        self._lock = threading.Lock()
        self._reads: OrderedDict[tuple[str, PartitionKey | None], CachedRead] = OrderedDict()
        self._weight = 0
        # Of each table the newest, as long as anything is known under it: a wide schema outweighs many partitions.
        self._shapes: WeakValueDictionary[str, TableShape] = WeakValueDictionary()

    def put(self, location: str, read: CachedRead) -> None:
        """Store a read, replacing the previous one of that partition or table."""
        with self._lock:
            before = self._reads.pop((location, read.partition), None)
            self._weight += read.weight - (before.weight if before else 0)
            self._reads[location, read.partition] = replace(read, shape=self._shared(location, read.shape))
            while len(self._reads) > 1 and self._weight > self._max_files:
                _, oldest = self._reads.popitem(last=False)
                self._weight -= oldest.weight

    def _shared(self, location: str, shape: TableShape) -> TableShape:
        newest = self._shapes.get(location)
        if newest == shape:
            return newest
        self._shapes[location] = shape
        return shape

    def get(self, location: str, partition: PartitionKey | None) -> CachedRead | None:
        """Return the latest read of a partition, or of the whole table (None); None if there is none."""
        with self._lock:
            known = [self._reads.get((location, key)) for key in (None, partition)]
        return max((seen for seen in known if seen is not None), key=lambda seen: seen.version, default=None)

    def live_group(self, location: str, group: FileGroup, shape: TableShape) -> LiveGroup | None:
        """Return the group as it was seen live under this shape; None if it was not, or not all of it."""
        seen = self.get(location, group.partition)
        if seen is None or seen.shape != shape or any(file.key not in seen.files for file in group.files):
            return None
        return LiveGroup(group, tuple(seen.files[file.key] for file in group.files), seen.version, seen.digest)


def caught_up(log: TableLog, cached: CachedRead, shape: TableShape, *, version: int) -> CachedRead | None:
    """Return the same partition or table at a later version, None if the commits in between are not conclusive."""
    if shape != cached.shape or not 0 <= version - cached.version <= MAX_COMMITS_REPLAYED:
        return None
    if version == cached.version:
        return cached if log.has_commit(version, cached.digest) else None
    replayed = _replayed(log, cached, shape, version)
    # After the commits were read: if one of them is undone later, the next check of the last digest notices.
    if replayed is None or not log.has_commit(cached.version, cached.digest):
        return None
    files, digest = replayed
    return CachedRead(cached.partition, version, digest, shape, files)


def _replayed(
    log: TableLog, cached: CachedRead, shape: TableShape, version: int
) -> tuple[dict[FileKey, LoggedFile], str] | None:
    """Return the live files after the commits since, and the digest of the last."""
    columns = shape.metadata.partition_columns
    files, digest = dict(cached.files), ""
    for number in range(cached.version + 1, version + 1):
        found = log.commit_of_snapshot(number)
        if found is None:
            return None
        actions, digest = found.actions, found.digest
        gone = [action["remove"] for action in actions if action.get("remove") is not None]
        added = [action["add"] for action in actions if action.get("add") is not None]
        if not all(is_plain(body["path"]) for body in (*gone, *added)):
            return None
        for body in gone:
            if files.pop(_key(body), None) is None and cached.partition is None:
                return None
        for body in added:
            file = decode_add(body, columns)
            if cached.partition in (None, file.partition):
                # As the snapshot spells it: whether the commit changed data is no property of a live file.
                files[file.key] = LoggedFile(file, encode({**body, "dataChange": False}))
    return files, digest


def _key(body: Mapping[str, object]) -> FileKey:
    vector = body.get("deletionVector")
    return FileKey(str(body["path"]), vector_id(vector if isinstance(vector, Mapping) else None))
