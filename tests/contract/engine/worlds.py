"""Tables of each format that Spark rewrites, with other writers, and faults of the store and the log."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.log import TableLog
from actor.formats.iceberg.java_table import JavaTable
from actor.ports import RewriteOutcome, RewriteRequest, TableEngine
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab, mark
from tests.support.iceberg_lab import IcebergLab
from tests.support.steering import Steering


class EngineWorld:
    """One unpartitioned table of one format; what is abstract here, each format does in its own way."""

    engine: TableEngine
    location: str

    def append(self, files: int = 1) -> None:
        """Add files of some rows each, as another writer."""
        raise NotImplementedError

    def take(self, path: str) -> None:
        """Remove a file and its rows, as another writer."""
        raise NotImplementedError

    def set_property(self) -> None:
        """Set a property that is neither the format's nor ours, as another writer."""
        raise NotImplementedError

    def rows(self) -> list[Any]:
        """Return all rows, as a reader that is not ours finds them."""
        raise NotImplementedError

    def on_disk(self) -> set[Path]:
        """Return the data files below the table, whether named by a version or not."""
        raise NotImplementedError

    def named(self) -> set[str]:
        """Return the names of the data files that any version names."""
        raise NotImplementedError

    def lose_answer(self, patch: pytest.MonkeyPatch, *, made: bool) -> list[int]:
        """Let every commit raise, after it was made or instead; returns a list that grows with each."""
        raise NotImplementedError

    def fail_to_begin(self, patch: pytest.MonkeyPatch) -> None:
        """Let the store be away whenever the newest version is read for a commit."""
        raise NotImplementedError

    def files(self) -> tuple[DataFile, ...]:
        """Return the live files in a fixed order."""
        found = self.engine.read_partition(self.location, WHOLE_TABLE).files
        return tuple(sorted(found, key=lambda file: file.path))

    def groups(self, count: int, each: int = 2) -> list[FileGroup]:
        """Plan groups of some live files each."""
        files = self.files()
        return [FileGroup(WHOLE_TABLE, files[at * each : at * each + each], RewriteMode.MINOR) for at in range(count)]

    def rewrite(
        self, groups: Iterable[FileGroup], control: Steering | None = None, *, token: int = 1, **more: Any
    ) -> RewriteOutcome:
        request = RewriteRequest(self.location, tuple(groups), more.pop("user_metadata", mark("job", token)), **more)
        return self.engine.rewrite(request, control or Steering())

    def orphans(self) -> list[Path]:
        """Return the data files that no version names."""
        named = self.named()
        return sorted(path for path in self.on_disk() if path.name not in named)

    def damage(self, file: DataFile) -> None:
        """Overwrite a live file with as many bytes that are no Parquet."""
        self.file_of(file).write_bytes(b"x" * file.size_bytes)

    def file_of(self, file: DataFile) -> Path:
        """Return where a data file is on disk."""
        (path,) = (one for one in self.on_disk() if one.name == file.path.rpartition("/")[2])
        return path


class DeltaWorld(EngineWorld):
    """A table of Delta, whose other writers write its log by hand."""

    def __init__(self, lab: DeltaLab) -> None:
        self.engine = lab.engine
        self._table = tables.table(lab.directory / "t", files=8)
        self.location = self._table.location

    def append(self, files: int = 1) -> None:
        self._table.append(files)

    def take(self, path: str) -> None:
        self._table.remove(path)

    def set_property(self) -> None:
        self._table.commit([{"metaData": self._table.metadata(configuration={"owner": "x"})}])

    def rows(self) -> list[Any]:
        return tables.rows(self._table.path)

    def on_disk(self) -> set[Path]:
        return {self._table.path / name for name in tables.parquet_files(self._table.path)}

    def named(self) -> set[str]:
        path = self._table.path
        return {add["path"] for version in range(tables.newest(path) + 1) for add in tables.added(path, version)}

    def lose_answer(self, patch: pytest.MonkeyPatch, *, made: bool) -> list[int]:
        real, calls = TableLog.commit, list[int]()

        def lost(log: TableLog, *given: Any, **more: Any) -> int:
            calls.append(1)
            if made:
                real(log, *given, **more)
            raise OSError("the answer was lost")

        patch.setattr(TableLog, "commit", lost)
        return calls

    def fail_to_begin(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(TableLog, "transaction", _away)


class IcebergWorld(EngineWorld):
    """A table of Iceberg in a folder, whose other writer is Spark."""

    def __init__(self, lab: IcebergLab) -> None:
        self.engine = lab.engine
        self._lab = lab
        self._name = lab.create("t")
        self.location = lab.location(self._name)
        self._appended = 0
        self.append(8)

    def append(self, files: int = 1) -> None:
        first, self._appended = self._appended, self._appended + files * 20
        ids = self._lab.session.range(first, self._appended, 1, files)  # Each slice is a file.
        given = ("id", "concat('v', id) v", "cast(pmod(id * 7919, 1000) as int) x", "date'2026-01-01' dt")
        ids.selectExpr(*given, "timestamp'2026-01-01 05:00:00' ts").writeTo(self._name).append()

    def take(self, path: str) -> None:
        table = self._lab.java(self._name)
        tasks = table.newScan().planFiles().iterator()
        file = tasks.next().file()
        while str(file.location()) != path:
            file = tasks.next().file()
        table.newDelete().deleteFile(file).commit()  # By its path, py4j would find a private method that unlinks it.

    def set_property(self) -> None:
        self._lab.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ('label'='x')")

    def rows(self) -> list[Any]:
        return self._lab.rows(self._name)

    def on_disk(self) -> set[Path]:
        return set((self._lab.folder / "db" / "t" / "data").rglob("[!.]*.parquet"))

    def named(self) -> set[str]:
        return self._lab.known_files(self._name)

    def lose_answer(self, patch: pytest.MonkeyPatch, *, made: bool) -> list[int]:
        real, calls = JavaTable.commit, list[int]()

        def lost(table: JavaTable, change: Any, **more: Any) -> None:
            calls.append(1)
            if made:
                real(table, change, **more)
            raise OSError("the answer was lost")

        patch.setattr(JavaTable, "commit", lost)
        return calls

    def fail_to_begin(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(JavaTable, "refresh", _away)


def _away(*_: object) -> None:
    raise OSError("the store is away")
