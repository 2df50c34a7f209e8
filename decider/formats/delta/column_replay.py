"""Replaying a log over a checkpoint in columns: only files that later commits name are searched in it.

A replay in columns gives up, and the log is replayed file by file, where a file occurs twice in the checkpoint, because
then its order counts; or where the partition columns changed, because then every file moves.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from decider.formats.delta.checkpoint import CheckpointPart
from decider.formats.delta.checkpoint_columns import PartFiles, read_columns
from decider.formats.delta.replay import SnapshotReplay
from decider.state.file_columns import FileColumns
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import SUSPICIOUS_PATH
from shared.paths.path_keys import PathKey, canonical_path, path_key
from shared.table import Commit, DataFile, PartitionColumn

_MAY_HAVE_OTHER_SPELLINGS = r"^/|:|\./|//|/\.$|%[0-9A-F]?[a-f]"
"""Matches each path that is not the canonical spelling, and a few that are."""


class ColumnReplay(SnapshotReplay):
    """A replay whose `snapshot` has the files that are not in columns; `remaining` are the others."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[FileColumns] = []
        self._named: set[PathKey] = set()

    def read(
        self, part: CheckpointPart, columns: Sequence[PartitionColumn], sort_key: PartitionColumn | None
    ) -> PartFiles:
        """Read the live files of a part of a checkpoint."""
        return read_columns(part, columns, sort_key)

    def take(self, files: PartFiles) -> None:
        """Take the files of a part of a checkpoint as live."""
        self._parts.append(files.columns)
        self.add(files.others)

    def apply(self, commit: Commit) -> None:
        """Apply the next commit; what it removes or adds is no longer live by the checkpoint."""
        self._named.update(map(path_key, commit.removed))
        self._named.update(map(path_key, commit.added))
        super().apply(commit)

    def remaining(self) -> FileColumns | None:
        """Return the files in columns that are live; None if the log has to be replayed file by file."""
        files = FileColumns.concatenated(self._parts)
        if not len(files.table):
            return files
        paths = _canonical(files.table["path"])
        named = {path for path, dv_id in self._named if dv_id is None}
        also_in_others = {path for path, dv_id in self._files if dv_id is None} - named
        is_twice = pc.count_distinct(paths).as_py() < len(paths) or pc.any(_among(paths, also_in_others)).as_py()
        if self.has_moved_columns or is_twice:
            return None
        return FileColumns(files.table.filter(pc.invert(_among(paths, named))), files.partitions)


def _among(paths: pa.ChunkedArray, wanted: set[str]) -> pa.ChunkedArray:
    return pc.is_in(paths, value_set=pa.array(list(wanted), pa.string()))


def _canonical(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the canonical spelling of each path; Python spells only those that may have another one."""
    doubtful = pc.match_substring_regex(paths, _MAY_HAVE_OTHER_SPELLINGS)
    if not pc.any(doubtful).as_py():
        return paths
    spelled = pa.array(map(canonical_path, paths.filter(doubtful).to_pylist()), pa.string())
    return pc.replace_with_mask(paths, doubtful.combine_chunks(), spelled)


def suspicious_files(columns: FileColumns) -> list[DataFile]:
    """Return the files whose paths may lead out of the table, with nothing but these paths."""
    paths = columns.table["path"]
    found = paths.filter(pc.match_substring_regex(paths, SUSPICIOUS_PATH))
    return [DataFile(path, 0, WHOLE_TABLE) for path in found.to_pylist()]
