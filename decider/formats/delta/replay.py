"""Replaying a log: a file is live if the latest action on its path and deletion vector is an `add`.

The same file may be spelled in two ways, `/x` and `file:/x`, so that files are distinguished by canonical path. The
spelling of the newest `add` is what the snapshot carries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from decider.formats.delta.checkpoint import CheckpointPart, read_files
from decider.formats.delta.damage import LogFile
from shared.errors import InvalidInput
from shared.formats.delta import refusal
from shared.partitions import partition_key, partition_values
from shared.paths.data_paths import PathKey, path_key
from shared.table import Commit, DataFile, PartitionColumn, PartitionKey, Snapshot, TableMetadata, TableProtocol


class SnapshotReplay:
    """The state of a table while its log is read: oldest first, or from a checkpoint on."""

    def __init__(self, sort_key: PartitionColumn | None = None, sort_column: str | None = None) -> None:
        """`sort_key`: column of which the ranges of all files are read; None: the one in force when each was added.

        sort_column: name of the column that is the key of any metadata, None: the one that the table's order names.
        """
        self._files: dict[PathKey, DataFile] = {}
        self.sort_key = sort_key
        self.sort_column = sort_column
        self.has_moved_key = False
        self._protocol: TableProtocol | None = None
        self.metadata: TableMetadata | None = None
        self._columns: tuple[PartitionColumn, ...] | None = None
        self.has_moved_columns = False

    def start(self, metadata: TableMetadata, protocol: TableProtocol) -> None:
        """Begin with metadata and protocol of a checkpoint; its files follow by `take`."""
        self._set_metadata(metadata)
        self._protocol = protocol

    def read(self, part: CheckpointPart, columns: Sequence[PartitionColumn], sort_key: PartitionColumn | None) -> Any:
        """Read the live files of a part of a checkpoint in the form that `take` takes; changes nothing."""
        return read_files(part, columns, sort_key)

    def take(self, files: Any) -> None:
        """Take what `read` returned as live."""
        self.add(files)

    def add(self, files: Iterable[DataFile]) -> None:
        """Add live files."""
        for file in files:
            self._files[path_key(file)] = file

    def apply(self, commit: Commit) -> None:
        """Apply the next commit: the files it removes are not live, those it adds are, in any order of its lines."""
        for removed in commit.removed:
            self._files.pop(path_key(removed), None)
        self.add(commit.added)
        if commit.metadata is not None:
            self._set_metadata(commit.metadata)
        self._protocol = commit.protocol or self._protocol

    def snapshot(self, log: LogFile, timestamp_ms: int) -> Snapshot:
        """Return the state as of a version; raises Corrupt if the log lacks metadata or protocol."""
        if self.metadata is None or self._protocol is None:
            missing = "metaData" if self.metadata is None else "protocol"
            raise log.corrupt(0, f"no {missing} action up to this version; expected one in the first commit")
        files = self._repartitioned(log) if self.has_moved_columns else tuple(self._files.values())
        refused = refusal(self.metadata, self._protocol)
        return Snapshot(log.version, timestamp_ms, self.metadata, self._protocol, files, refusal=refused)

    def _set_metadata(self, metadata: TableMetadata) -> None:
        columns = metadata.partition_columns
        self.has_moved_columns = self.has_moved_columns or self._columns not in (None, columns)
        self._columns = columns
        if self.metadata is not None:
            self.has_moved_key = self.has_moved_key or self.metadata.sort_key != metadata.sort_key
        self.metadata = metadata

    def _repartitioned(self, log: LogFile) -> tuple[DataFile, ...]:
        """Return the live files with the partitions of the last partition columns, which older commits did not know."""
        columns = self._columns or ()
        partitions: dict[PartitionKey, PartitionKey] = {}
        moved: list[DataFile] = []
        for file in self._files.values():
            if file.partition not in partitions:
                try:
                    partitions[file.partition] = partition_key(columns, partition_values(file.partition))
                except InvalidInput as problem:
                    raise log.corrupt(0, f"{file.path} is live under other partition columns: {problem}") from problem
            moved.append(
                file
                if partitions[file.partition] == file.partition
                else replace(file, partition=partitions[file.partition])
            )
        return tuple(moved)
