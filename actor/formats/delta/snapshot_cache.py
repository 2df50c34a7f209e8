"""Cache of snapshots, brought up to date by the commits since: a job rarely makes Delta read a table's log.

Delta learns a table's protocol and metadata by a Spark job over its log, for each new version, unless the commit has a
checksum file (`.crc`), which few writers but Spark leave. So an actor caches the last snapshot of a table with its
checksum, and carries the checksum over the commits since, as Delta does after a commit of its own. A commit that is not
conclusive, or a known commit that was undone, makes Delta read the log. A checksum made here is never written.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from actor.formats.delta.commit_file import NewCommits
from actor.formats.delta.delta_scala import DeltaScala

MAX_COMMITS_REPLAYED = 50
"""Commits read one by one to learn what changed; beyond that, one Spark job on the snapshot is cheaper."""

MAX_VERSIONS_CARRIED = 200
"""Versions that follow from one reading of the log: then Delta reads it again, and finds newer checkpoints.

A segment keeps the names of all commits after its checkpoint, which log retention may remove in the end.
"""

RECENT_S = 60.0
"""Age of a look in seconds up to which the next commit is asked for by its name.

Log retention never removes commits that are so young. Of older ones the next may be gone already, and the known one not
yet, as some engines delete in no order: then a listing shows what there is.
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
    """A snapshot of the JVM with a checksum.

    `digest`: its commit's; `read_version`: where Delta read the log; `shape`: its `TableShape`.
    """

    log: OpenedLog
    snapshot: Any
    version: int
    digest: str
    read_version: int
    shape: Any


class SnapshotCache:
    """The last snapshot of each table; bounded, and safe to use from several threads."""

    def __init__(self, max_tables: int = MAX_CACHED_TABLES, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._max_tables = max_tables
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, CachedSnapshot] = OrderedDict()
        self._seen_s: dict[str, float] = {}

    def get(self, location: str) -> CachedSnapshot | None:
        """Return the last snapshot of a table, None if none is cached."""
        with self._lock:
            return self._cached.get(location)

    def is_recent(self, location: str) -> bool:
        """Return whether the snapshot was the newest a moment ago."""
        with self._lock:
            return self._monotonic() - self._seen_s.get(location, -RECENT_S) < RECENT_S

    def put(self, location: str, cached: CachedSnapshot) -> None:
        """Cache a snapshot instead of the one before, and evict the table whose snapshot is the oldest."""
        with self._lock:
            self._cached[location] = cached
            self._seen_s[location] = self._monotonic()
            self._cached.move_to_end(location)
            while len(self._cached) > self._max_tables:
                oldest, _ = self._cached.popitem(last=False)
                self._seen_s.pop(oldest)

    @contextmanager
    def forgotten_on_error(self, location: str) -> Iterator[None]:
        """Make Delta read this table's log the next time, if what is done meanwhile fails."""
        try:
            yield
        except BaseException:
            with self._lock:
                self._cached.pop(location, None)
                self._seen_s.pop(location, None)
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
    """Reader of single commits; see `TableLog`."""

    def commits_since(self, cached: CachedSnapshot, *, at_most: int) -> NewCommits:
        """Return the commits after a snapshot, not known if there are more than this."""


def newest(cached: CachedSnapshot, log: CommitReader, scala: DeltaScala) -> CachedSnapshot | None:
    """Return the newest snapshot as it follows from a cached one, None if Delta has to read the log."""
    found = log.commits_since(cached, at_most=MAX_COMMITS_REPLAYED)
    version = cached.version + len(found.commits)
    if not found.is_known or version - cached.read_version > MAX_VERSIONS_CARRIED:
        return None
    if not found.commits:
        return cached
    change = FileChange()
    for commit in found.commits:
        of_commit = file_change(commit.actions)
        if of_commit is None:
            return None
        change += of_commit
    snapshot = scala.next_snapshot.carried(
        cached.log.delta_log, cached.snapshot, found.described, change.files, change.bytes
    )
    # A commit that changes the shape is not conclusive.
    return replace(cached, snapshot=snapshot, version=version, digest=found.commits[-1].digest)


def with_checksum(snapshot: Any, delta_log: Any, scala: DeltaScala) -> Any:
    """Return the snapshot with a checksum, which costs a Spark job over the table's state if it has none."""
    if snapshot.checksumOpt().isDefined():
        return snapshot
    checksum = scala.some(snapshot.computeChecksum())
    return delta_log.createSnapshot(snapshot.logSegment(), scala.none, scala.none, checksum)
