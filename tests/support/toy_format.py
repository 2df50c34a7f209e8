"""A table format for tests alone: JSON lines in a folder, with versions in steps of ten that no one may compute with.

`_toy/<version>.json` holds one commit as one JSON object that names the version before it; data files hold one row per
line. Reader, writer and engine are here; nothing of the product is changed to add them.
"""

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from actor.ports import (
    Control,
    EngineDeath,
    GroupOutcome,
    GroupStatus,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from decider.formats.rewrites import FileStats, Rewrite, RewritePage
from decider.formats.table_format import (
    MAX_SCANNED,
    HistoryEnd,
    RetainedHistory,
    StorageAccess,
    TableTotals,
    VacuumPreview,
)
from decider.state.file_columns import LiveFiles
from decider.storage.object_reads import ObjectReader
from shared.errors import InvalidInput, NoTable, OtherTable, Unsupported
from shared.jobs.vacuum_options import VacuumOptions
from shared.layout import commit_metadata
from shared.layout.manifest_files import ManifestFiles
from shared.partitions import WHOLE_TABLE
from shared.paths.locations import decoded_path
from shared.policy.policy import Policy
from shared.refusals import Refusal, RefusalCode
from shared.table import (
    BEFORE_FIRST,
    Commit,
    CommitOrigin,
    DataFile,
    PartitionKey,
    Position,
    RemovedFile,
    Snapshot,
    TableMetadata,
    TableProtocol,
)

FORMAT = "toy"
LOG = "_toy"
STEP = 10
FROZEN = "toy.frozen"
PROTOCOL = TableProtocol(1, 1)


def toy_refusal(metadata: TableMetadata) -> Refusal | None:
    """The format's one rule, for both sides."""
    if FROZEN not in metadata.configuration:
        return None
    return Refusal(RefusalCode.FEATURE, FROZEN, f"the table is frozen ({FROZEN} is set)", f"Unset {FROZEN}")


@dataclass(frozen=True, slots=True)
class ToyTable:
    """A table on disk, as its writers and the engine see it."""

    path: Path

    def versions(self) -> list[int]:
        return sorted(int(file.stem) for file in (self.path / LOG).glob("*.json"))

    def body(self, version: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / LOG / f"{version:010d}.json").read_text())
        return found

    def live(self) -> dict[str, int]:
        """Size by path."""
        files: dict[str, int] = {}
        for version in self.versions():
            body = self.body(version)
            for gone in body["removed"]:
                files.pop(gone["path"])
            files |= {one["path"]: one["size"] for one in body["added"]}
        return files

    def rows(self) -> list[str]:
        """Every row that a reader sees, in order."""
        return sorted(row for path in self.live() for row in (self.path / path).read_text().splitlines())

    def write(self, rows: Iterable[str]) -> dict[str, Any]:
        """Write a data file that no commit names yet."""
        self.path.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{row}\n" for row in rows)
        name = next(name for number in count() if not (self.path / (name := f"data-{number}.txt")).exists())
        (self.path / name).write_text(text)
        return {"path": name, "size": len(text), "rows": text.count("\n")}

    def commit(self, *, added: Sequence[Any] = (), removed: Sequence[Any] = (), **more: Any) -> int:
        """Commit as the one writer that gets the next name; raises FileExistsError for the others."""
        (self.path / LOG).mkdir(parents=True, exist_ok=True)
        known = self.versions()
        before = known[-1] if known else BEFORE_FIRST.version
        version = before + STEP if known else 0
        body = {"previous": before, "added": added, "removed": removed, "data_change": True, "time_ms": 1_000, **more}
        place = self.path / LOG / f"{version:010d}.json"
        draft = place.with_suffix(f".{os.getpid()}-{id(body)}")
        draft.write_text(json.dumps(body))
        try:
            os.link(draft, place)
        finally:
            draft.unlink()
        return version

    def create(self, uuid: str = "toy-1", **configuration: str) -> int:
        return self.commit(metadata={"uuid": uuid, "configuration": configuration})

    def append(self, rows: Iterable[str]) -> int:
        return self.commit(added=[self.write(rows)])


