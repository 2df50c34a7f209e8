"""Files that a run of commits has added or removed so far: none of them counts twice, whatever the commits repeat.

Delta lets a commit add a file that is live, and remove one that is not; replaying the log, neither changes anything.
The rolling state keeps no paths, so only files since the run began are known; the rest is for the drift
check.
"""

from dataclasses import dataclass, field
from enum import Enum

from shared.path_keys import PathKey, path_key
from shared.table import DataFile, RemovedFile


class PriorState(Enum):
    """What the run knows of a file that is no longer or not yet live."""

    UNKNOWN = "unknown"
    REMOVED = "removed"


@dataclass(slots=True)
class BatchFiles:
    """The newest word of a run of commits about each file that it touched."""

    _files: dict[PathKey, DataFile | None] = field(default_factory=dict)

    def add(self, file: DataFile) -> DataFile | None:
        """Take an `add`; return the file that it replaces, which the run has added before, None if there is none."""
        key = path_key(file)
        before = self._files.get(key)
        self._files[key] = file
        return before

    def remove(self, removed: RemovedFile) -> DataFile | PriorState:
        """Take a `remove`; return the file if the run has added it, else what is known of it."""
        key = path_key(removed)
        before = self._files.get(key, PriorState.UNKNOWN)
        self._files[key] = None
        return PriorState.REMOVED if before is None else before
