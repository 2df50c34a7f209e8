"""The Qbeast index of one table at one version: its live files with their blocks."""

from collections.abc import Iterable

from shared.formats.qbeast.files import FileClass, IndexFile, index_file
from shared.formats.qbeast.revisions import Revisions, decode_revisions
from shared.table import DataFile, Snapshot


class QbeastIndex:
    """Live files of a table, by path."""

    def __init__(self, version: int, revisions: Revisions, files: Iterable[DataFile]) -> None:
        self.version = version
        self.revisions = revisions
        self.files = tuple(sorted((index_file(file, revisions) for file in files), key=lambda file: file.path))

    @staticmethod
    def of_snapshot(snapshot: Snapshot) -> "QbeastIndex":
        """Return the index at a snapshot; raises Corrupt where the table's revisions cannot be read."""
        revisions = decode_revisions(snapshot.metadata.configuration)
        return QbeastIndex(snapshot.version, revisions, snapshot.files)

    def of_revision(self, revision: int) -> tuple[IndexFile, ...]:
        """Return the files that are indexed under a revision, by path."""
        return tuple(file for file in self.files if file.kind is FileClass.INDEXED and file.revision == revision)

    def of_class(self, kind: FileClass) -> tuple[IndexFile, ...]:
        """Return the files of a class, by path."""
        return tuple(file for file in self.files if file.kind is kind)
