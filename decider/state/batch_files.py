"""Files that a batch of commits has added or removed: none of them counts twice, whatever the commits repeat.

Delta lets a commit add a file that is live, and remove one that is not; replaying the log, neither changes anything.
The rolling state keeps no paths: files of this batch are known exactly, files of earlier ones as far as the process
remembers them. What may repeat an action that it does not remember is noted, and leads to a check.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from shared.paths.data_paths import PathKey, path_key
from shared.table import DataFile, RemovedFile, TableId


class PriorState(Enum):
    """State of a file before the batch, if it was not live then."""

    UNKNOWN = "unknown"
    REMOVED = "removed"


@dataclass(slots=True)
class BatchFiles:
    """The latest action of a batch of commits on each file.

    is_live: whether a file is live, or not any more, by the commits before the batch; None: not known. `repeated`: what
    a commit repeats of one before the batch, so that the state cannot be trusted; empty if nothing is known to be.
    since_ms: commit time of the state before the batch. `is_unsure`: a file was removed of which nothing is known, or
    one was added that is older than that state: a new file is written before its commit, but not long before it.
    """

    is_live: Callable[[PathKey], bool | None] = lambda _: None
    since_ms: int = 0
    repeated: str = ""
    is_unsure: bool = False
    _files: dict[PathKey, DataFile | None] = field(default_factory=dict)

    def add(self, file: DataFile) -> DataFile | None:
        """Apply an `add`; return the file of this batch that it replaces, None if there is none."""
        key = path_key(file)
        if key not in self._files:
            if self.is_live(key):
                self.repeated = f"{file.path} was added again, although it is live"
            self.is_unsure = self.is_unsure or 0 < file.modified_ms < self.since_ms
        before = self._files.get(key)
        self._files[key] = file
        return before

    def remove(self, removed: RemovedFile) -> DataFile | PriorState:
        """Apply a `remove`; return the file if this batch added it, else what is known of it."""
        key = path_key(removed)
        if key not in self._files:
            is_live = self.is_live(key)
            if is_live is False:
                self.repeated = f"{removed.path} was removed again, although it is not live"
            self.is_unsure = self.is_unsure or is_live is None
        before = self._files.get(key, PriorState.UNKNOWN)
        self._files[key] = None
        return PriorState.REMOVED if before is None else before

    def latest(self) -> Iterator[tuple[PathKey, bool]]:
        """Yield each file of the batch, and whether the latest action on it was an `add`."""
        for key, file in self._files.items():
            yield key, file is not None


MAX_FILES = 100_000
"""Files that one process remembers, some 20 MB: the last minutes of a busy lake, or days of a quiet one."""


@dataclass(slots=True)
class RecentFiles:
    """Remembers whether the latest known action on a file was an `add`, over all tables; keys are kept as hashes.

    Honest writers never repeat an action on a file, so a repetition leads to a rebuild.

    Half of the bound is forgotten at a time, the older half: to forget single files costs more than to remember them.
    """

    max_files: int = MAX_FILES
    _newer: dict[int, bool] = field(default_factory=dict)
    _older: dict[int, bool] = field(default_factory=dict)

    def is_live(self, table: TableId, key: PathKey) -> bool | None:
        """Return whether the file was added (True) or removed (False) last; None: not known."""
        known = hash((table, key))
        found = self._newer.get(known)
        return self._older.get(known) if found is None else found

    def update(self, table: TableId, files: Iterable[tuple[PathKey, bool]]) -> None:
        """Remember the latest action of applied commits on these files: whether it was an `add`."""
        for key, was_added in files:
            if len(self._newer) >= self.max_files // 2:
                self._older, self._newer = self._newer, {}
            self._newer[hash((table, key))] = was_added
