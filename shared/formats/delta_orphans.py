"""Orphans of a Delta table: files of a listing that a vacuum deletes, because no commit names them.

A file is an orphan only if all of these hold; whatever is not known to be the table's own is left alone:

1. No needed file has its base name, however a store or an engine may spell it.
2. It is older than the retention, and than `MIN_ORPHAN_AGE_MS`.
3. It is named like a data file or a deletion vector.
4. It lies in a folder of the table: its root, one of all partition columns, one in which the log names a file, or that
   of change files; and in no other table, of whatever system (`shared.formats.table_marks`): where one has its
   metadata, all below is left alone.
5. The log has every commit of the retention. Of a file that a commit removed which was cleaned up, no trace is left.
"""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.formats.delta_vacuum import NeededFiles
from shared.formats.table_marks import DELTA, tables_of_others
from shared.paths.boundary import LOG_DIRECTORY
from shared.paths.stored_file import StoredFile

MIN_ORPHAN_AGE_MS = 24 * 3_600_000
"""Least age of an orphan that is deleted, whatever the retention: a writer may still commit younger files.
Lakewright's own rewrites commit no output that is older than half of it."""

CHANGE_DATA = "_change_data"
"""The folder of change files, the one below a table with an underscore whose files a vacuum may delete."""

_LOG_FOLDER = f"{LOG_DIRECTORY}/"

_ORPHAN_NAME = re.compile(r".+\.parquet|deletion_vector_[0-9a-f-]{36}\.bin", re.DOTALL)


class Kept(StrEnum):
    """Why a listed file is not deleted as an orphan."""

    LOG = "log"
    NEEDED = "needed"
    REMOVED = "removed"
    YOUNG = "young"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """Folders in which a vacuum searches for orphans.

    nested: names of folders, with a final slash, that are tables of their own; empty for the table's folder itself, in
    which another system has files that the log may not know. columns: physical names of the partition columns, in
    their order. known: folders in which the log names a file, without a final slash. shared_with: the other system
    that has the table's folder, empty if there is none.
    """

    nested: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    shared_with: str = ""

    @staticmethod
    def of(listed: Iterable[str], columns: Sequence[str], named: Iterable[str] = ()) -> "OwnFolders":
        """Find the tables inside of the table, from the names of all its files, and its folders, from its log."""
        nested = tables_of_others(listed, DELTA)
        known = frozenset(name.rpartition("/")[0] for name in named)
        return OwnFolders(tuple(sorted(nested)), tuple(columns), known, nested.get("", ""))

    def may_hold(self, name: str) -> bool:
        """Return whether a file of this name may be an orphan of the table: a data file in a folder of its own."""
        folder, _, base = name.rpartition("/")
        return (
            _ORPHAN_NAME.fullmatch(base) is not None
            and not base.startswith((".", "_"))
            and not name.startswith(self.nested)
            and self._is_own(folder)
        )

    def _is_own(self, folder: str) -> bool:
        if folder in self.known or not folder:
            return True
        folders = folder.split("/")
        folders = folders[1:] if folders[0] == CHANGE_DATA else folders
        return not folders or (
            len(folders) == len(self.columns)
            and all(one.startswith(f"{column}=") for one, column in zip(folders, self.columns, strict=True))
        )


def orphan_verdict(
    file: StoredFile, needed: NeededFiles, removed: Container[str], folders: OwnFolders, cutoff_ms: int
) -> Kept | None:
    """Return why a listed file is not deleted as an orphan, None if it is one; `removed` are deleted by name."""
    if file.name.startswith(_LOG_FOLDER):
        return Kept.LOG
    if needed.may_be(file.name):
        return Kept.NEEDED
    if file.name in removed:
        return Kept.REMOVED
    if not folders.may_hold(file.name):
        return Kept.FOREIGN
    return Kept.YOUNG if file.modified_ms >= cutoff_ms else None


def orphan_cutoff_ms(cutoff_ms: int, now_ms: int) -> int:
    """Return the moment before which an orphan must have been written last."""
    return min(cutoff_ms, now_ms - MIN_ORPHAN_AGE_MS)