def _commit(body: bytes, version: int) -> Commit:
    raw = json.loads(body)
    metadata = raw.get("metadata")
    mark = commit_metadata.decode(raw.get("mark"))
    return Commit(
        version,
        raw["time_ms"],
        "WRITE",
        tuple(DataFile(one["path"], one["size"], WHOLE_TABLE, rows=one["rows"]) for one in raw["added"]),
        tuple(RemovedFile(one["path"], None, one["size"], WHOLE_TABLE, tags={}) for one in raw["removed"]),
        None if metadata is None else TableMetadata(metadata["uuid"], (), metadata["configuration"], FORMAT),
        PROTOCOL if metadata is not None else None,
        raw["data_change"],
        mark.origin if mark else None,
        hashlib.sha256(body).hexdigest()[:16],
    )


class ToyReader:
    """`TableReader` on the folder."""

    def __init__(self, reads: ObjectReader) -> None:
        self._reads = reads
        self.location = reads.location

    async def _versions(self, after: int = BEFORE_FIRST.version) -> list[int]:
        names = await self._reads.list(LOG)
        found = sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json"))
        return [version for version in found if version > after]

    async def _body(self, version: int) -> bytes | None:
        return await self._reads.get(f"{LOG}/{version:010d}.json")

    async def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        last = after.version
        for version in await self._versions(last):
            if until is not None and last >= until:
                return
            body = await self._body(version)
            if body is None or json.loads(body)["previous"] != last:
                return
            last = version
            yield _commit(body, version)

    async def contains(self, position: Position) -> bool:
        body = await self._body(position.version)
        return body is not None and _commit(body, position.version).digest == position.digest

    async def end_of_history(self, after: Position) -> HistoryEnd:
        later = await self._versions(after.version)
        if not later:
            return HistoryEnd(is_end=True)
        body = await self._body(later[0])
        if body is not None and json.loads(body)["previous"] != after.version:
            return HistoryEnd(lost=f"commits between {after.version} and {later[0]} are gone")
        return HistoryEnd()

    async def snapshot(self, at: Position | None = None) -> Snapshot:
        live: dict[str, DataFile] = {}
        last: Commit | None = None
        metadata: TableMetadata | None = None
        for version in await self._versions():
            if at is not None and version > at.version:
                break
            body = await self._body(version)
            assert body is not None
            if json.loads(body)["previous"] != (last.version if last else BEFORE_FIRST.version):
                raise InvalidInput(f"{self.location}: the commits before {version} are gone", field="version")
            last = _commit(body, version)
            metadata = last.metadata or metadata
            for gone in last.removed:
                live.pop(gone.path)
            live |= {file.path: file for file in last.added}
        if last is None or metadata is None:
            raise NoTable(f"{self.location}: there is no toy table", field="location")
        refused = self.refusal(metadata, PROTOCOL)
        return Snapshot(last.version, last.timestamp_ms, metadata, PROTOCOL, tuple(live.values()), last.digest, refused)

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        raise Unsupported(f"this format has no bounds of {column}", field="sort_keys")

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        return LiveFiles.of(await self.snapshot(at))

    async def totals(self, at: Position) -> TableTotals | None:
        return None

    async def checkpoint(self) -> int | None:
        return None

    async def manifests(self) -> ManifestFiles | None:
        return None

    async def checkpointed_files(self) -> tuple[int, int] | None:
        return None

    async def removals(self) -> Sequence[tuple[int, int]]:
        return ()

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        raise Unsupported("this format keeps all its files", field="format")

    async def retained(self) -> RetainedHistory:
        kept: list[Position] = []
        previous = None
        for version in reversed(await self._versions()):
            if previous not in (None, version):
                return RetainedHistory(tuple(reversed(kept)), missing=(version + 1, kept[-1].version - 1))
            body = await self._body(version)
            assert body is not None
            previous = json.loads(body)["previous"]
            kept.append(Position(version))
        return RetainedHistory(tuple(reversed(kept)), is_whole=previous == BEFORE_FIRST.version)

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        return toy_refusal(metadata)


class ToyRewrites:
    """`RewriteReader` on the folder."""

    def __init__(self, reads: ObjectReader) -> None:
        self._reads = reads
        self.location = reads.location

    async def page(self, *, limit: int, before: int | None = None, max_scanned: int = MAX_SCANNED) -> RewritePage:
        names = [name for name in await self._reads.list(LOG) if name.endswith(".json")]
        if not names:
            raise NoTable(f"{self.location}: there is no toy table", field="location")
        found: list[Rewrite] = []
        scanned = 0
        for name in sorted(names, reverse=True):
            version = int(name.removesuffix(".json"))
            if before is not None and version >= before:
                continue
            if len(found) == limit or scanned == max_scanned:
                return RewritePage(tuple(found), version + 1)
            scanned += 1
            raw = json.loads(await self._reads.get(f"{LOG}/{name}") or b"{}")
            mark = commit_metadata.decode(raw.get("mark"))
            if mark is not None:
                sides = (_stats(raw["removed"]), _stats(raw["added"]))
                found.append(Rewrite(version, mark, raw["time_ms"], *sides, 0, None))
        return RewritePage(tuple(found), None)


