"""The Qbeast index of one table at one version: its live files with their blocks, kept by applying commits.

The library's removals carry no tags, so what a removed file held is known only from when it was added. Files are
therefore kept, not sums of them.
"""

from collections.abc import Iterable, Mapping

from shared.formats.qbeast.files import FileClass, IndexFile, index_file
from shared.formats.qbeast.revisions import Revisions, decode_revisions
from shared.paths.path_keys import PathKey, path_key
from shared.table import Commit, DataFile, Snapshot


class QbeastIndex:
    """Live files of a table; a copy of a snapshot that commits change."""

    def __init__(self, version: int, revisions: Revisions, files: Iterable[DataFile]) -> None:
        self.version = version
        self.revisions = revisions
        self._live: dict[PathKey, DataFile] = {path_key(file): file for file in files}
        self._files: dict[PathKey, IndexFile] = {}
        self._read(self._live)

    @staticmethod
    def of_snapshot(snapshot: Snapshot) -> "QbeastIndex":
        """Return the index at a snapshot; raises Corrupt where the table's revisions cannot be read."""
        revisions = decode_revisions(snapshot.metadata.configuration)
        return QbeastIndex(snapshot.version, revisions, snapshot.files)

    def apply(self, commit: Commit) -> None:
        """Apply the next commit; raises Corrupt where the revisions that it sets cannot be read."""
        revisions = self.revisions if commit.metadata is None else decode_revisions(commit.metadata.configuration)
        for removed in commit.removed:
            self._live.pop(path_key(removed), None)
            self._files.pop(path_key(removed), None)
        added = {path_key(file): file for file in commit.added}
        self._live |= added
        changed, self.revisions, self.version = revisions != self.revisions, revisions, commit.version
        self._read(self._live if changed else added)

    @property
    def files(self) -> tuple[IndexFile, ...]:
        """All live files, by path."""
        return tuple(sorted(self._files.values(), key=lambda file: file.path))

    def of_revision(self, revision: int) -> tuple[IndexFile, ...]:
        """Return the files that are indexed under a revision, by path."""
        return tuple(file for file in self.files if file.kind is FileClass.INDEXED and file.revision == revision)

    def of_class(self, kind: FileClass) -> tuple[IndexFile, ...]:
        """Return the files of a class, by path."""
        return tuple(file for file in self.files if file.kind is kind)

    def _read(self, files: Mapping[PathKey, DataFile]) -> None:
        self._files |= {key: index_file(file, self.revisions) for key, file in files.items()}
