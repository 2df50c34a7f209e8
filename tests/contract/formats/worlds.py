"""The formats that pass the suite, each with a writer that makes the same things happen to a table of its kind."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from decider.formats.delta.format import DeltaFormat
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from decider.formats.table_format import RewriteReader, StorageAccess, TableFormat, TableReader
from decider.storage.object_reads import ReadMeter
from shared.formats.iceberg.names import COMMIT_KEY
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin
from tests.support.delta_tables import PLAIN, metadata_of
from tests.support.iceberg_folder import IcebergFolder
from tests.support.unity_server import UnityServer


class FormatWorld(Protocol):
    """One table of one format at `path`; every call but `create` makes one commit."""

    path: Path
    format: TableFormat
    folder: str
    frozen: Mapping[str, str]

    def create(self, uuid: str, configuration: Mapping[str, str] | None = None) -> None:
        """Make the table, with a first commit without files."""

    def append(self, sizes: Sequence[int]) -> None:
        """Add files of these sizes, with data change."""

    def delete(self) -> None:
        """Remove the oldest live file, with data change."""

    def configure(self, configuration: Mapping[str, str]) -> None:
        """Replace the table's configuration."""

    def rewrite(self, job: str, token: int) -> None:
        """Replace the two oldest live files by one as our engine does."""

    def lose(self, oldest: int) -> None:
        """Let log retention remove the metadata of the oldest commits, so that nothing before can be read."""

    def drop(self) -> None:
        """Remove the whole table."""


def mark(job: str, token: int) -> str:
    return CommitMetadata(CommitOrigin(job, token), partition="{}", round=1, mode="minor", started_ms=500).encode()


def access() -> StorageAccess:
    return StorageAccess(ReadMeter())


class DeltaWorld:
    """A Delta log written by hand: commits alone, without data files, which the decider never reads."""

    folder = "_delta_log"
    frozen: Mapping[str, str] = {"qbeast.lastRevisionID": "1"}

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format: TableFormat = DeltaFormat(access())
        self._live: list[dict[str, Any]] = []
        self._next = self._files = 0
        self._uuid = ""

    def _commit(self, *actions: object, info: Mapping[str, Any] | None = None) -> None:
        log = self.path / self.folder
        log.mkdir(parents=True, exist_ok=True)
        lines = [{"commitInfo": {"timestamp": 1_000, "operation": "WRITE", **(info or {})}}, *actions]
        (log / f"{self._next:020d}.json").write_text("\n".join(map(json.dumps, lines)))
        self._next += 1

    def _metadata(self, configuration: Mapping[str, str]) -> dict[str, Any]:
        return {"metaData": metadata_of({}, id=self._uuid, configuration=dict(configuration))}

    def _new(self, size: int) -> dict[str, Any]:
        self._files += 1
        return {"path": f"f-{self._files}", "partitionValues": {}, "size": size, "modificationTime": 0}

    def create(self, uuid: str, configuration: Mapping[str, str] | None = None) -> None:
        self._uuid = uuid
        self._commit({"protocol": PLAIN}, self._metadata(configuration or {}))

    def append(self, sizes: Sequence[int]) -> None:
        added = [self._new(size) for size in sizes]
        self._live += added
        self._commit(*({"add": one | {"dataChange": True}} for one in added))

    def delete(self) -> None:
        self._commit(self._remove(self._live.pop(0), data_change=True))

    def configure(self, configuration: Mapping[str, str]) -> None:
        self._commit(self._metadata(configuration))

    def rewrite(self, job: str, token: int) -> None:
        gone, self._live = self._live[:2], self._live[2:]
        out = self._new(sum(one["size"] for one in gone))
        self._live.append(out)
        removes = [self._remove(one, data_change=False) for one in gone]
        self._commit({"add": out | {"dataChange": False}}, *removes, info={"userMetadata": mark(job, token)})

    def _remove(self, file: Mapping[str, Any], *, data_change: bool) -> dict[str, Any]:
        known = {"path": file["path"], "size": file["size"], "partitionValues": {}, "extendedFileMetadata": True}
        return {"remove": known | {"dataChange": data_change}}

    def lose(self, oldest: int) -> None:
        for file in sorted((self.path / self.folder).glob("*.json"))[:oldest]:
            file.unlink()

    def drop(self) -> None:
        shutil.rmtree(self.path / self.folder)
        self._live, self._next = [], 0


class NamedDeltaFormat(DeltaFormat):
    """Delta's format, which opens the table at a path by the one name that a Unity catalog has for it."""

    def __init__(self, path: Path) -> None:
        server = UnityServer()
        server.put("main.sales.orders", path.as_uri())
        super().__init__(access(), {"unity": server.catalog(path.parent.as_uri())})

    def open(self, location: str) -> TableReader:
        return super().open("catalog://unity/main/sales/orders")

    def rewrites(self, location: str) -> RewriteReader:
        return super().rewrites("catalog://unity/main/sales/orders")


class NamedDeltaWorld(DeltaWorld):
    """The same log, read by the name of its table."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.format = NamedDeltaFormat(path)


class IcebergWorld:
    """An Iceberg table without a catalog, of one format version and partition spec."""

    folder = "metadata"
    frozen: Mapping[str, str] = {"encryption.key-id": "k"}

    def __init__(self, path: Path, *, format_version: int, spec: str, evolves_to: str = "") -> None:
        self.path = path
        self.format: TableFormat = IcebergFormat(access(), IcebergSettings(reads_folders=True))
        self._table = IcebergFolder(path, format_version=format_version, spec=spec)
        self._evolves_to = evolves_to

    def create(self, uuid: str, configuration: Mapping[str, str] | None = None) -> None:
        self._table.create(uuid, configuration)

    def append(self, sizes: Sequence[int]) -> None:
        if self._evolves_to and self._table.snapshots:
            self._table.evolve(self._evolves_to)
            self._evolves_to = ""
        self._table.commit([self._table.file(size) for size in sizes])

    def delete(self) -> None:
        self._table.commit(removed=list(self._table.live)[:1], operation="delete")

    def configure(self, configuration: Mapping[str, str]) -> None:
        self._table.configure(configuration)

    def rewrite(self, job: str, token: int) -> None:
        gone = list(self._table.live.values())[:2]
        out = self._table.file(sum(one.size for one in gone))
        self._table.commit([out], [one.path for one in gone], "replace", {COMMIT_KEY: mark(job, token)})

    def lose(self, oldest: int) -> None:
        self._table.expire(oldest)

    def drop(self) -> None:
        self._table.drop()


WORLDS: Mapping[str, Callable[[Path], FormatWorld]] = {
    "delta": DeltaWorld,
    "delta by a name of Unity": NamedDeltaWorld,
    "iceberg v1": partial(IcebergWorld, format_version=1, spec="none"),
    "iceberg v1 by day": partial(IcebergWorld, format_version=1, spec="day"),
    "iceberg v2": partial(IcebergWorld, format_version=2, spec="none"),
    "iceberg v2 by value": partial(IcebergWorld, format_version=2, spec="identity"),
    "iceberg v2 by bucket": partial(IcebergWorld, format_version=2, spec="bucket"),
    "iceberg v2 evolved": partial(IcebergWorld, format_version=2, spec="identity", evolves_to="day"),
    "iceberg v3": partial(IcebergWorld, format_version=3, spec="none"),
    "iceberg v3 by day": partial(IcebergWorld, format_version=3, spec="day"),
}
"""Add a format here, and it passes the suite or is not ready."""