def _stats(files: Sequence[Any]) -> FileStats:
    size, rows = sum(one["size"] for one in files), sum(one["rows"] for one in files)
    return FileStats(len(files), size, rows, None, tuple(one["path"] for one in files))


class ToyFormat:
    """`TableFormat` for the folder."""

    name = FORMAT

    def __init__(self, access: StorageAccess) -> None:
        self._access = access

    async def probe(self, place: ObjectReader, path: str = "") -> bool:
        names = await place.first_names(f"{path}/{LOG}" if path else LOG)
        return any(name.endswith(".json") for name in names)

    def catalog(self, name: str) -> None:
        """There is none."""

    def open(self, location: str) -> ToyReader:
        return ToyReader(self._access.reader(location))

    def rewrites(self, location: str) -> ToyRewrites:
        return ToyRewrites(self._access.reader(location))


class ToyEngine:
    """`TableEngine` for the folder."""

    format = FORMAT
    table_kinds: tuple[str, ...] = ()

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        table = _at(location)
        versions = table.versions()
        metadata = next(_metadata(table.body(version)) for version in reversed(versions) if _has(table, version))
        if table_uuid not in ("", metadata.table_uuid):
            raise OtherTable(f"{location} holds the table {metadata.table_uuid}, not {table_uuid}", field="table_uuid")
        refused = toy_refusal(metadata)
        if refused is not None:
            raise Unsupported(refused.message, field=refused.subject)
        files = tuple(DataFile(path, size, WHOLE_TABLE) for path, size in table.live().items())
        return LivePartition(versions[-1], metadata, PROTOCOL, files)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        table = _at(request.location)
        outputs: list[dict[str, Any]] = []
        for group in request.groups:
            rows = [row for file in group.files for row in (table.path / file.path).read_text().splitlines()]
            outputs.append(table.write(rows))
        control.reached("files_written")
        live = table.live()
        taken = [(g, out) for g, out in zip(request.groups, outputs, strict=True) if _is_live(g.files, live)]
        stale = [
            GroupOutcome(group, GroupStatus.CONFLICTED) for group in request.groups if not _is_live(group.files, live)
        ]
        if not taken:
            return RewriteOutcome(None, tuple(stale), 1, 1, conflicts=len(stale))
        control.may_commit()
        gone = [
            {"path": file.path, "size": file.size_bytes, "rows": _rows(table, file.path)}
            for group, _ in taken
            for file in group.files
        ]
        version = table.commit(
            added=[out for _, out in taken], removed=gone, data_change=False, mark=request.user_metadata
        )
        control.reached("committed")
        done = [
            GroupOutcome(g, GroupStatus.COMMITTED, (DataFile(out["path"], out["size"], WHOLE_TABLE),), out["rows"])
            for g, out in taken
        ]
        return RewriteOutcome(version, (*done, *stale), 1, 1, conflicts=len(stale))

    def is_alive(self) -> bool:
        return True

    def terminate(self) -> EngineDeath | None:
        return EngineDeath("it was asked to", was_requested=True)

    def cancel(self, job: str) -> None:
        """Nothing here takes long enough to be cancelled."""

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        table, wanted = _at(location), CommitOrigin(job, token)
        for version in table.versions():
            mark = commit_metadata.decode(table.body(version).get("mark"))
            if version > since_version and mark is not None and wanted in mark.origins:
                return version
        return None

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Unreachable: `table_kinds` is empty."""
        raise NotImplementedError(job.kind)


def _at(location: str) -> ToyTable:
    return ToyTable(Path(decoded_path(location)))


def _has(table: ToyTable, version: int) -> bool:
    return "metadata" in table.body(version)


def _metadata(body: dict[str, Any]) -> TableMetadata:
    return TableMetadata(body["metadata"]["uuid"], (), body["metadata"]["configuration"], FORMAT)


def _is_live(files: Iterable[DataFile], live: dict[str, int]) -> bool:
    return all(file.path in live for file in files)


def _rows(table: ToyTable, path: str) -> int:
    return (table.path / path).read_text().count("\n")
