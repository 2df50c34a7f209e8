"""Stands for Delta on one table in memory: commits by version, snapshots, transactions that conflict as Delta's do."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, unquote

from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.jvm.sessions import USER_METADATA
from tests.support.java_errors import JavaError

NAME_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix"
PREFIX = "lw0-"
"""Of the files of an attempt, where no session gives another."""
PLAIN = Storage(((Column(("v",), "INT64", "int", (64,)),),), {"snappy": 100})
"""How files are stored unless a test says otherwise: one column of whole numbers."""

METADATA = {
    "id": "t-1",
    "schemaString": '{"type":"struct","fields":[{"name":"p","type":"string","nullable":true,"metadata":{}}]}',
    "partitionColumns": ["p"],
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


def add(path: str, rows: int | None = 10, *, p: str | None = "a", size: int = 100, **more: Any) -> dict[str, Any]:
    """An `add` action; `rows` None leaves out its statistics."""
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    body = {"path": path, "partitionValues": {"p": p}, "size": size, "modificationTime": 0, "dataChange": True}
    return {"add": body | stats | more}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True} | more}


def vector(cardinality: int, name: str = "v1") -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 40, "cardinality": cardinality}


class FakeAction:
    """An `AddFile` or a `RemoveFile`."""

    def __init__(self, body: dict[str, Any], kind: str = "add") -> None:
        self.kind = kind
        self.body = body

    def removeWithTimestamp(self, at_ms: int, data_change: bool) -> "FakeAction":  # noqa: N802 - Delta's name
        kept = {name: self.body[name] for name in ("path", "deletionVector", "partitionValues") if name in self.body}
        return FakeAction(kept | {"deletionTimestamp": at_ms, "dataChange": data_change}, "remove")


class FakeFrame:
    """A frame over files: it knows which, and how many rows reading them finds."""

    def __init__(self, table: "MemoryTable", bodies: Iterable[dict[str, Any]]) -> None:
        self.table = table
        self.bodies = list(bodies)

    def filter(self, condition: str) -> "FakeFrame":
        wanted = {text.replace("\\'", "'") for text in re.findall(r"'((?:[^'\\]|\\.)*)'", condition)}
        return FakeFrame(self.table, [body for body in self.bodies if body["path"] in wanted])

    def limit(self, at_most: int) -> "FakeFrame":
        return FakeFrame(self.table, self.bodies[:at_most])

    def collectAsList(self) -> Any:  # noqa: N802 - Spark's name
        self.table.listings += 1
        return JavaList(map(FakeAction, self.bodies))

    def coalesce(self, count: int) -> "FakeFrame":
        self.table.outputs_asked_for.append(count)
        return self

    def count(self) -> int:
        self.table.counts += 1
        hidden = sum(body["deletionVector"]["cardinality"] for body in self.bodies if body.get("deletionVector"))
        return sum(self.table.rows[body["path"]] for body in self.bodies) - hidden


class JavaList(list[Any]):
    """A list of Java's or Scala's."""

    def size(self) -> int:
        return len(self)


class FakeChecksum:
    """What a snapshot's checksum says; a snapshot with one knows nothing else of its metadata.

    domains: None where they are unknown.
    """

    def __init__(self, size: int, files: int, metadata: Any, protocol: Any, domains: Any = None) -> None:
        self.domainMetadata = lambda: SimpleNamespace(isDefined=lambda: domains is not None, get=lambda: domains)
        self.tableSizeBytes = lambda: size
        self.numFiles = lambda: files
        self.metadata = lambda: metadata
        self.protocol = lambda: protocol


class FakeSnapshot:
    """A table at one version."""

    def __init__(self, table: "MemoryTable", version: int, checksum: FakeChecksum | None = None) -> None:
        self._table = table
        self._version = version
        self._checksum = checksum
        self._live: dict[tuple[str, str], dict[str, Any]] = {}
        self._metadata: dict[str, Any] = METADATA
        self._protocol: dict[str, Any] = PROTOCOL
        for actions in table.history[: version + 1]:
            for action in actions:
                self._apply(action)

    def _apply(self, action: dict[str, Any]) -> None:
        self._metadata = action.get("metaData", self._metadata)
        self._protocol = action.get("protocol", self._protocol)
        for kind in ("add", "remove"):
            if body := action.get(kind):
                key = (body["path"], json.dumps(body.get("deletionVector")))
                self._live.pop(key, None)
                if kind == "add":
                    self._live[key] = body | {"dataChange": False}

    def version(self) -> int:
        return self._version

    def deltaLog(self) -> Any:  # noqa: N802 - Delta's name
        return self._table.delta_log

    def uncache(self) -> None:
        """Do nothing."""

    def metadata(self) -> Any:
        if self._checksum is not None:
            return self._checksum.metadata()
        return SimpleNamespace(json=lambda: json.dumps({"metaData": self._metadata}))

    def protocol(self) -> Any:
        if self._checksum is not None:
            return self._checksum.protocol()
        return SimpleNamespace(json=lambda: json.dumps({"protocol": self._protocol}))

    def domainMetadata(self) -> list[dict[str, Any]]:  # noqa: N802 - Delta's name
        return self._table.domains

    def allFiles(self) -> FakeFrame:  # noqa: N802 - Delta's name
        return FakeFrame(self._table, self._live.values())

    def checksumOpt(self) -> Any:  # noqa: N802 - Delta's name
        is_defined = self._checksum is not None or self._table.has_checksums
        return SimpleNamespace(isDefined=lambda: is_defined, get=lambda: self._checksum or self._counted())

    def computeChecksum(self) -> FakeChecksum:  # noqa: N802 - Delta's name
        self._table.counts_of_state += 1
        return self._counted()

    def logSegment(self) -> None:  # noqa: N802 - Delta's name
        return None

    def _counted(self) -> FakeChecksum:
        size = sum(body["size"] for body in self._live.values())
        return FakeChecksum(size, len(self._live), self.metadata(), self.protocol())


class FakeTransaction:
    """An optimistic transaction: refused if others removed what it read or removes, or changed the metadata."""

    def __init__(self, table: "MemoryTable", snapshot: FakeSnapshot | None = None) -> None:
        self._table = table
        self._snapshot = snapshot or table.at(table.version)
        self._is_random = False
        self._above = ""
        self.read: list[str] = []
        self._is_asked = True

    def isAsked(self) -> bool:  # noqa: N802 - of our own transaction in Java
        return self._is_asked

    def snapshot(self) -> FakeSnapshot:
        return self._snapshot

    def readVersion(self) -> int:  # noqa: N802 - Delta's name
        return self._snapshot.version()

    def trackFilesRead(self, adds: list[FakeAction]) -> None:  # noqa: N802 - Delta's name
        self.read += [one.body["path"] for one in adds]

    def __getattr__(self, name: str) -> Any:
        if name == "newMetadata_$eq":
            return self._set_metadata
        if name.endswith("$_setter_$deltaDataSubdir_$eq"):
            return self._set_folder
        raise AttributeError(name)

    def _set_folder(self, above: Any) -> None:
        self._above = f"{above}/"

    def _set_metadata(self, fields: dict[str, Any]) -> None:
        asks = fields["configuration"].get("delta.randomizeFilePrefixes") == "true"
        self._is_random = asks and self._table.honors_random_prefixes

    def writeFiles(self, frame: FakeFrame, options: Any, _optimize: bool, _seq: Any) -> list[FakeAction]:  # noqa: N802
        self._table.options.append(options)
        return [FakeAction(body) for body in self._table.write(frame, f"{self._above}Qx/" if self._is_random else "")]

    def commit(self, actions: list[FakeAction], operation: Any, _tags: Any) -> int:
        table = self._table
        table.attempts.append(self)
        table.others()
        gone = {body["path"] for body in table.bodies("remove", after=self.readVersion())}
        if table.bodies("metaData", after=self.readVersion()):
            raise JavaError("MetadataChangedException", "DeltaConcurrentModificationException")
        if gone & set(self.read):
            raise JavaError("ConcurrentDeleteReadException")
        if gone & {one.body["path"] for one in actions if one.kind == "remove"}:
            raise JavaError("ConcurrentDeleteDeleteException")
        failure = table.fails.pop(0) if table.fails else None
        if failure:
            self._is_asked = failure.asked
            raise failure.error
        own = table.conf.get(USER_METADATA, table.user_metadata)
        mark = {"commitInfo": {"operation": operation, "userMetadata": own}}
        return table.commit(mark, *({one.kind: one.body} for one in actions))


@dataclass(frozen=True, slots=True)
class Failure:
    """How a commit fails; not `asked`: before the log was asked at all."""

    error: Exception
    asked: bool = True


@dataclass
class MemoryTable:
    """Commits by version, rows by path, and what was done to the table. `history` survives what `vanished` takes.

    vectors: positions of hidden rows by the name of their deletion vector.

    looks: for the commits since a snapshot, and whether each may trust their names without a listing.
    """

    history: list[list[dict[str, Any]]] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    vectors: dict[str, list[int]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    vanished: set[int] = field(default_factory=set)
    attempts: list[FakeTransaction] = field(default_factory=list)
    fails: list[Failure] = field(default_factory=list)
    others: Callable[[], None] = lambda: None
    user_metadata: str = ""
    domains: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, int] = field(default_factory=dict)
    listings: int = 0
    log_reads: int = 0
    looks: list[bool] = field(default_factory=list)
    counts_of_state: int = 0
    counts: int = 0
    has_checksums: bool = True
    drops_rows: int = 0
    is_local: bool = True
    drops_stats: bool = False
    fails_writing: dict[str, Exception] = field(default_factory=dict)
    unreadable: Exception | None = None
    conf: dict[str, str] = field(default_factory=dict)
    delta_log: Any = None
    installed: list[int] = field(default_factory=list)
    checkpoint_interval: int = 10
    checkpoints: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    foreign_checkpoints: list[int] = field(default_factory=list)
    fails_checkpoint: Exception | None = None
    is_small: bool = False
    fails_replay: Exception | None = None
    honors_random_prefixes: bool = True
    outputs_asked_for: list[int] = field(default_factory=list)
    options: list[Any] = field(default_factory=list)
    disk: dict[str, int] = field(default_factory=dict)
    storage: dict[str, Storage] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)

    @property
    def version(self) -> int:
        return len(self.history) - 1

    def at(self, version: int) -> FakeSnapshot:
        return FakeSnapshot(self, version)

    def commit(self, *actions: dict[str, Any]) -> int:
        for action in actions:
            if body := action.get("add"):
                known = json.loads(body.get("stats") or "{}").get("numRecords")
                self.rows.setdefault(body["path"], 10 if known is None else known)
        self.history.append(list(actions))
        return self.version

    def checkpoint(self, snapshot: FakeSnapshot, _catalog: Any) -> None:
        """Note the version of a checkpoint, and the settings that it is written under."""
        if self.fails_checkpoint:
            raise self.fails_checkpoint
        self.checkpoints.append((snapshot.version(), dict(self.conf)))

    def checkpoint_here(self, snapshot: FakeSnapshot) -> bool:
        """Note a checkpoint that needs no job, under settings that none has."""
        if self.fails_replay:
            raise self.fails_replay
        if self.is_small:
            self.checkpoints.append((snapshot.version(), {"here": "true"}))
        return self.is_small

    def replayed_files(self, snapshot: FakeSnapshot) -> Any:
        """Return the live files of a small log, which are no listing of a job's."""
        return JavaList(map(FakeAction, snapshot.allFiles().bodies)) if self.is_small else None

    def newest_checkpoint(self) -> Any:
        """Return what `_last_checkpoint` records, as Scala's option: ours, and those of other engines."""
        versions = [*(version for version, _ in self.checkpoints), *self.foreign_checkpoints]
        newest = SimpleNamespace(version=lambda: max(versions))
        return SimpleNamespace(isDefined=lambda: bool(versions), get=lambda: newest)

    def bodies(self, kind: str, *, after: int = -1) -> list[dict[str, Any]]:
        return [action[kind] for actions in self.history[after + 1 :] for action in actions if kind in action]

    def live(self) -> set[str]:
        return {body["path"] for body in self.at(self.version).allFiles().bodies}

    def write(self, frame: FakeFrame, folder: str = "") -> list[dict[str, Any]]:
        """Write one file of a frame; a write that fails leaves a part, under the attempt's own prefix.

        folder: as it is on the disk, with a slash behind; the empty string: by value.
        """
        spelled = frame.bodies[0]["partitionValues"]["p"] or ""
        for body in frame.bodies:
            if body["path"] in self.fails_writing:
                self.disk[f"{folder or f'p={spelled}/'}{self.conf.get(NAME_PREFIX, PREFIX)}part"] = 1
                raise self.fails_writing[body["path"]]
        rows = frame.count() - self.drops_rows
        # As Spark: a folder by value, which tests see only where its name is not plain.
        place = quote(folder, safe="/=") or (
            "" if re.fullmatch(r"[\w.-]*", spelled, re.ASCII) else f"p={quote(spelled)}/"
        )
        path = f"{place}out-{next(self.names)}"
        out = add(path, None if self.drops_stats else rows, p="as Spark spells it", dataChange=True)
        self.rows[path] = rows
        self.disk[unquote(path)] = out["add"]["size"]
        return [out["add"]]

    def lines(self, name: str) -> list[str]:
        """Return the lines of a commit, by the name of its file."""
        version = int(name.removesuffix(".json"))
        if self.unreadable:
            raise self.unreadable
        if version in self.vanished or version > self.version:
            raise JavaError("Py4JJavaError", "FileNotFoundException")
        return [json.dumps(action, ensure_ascii=False) for action in self.history[version]]
