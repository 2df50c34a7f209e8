"""Folders in which tables of catalogs lie or keep their metadata: events of a store name files, not tables.

A process knows the folders of the tables that it has read. Its first sweep reads all of them, so nothing is stored.
"""

from collections import OrderedDict
from collections.abc import Sequence

from shared.errors import InvalidInput
from shared.paths.locations import canonical_location

MAX_FOLDERS = 100_000
"""Folders that are remembered, in some tens of megabytes; beyond it the one that was noted first is forgotten."""


class MetadataFolders:
    """The tables by the folder of their metadata; more than one where catalogs share a table."""

    def __init__(self, most: int = MAX_FOLDERS) -> None:
        self._tables: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._most = most

    def note(self, location: str, metadata_file: str) -> None:
        """Remember the table at a canonical location by its newest metadata file, as its format spells the path."""
        folder = metadata_folder(metadata_file)
        if folder is None:
            return
        known = self._tables.get(folder, ())
        if location not in known:
            self._tables[folder] = (*known, location)
            if len(self._tables) > self._most:
                self._tables.popitem(last=False)

    def tables(self, folder: str) -> Sequence[str]:
        """Return the locations of the tables whose metadata lie in a folder, by its canonical location."""
        return self._tables.get(folder, ())


def metadata_folder(metadata_file: str) -> str | None:
    """Return the canonical location of the folder that a file lies in, None for a path that is none."""
    try:
        return canonical_location(metadata_file.rpartition("/")[0])
    except InvalidInput:
        return None
