"""The Qbeast index of one table at one version: its live files with their blocks."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from shared.formats.qbeast.files import FileClass, IndexFile, index_file
from shared.formats.qbeast.revisions import Revisions, decode_revisions
from shared.table import Snapshot


@dataclass(frozen=True, slots=True)
class QbeastIndex:
    """Live files of a table, by path, with the table's properties and the revisions that these name."""

    version: int
    configuration: Mapping[str, str]
    revisions: Revisions
    files: tuple[IndexFile, ...]

    @staticmethod
    def of_snapshot(snapshot: Snapshot) -> "QbeastIndex":
        """Return the index at a snapshot; raises Corrupt where the table's revisions cannot be read."""
        configuration = snapshot.metadata.configuration
        revisions = decode_revisions(configuration)
        files = (index_file(file, revisions) for file in snapshot.files)
        by_path = tuple(sorted(files, key=lambda file: file.path))
        return QbeastIndex(snapshot.version, configuration, revisions, by_path)

    def without(self, paths: Collection[str]) -> "QbeastIndex":
        """Return the index as if it did not have some files."""
        return replace(self, files=tuple(file for file in self.files if file.path not in paths)) if paths else self

    def of_revision(self, revision: int) -> tuple[IndexFile, ...]:
        """Return the files that are indexed under a revision, by path."""
        return tuple(file for file in self.files if file.kind is FileClass.INDEXED and file.revision == revision)

    def of_class(self, kind: FileClass) -> tuple[IndexFile, ...]:
        """Return the files of a class, by path."""
        return tuple(file for file in self.files if file.kind is kind)
