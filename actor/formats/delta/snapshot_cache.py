"""Cache of snapshots, brought up to date by the commits since: a job rarely makes Delta read a table's log.

Delta learns a table's protocol and metadata by a Spark job over its log, for each new version, unless the commit has a
checksum file (`.crc`), which few writers but Spark leave. So an actor caches the last snapshot of a table with its
checksum, and carries the checksum over the commits since, as Delta does after a commit of its own. A commit that is not
conclusive, or a known commit that was undone, makes Delta read the log. A checksum made here is never written.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from actor.formats.delta.commit_file import CommitFile
from actor.jvm.scala import Scala

MAX_COMMITS_REPLAYED = 50
"""Commits read one by one to learn what changed; beyond that, one Spark job on the snapshot is cheaper."""

MAX_VERSIONS_CARRIED = 200
"""Versions that follow from one reading of the log: then Delta reads it again, and finds newer checkpoints.

A segment keeps the names of all commits after its checkpoint, which log retention may remove in the end.
"""

MAX_CACHED_TABLES = 500
"""Tables whose last snapshot is cached, some 100 KB each in the JVM: metadata, and the names of the log's files."""

_WITHOUT_FILES = frozenset({"commitInfo", "txn", "cdc"})
"""Actions that change neither live files nor what a snapshot's protocol and metadata are."""


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log as Delta has opened it, and the table's folder as Hadoop spells it."""

    delta_log: Any
    root: str


@dataclass(frozen=True, slots=True)
class CachedSnapshot:
    """A snapshot of the JVM with a checksum. `digest`: that of its commit; `read_version`: where Delta read the log."""

    log: OpenedLog
    snapshot: Any
    version: int
    digest: str
    read_version: int


class SnapshotCache:
    """The last snapshot of each table; bounded, and safe to use from several threads."""

    def __init__(self, max_tables: int = MAX_CACHED_TABLES) -> None:
        self._max_tables = max_tables
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, CachedSnapshot] = OrderedDict()

    def get(self, location: str) -> CachedSnapshot | None:
        """Return the last snapshot of a table, None if none is cached."""
        with self._lock:
            return self._cached.get(location)

    def put(self, location: str, cached: CachedSnapshot) -> None:
        """Cache a snapshot instead of the one before, and evict the table whose snapshot is the oldest."""
        with self._lock:
            self._cached[location] = cached
            self._cached.move_to_end(location)
            while len(self._cached) > self._max_tables:
                self._cached.popitem(last=False)

    @contextmanager
    def forgotten_on_error(self, location: str) -> Iterator[None]:
        """Make Delta read this table's log the next time, if what is done meanwhile fails."""
        try:
            yield
        except BaseException:
            with self._lock:
                self._cached.pop(location, None)
            raise


@dataclass(frozen=True, slots=True)
class FileChange:
    """By how many live files, and by how many bytes of them, commits change a table."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "FileChange") -> "FileChange":
        return FileChange(self.files + other.files, self.bytes + other.bytes)


def file_change(actions: Iterable[Mapping[str, Any]]) -> FileChange | None:
    """Return how a commit changes the live files; None if a size is missing, or more than files changes."""
    change, removed, is_added_again = FileChange(), 0, False
    for action in actions:
        ((name, body),) = action.items()
        if name == "add":
            change += FileChange(1, body["size"])
            is_added_again |= body["dataChange"] is False
        elif name == "remove":
            if body.get("extendedFileMetadata") is not True or body.get("size") is None:
                return None
            change += FileChange(-1, -body["size"])
            removed += 1
        elif name not in _WITHOUT_FILES:
            return None
    # New statistics or tags of live files are added without a removal: the sum would count those files twice.
    return None if is_added_again and not removed else change


class CommitReader(Protocol):
    """What is read of single commits; see `TableLog`."""

    def commit_of_snapshot(self, version: int) -> CommitFile | None:
        """Return one commit, None if it is not there."""

    def has_commit(self, version: int, digest: str | None) -> bool:
        """Return whether the commit still has this digest."""


def newest(cached: CachedSnapshot, commits: CommitReader, scala: Scala) -> CachedSnapshot | None:
    """Return the newest snapshot as it follows from a cached one, None if Delta has to read the log."""
    delta_log = cached.log.delta_log
    segment = scala.next_snapshot.segment(delta_log, cached.snapshot)
    version = int(segment.version())
    if version - cached.version > MAX_COMMITS_REPLAYED or version - cached.read_version > MAX_VERSIONS_CARRIED:
        return None
    if version == cached.version:
        return cached if commits.has_commit(version, cached.digest) else None
    change, digest = FileChange(), ""
    for number in range(cached.version + 1, version + 1):
        found = commits.commit_of_snapshot(number)
        of_commit = None if found is None else file_change(found.actions)
        if found is None or of_commit is None:
            return None
        change, digest = change + of_commit, found.digest
    # After the commits were read: if one of them is undone later, the next check of the last digest notices.
    if not commits.has_commit(cached.version, cached.digest):
        return None
    snapshot = scala.next_snapshot.carried(delta_log, segment, cached.snapshot, change.files, change.bytes)
    return CachedSnapshot(cached.log, snapshot, version, digest, cached.read_version)


def with_checksum(snapshot: Any, delta_log: Any, scala: Scala) -> Any:
    """Return the snapshot with a checksum, which costs a Spark job over the table's state if it has none."""
    if snapshot.checksumOpt().isDefined():
        return snapshot
    checksum = scala.some(snapshot.computeChecksum())
    return delta_log.createSnapshot(snapshot.logSegment(), scala.none, scala.none, checksum)
