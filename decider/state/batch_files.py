"""Files that a batch of commits has added or removed: none of them counts twice, whatever the commits repeat.

Delta lets a commit add a file that is live, and remove one that is not; replaying the log, neither changes anything.
The rolling state keeps no paths, so only files of this batch are known; the drift check finds the rest.
"""

from dataclasses import dataclass, field
from enum import Enum

from shared.path_keys import PathKey, path_key
from shared.table import DataFile, RemovedFile


class PriorState(Enum):
    """What the batch knows of a file that is not live any more, or not yet."""

    UNKNOWN = "unknown"
    REMOVED = "removed"


@dataclass(slots=True)
class BatchFiles:
    """The latest action of a batch of commits on each file."""

    _files: dict[PathKey, DataFile | None] = field(default_factory=dict)

    def add(self, file: DataFile) -> DataFile | None:
        """Apply an `add`; return the file of this batch that it replaces, None if there is none."""
        key = path_key(file)
        before = self._files.get(key)
        self._files[key] = file
        return before

    def remove(self, removed: RemovedFile) -> DataFile | PriorState:
        """Apply a `remove`; return the file if this batch added it, else what is known of it."""
        key = path_key(removed)
        before = self._files.get(key, PriorState.UNKNOWN)
        self._files[key] = None
        return PriorState.REMOVED if before is None else before
