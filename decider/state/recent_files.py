"""Files that the newest commits have added or removed, over all tables of a process: bounded, and never stored.

Delta lets a commit add a file that is live, and remove one that is not. Neither changes the table, and a rolling state
without paths would count it. Honest writers never repeat an action on a file, so a repetition that is remembered here
leads to a rebuild, and tables without any cost no request.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.path_keys import PathKey
from shared.table import TableId

MAX_FILES = 100_000
"""Files that one process remembers, some 20 MB: the last minutes of a busy lake, or days of a quiet one."""


@dataclass(slots=True)
class RecentFiles:
    """Whether the latest known action on a file was an `add`; keys are kept as hashes, and the oldest leave first."""

    max_files: int = MAX_FILES
    _added: OrderedDict[int, bool] = field(default_factory=OrderedDict)

    def is_live(self, table: TableId, key: PathKey) -> bool | None:
        """Return whether the file was added (True) or removed (False) last; None: not known."""
        return self._added.get(hash((table, key)))

    def update(self, table: TableId, files: Iterable[tuple[PathKey, bool]]) -> None:
        """Remember the latest action of applied commits on these files: whether it was an `add`."""
        for key, was_added in files:
            known = hash((table, key))
            self._added[known] = was_added
            self._added.move_to_end(known)
        # To find the first key of a plain dict takes as long as it has lost keys before.
        while len(self._added) > self.max_files:
            self._added.popitem(last=False)
