"""Replaying a log: a file is live if the newest word about its path and deletion vector is that it was added.

The same file may be spelled in two ways, `/x` and `file:/x`, so that files are told apart by canonical path. The
spelling of the newest `add` is what the snapshot carries.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import replace

from decider.observe.delta_damage import LogFile
from shared.errors import InvalidInput
from shared.partitions import cell_key, cell_values
from shared.table import CellKey, Commit, DataFile, PartitionColumn, Snapshot, TableMetadata, TableProtocol

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://(?=/))?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def canonical_path(path: str) -> str:
    """Return the spelling of a log's path under which Delta compares it: as a normalised URI, never decoded.

    `/x`, `file:/x` and `file:///x` are one path, and so are `%2f` and `%2F`; `a%3Db` and `a=b` are two.
    """
    if "%" in path:
        path = _ESCAPE.sub(lambda escape: escape[0].upper(), path)
    if path.startswith("/"):
        return "file:" + _normalised(path)
    scheme = _SCHEME.fullmatch(path) if ":" in path else None
    if scheme is None:
        return _normalised(path)
    return f"{scheme[1].lower()}:{_normalised(scheme[2]) if scheme[2].startswith('/') else scheme[2]}"


def _normalised(path: str) -> str:
    """Return a path without empty, `.` and resolvable `..` segments; two leading slashes (a host) stay."""
    if "./" not in path and "//" not in path and not path.endswith("/."):
        return path
    return posixpath.normpath(path)


class Replay:
    """The state of a table while its log is read: oldest first, or from a checkpoint on."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str | None], DataFile] = {}
        self._protocol: TableProtocol | None = None
        self.metadata: TableMetadata | None = None
        self._columns: tuple[PartitionColumn, ...] | None = None
        self._has_moved_columns = False

    def start(self, metadata: TableMetadata, protocol: TableProtocol) -> None:
        """Begin with what a checkpoint says about the table; its files follow by `add`."""
        self._set_metadata(metadata)
        self._protocol = protocol

    def add(self, files: Iterable[DataFile]) -> None:
        """Take files as live."""
        for file in files:
            self._files[canonical_path(file.path), file.dv_id] = file

    def apply(self, commit: Commit) -> None:
        """Take the next commit: what it removes is gone, what it adds is live, whatever the order of its lines."""
        for removed in commit.removed:
            self._files.pop((canonical_path(removed.path), removed.dv_id), None)
        self.add(commit.added)
        if commit.metadata is not None:
            self._set_metadata(commit.metadata)
        self._protocol = commit.protocol or self._protocol

    def snapshot(self, log: LogFile, timestamp_ms: int) -> Snapshot:
        """Return the state as of a version; raises Corrupt if the log never said what a table has to say."""
        if self.metadata is None or self._protocol is None:
            missing = "metaData" if self.metadata is None else "protocol"
            raise log.corrupt(0, f"no {missing} action up to this version; expected one in the first commit")
        files = self._recelled(log) if self._has_moved_columns else tuple(self._files.values())
        return Snapshot(log.version, timestamp_ms, self.metadata, self._protocol, files)

    def _set_metadata(self, metadata: TableMetadata) -> None:
        columns = metadata.partition_columns
        self._has_moved_columns = self._has_moved_columns or self._columns not in (None, columns)
        self._columns = columns
        self.metadata = metadata

    def _recelled(self, log: LogFile) -> tuple[DataFile, ...]:
        """Return the live files with the cells of the last partition columns, which older commits did not know."""
        columns = self._columns or ()
        cells: dict[CellKey, CellKey] = {}
        moved: list[DataFile] = []
        for file in self._files.values():
            if file.cell not in cells:
                try:
                    cells[file.cell] = cell_key(columns, cell_values(file.cell))
                except InvalidInput as problem:
                    raise log.corrupt(0, f"{file.path} is live under other partition columns: {problem}") from problem
            moved.append(file if cells[file.cell] == file.cell else replace(file, cell=cells[file.cell]))
        return tuple(moved)
