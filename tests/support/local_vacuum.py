"""`VacuumTable` on a local Delta table without a JVM: the same calls, on files and on deltalake."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from actor.formats.delta.vacuum import Vacuum
from actor.ports import TableJob, TableJobOutcome
from actor.vacuum.steps import VacuumLimits
from shared.formats.delta_references import FileReference, reference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone, decode_commit
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.stored_file import StoredFile
from shared.policy.policy import Policy
from shared.table import CommitOrigin, TableMetadata
from tests.support.aged_table import DAY_MS, age, commit_file, now_ms, versions

ON = Policy(vacuum=True)


class LocalTable:
    """A table in a folder; `before_delete` plays what happens before a batch is deleted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.deleted: list[str] = []
        self.before_delete: Callable[[int], None] = lambda _count: None
        self.batches = 0

    def head(self) -> tuple[int, TableMetadata]:
        table = DeltaTable(self.path)
        found = table.metadata()
        return table.version(), TableMetadata(str(found.id), (), dict(found.configuration))

    def live(self) -> Sequence[FileReference]:
        return [reference({"path": path}, self.path.as_uri()) for path in self._replayed()[0]]

    def tombstones(self) -> Sequence[Tombstone]:
        return [
            Tombstone(reference(body, self.path.as_uri()), body.get("deletionTimestamp"))
            for body in self._replayed()[1].values()
        ]

    def commit_times(self) -> Mapping[int, int]:
        return {version: int(commit_file(self.path, version).stat().st_mtime * 1000) for version in versions(self.path)}

    def commit(self, version: int, time_ms: int | None = None) -> LoggedCommit | None:
        place = commit_file(self.path, version)
        if not place.exists():
            return None
        return decode_commit(_actions(place), version, time_ms or 0, self.path.as_uri())

    def list_files(self) -> Iterator[StoredFile]:
        for place in self.path.rglob("*"):
            if place.is_file():
                yield self._stored(place)

    def stored(self, names: Sequence[str]) -> Mapping[str, StoredFile]:
        return {name: self._stored(self.path / name) for name in names if (self.path / name).is_file()}

    def digest(self, version: int) -> str | None:
        place = commit_file(self.path, version)
        return hashlib.sha256(place.read_bytes()).hexdigest() if place.exists() else None

    def clock_ms(self) -> int:
        place = self.path / "_clock"
        place.touch()
        try:
            return int(place.stat().st_mtime * 1000)
        finally:
            place.unlink()

    def delete(self, names: Sequence[str]) -> None:
        self.batches += 1
        self.before_delete(self.batches)
        for name in names:
            (self.path / name).unlink(missing_ok=True)
            self.deleted.append(name)

    def end(self, mark: CommitMetadata, figures: Mapping[str, int]) -> int:
        version = versions(self.path)[-1] + 1
        info = {
            "timestamp": now_ms(),
            "operation": "VACUUM END",
            "operationParameters": {"status": "COMPLETED"},
            "userMetadata": mark.encode(),
        }
        commit_file(self.path, version).write_text(json.dumps({"commitInfo": info}) + "\n")
        return version

    def _stored(self, place: Path) -> StoredFile:
        status = place.stat()
        return StoredFile(str(place.relative_to(self.path)), status.st_size, int(status.st_mtime * 1000))

    def _replayed(self) -> tuple[set[str], dict[str, dict]]:
        live: set[str] = set()
        gone: dict[str, dict] = {}
        for version in versions(self.path):
            for action in _actions(commit_file(self.path, version)):
                if "remove" in action:
                    live.discard(action["remove"]["path"])
                    gone[action["remove"]["path"]] = action["remove"]
                if "add" in action:
                    live.add(action["add"]["path"])
                    gone.pop(action["add"]["path"], None)
        return live, gone


def rewritten_long_ago(path: Path) -> LocalTable:
    """Write ten files, all rewritten into one long ago, and one that was removed yesterday."""
    for number in range(10):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
    DeltaTable(path).optimize.compact()
    write_deltalake(path, pa.table({"id": [10]}), mode="append")
    DeltaTable(path).delete("id = 10")
    days = {version: 40 - version for version in range(11)} | {11: 5, 12: 1}
    age(path, {version: now_ms() - days[version] * DAY_MS for version in versions(path)})
    return LocalTable(path)


def _actions(place: Path) -> list[dict]:
    return [json.loads(line) for line in place.read_text().splitlines() if line]


class Control:
    """A worker that lets a table job run; `before_change` plays what happens meanwhile."""

    def __init__(self) -> None:
        self.changes = 0
        self.points: list[tuple[str, int, int]] = []
        self.figures: dict[str, int] = {}
        self.before_change: Callable[[int], None] = lambda _count: None
        self.stop_after = 10**9

    def may_change(self) -> None:
        self.changes += 1
        self.before_change(self.changes)

    def should_stop(self) -> bool:
        return self.changes >= self.stop_after

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        self.points.append((point, done, total))

    def measured(self, figures: Mapping[str, int]) -> None:
        self.figures = dict(figures)


def run_locally(
    table: LocalTable,
    options: VacuumOptions = VacuumOptions(with_orphans=True),  # noqa: B008 - a constant
    *,
    policy: Policy = ON,
    control: Control | None = None,
    limits: VacuumLimits = VacuumLimits(),  # noqa: B008 - a constant
) -> TableJobOutcome:
    """Run a vacuum without a JVM."""
    job = TableJob(VACUUM, table.path.as_uri(), policy, CommitOrigin("job", 7), options=options.encode())
    return Vacuum(table, job, control or Control(), limits).run()


if __name__ == "__main__":
    # A process that a test may kill; slow, so that there is time for it.
    run_locally(LocalTable(Path(sys.argv[1])), limits=VacuumLimits(batch=5, files_per_s=50.0))
