"""Files that the newest commits have added or removed, over all tables of a process: bounded, and never stored.

Delta lets a commit add a file that is live, and remove one that is not. Neither changes the table, and a rolling state
without paths would count it. Honest writers never repeat an action on a file, so a repetition that is remembered here
leads to a rebuild, and tables without any cost no request.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.paths.path_keys import PathKey
from shared.table import TableId

MAX_FILES = 100_000
"""Files that one process remembers, some 20 MB: the last minutes of a busy lake, or days of a quiet one."""


@dataclass(slots=True)
class RecentFiles:
    """Remembers whether the latest known action on a file was an `add`; keys are kept as hashes.

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
