"""Delta's JVM objects without a JVM: a table in memory behind the calls that `actor.formats.delta` makes through py4j.

A fake of that border only: everything above it is the real code. `FakeTable.others` plays the other writers just before
a commit, `fails` makes commits fail, as a log store can.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds
from actor.formats.delta.chunk_bounds import Bounds
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.live_files import LiveGroup, find_live
from actor.formats.delta.log import TableLog
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import CachedRead, ReadCache, caught_up
from actor.formats.delta.snapshot_cache import SnapshotCache
from shared.formats.delta_references import vector_path
from shared.layout.planner import FileGroup, RewriteMode
from shared.table import PartitionKey
from tests.support.fake_delta_table import (
    PLAIN,
    FakeAction,
    FakeChecksum,
    FakeFrame,
    FakeSnapshot,
    FakeTransaction,
    MemoryTable,
    vector,
)
from tests.support.java_errors import JavaError

LOCATION = "file:///lake/t"


class _Lines:
    """A closable iterator of lines."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def hasNext(self) -> bool:  # noqa: N802 - Java's name
        return bool(self._lines)

    def next(self) -> str:
        return self._lines.pop(0)

    def close(self) -> None:
        pass


class FakeTable(MemoryTable):
    """A table in memory with the real `TableLog` on it."""

    def log(self, snapshots: SnapshotCache | None = None) -> TableLog:
        return TableLog(FakeScala(self), FakeSession(self), LOCATION, snapshots)


class FakePath:
    """A path of Hadoop's, made of a parent and a name, or of a name alone."""

    def __init__(self, table: FakeTable, *parts: Any) -> None:
        self._table = table
        last = str(parts[-1].name if isinstance(parts[-1], FakePath) else parts[-1])
        self.name = last.removeprefix(LOCATION + "/")
        self.is_root = self.name == LOCATION

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.name

    def getFileSystem(self, _conf: Any) -> Any:  # noqa: N802 - Hadoop's name
        return SimpleNamespace(
            delete=self._delete,
            listStatus=self._list,
        )

    def _list(self, place: "FakePath", pattern: str) -> list[Any]:
        below = "" if place.is_root else place.name + "/"
        names = {name.removeprefix(below).split("/")[0] for name in self._table.disk if name.startswith(below)}
        if below and not names:
            raise JavaError("Py4JJavaError", "FileNotFoundException")
        found = sorted(name for name in names if fnmatchcase(name, pattern))
        return [SimpleNamespace(getPath=lambda name=name: SimpleNamespace(getName=lambda: name)) for name in found]

    def _delete(self, path: "FakePath", _recursive: bool) -> bool:
        self._table.deleted.append(path.name)
        self._table.disk.pop(path.name, None)
        return True


class FakeSession:
    """A Spark session with nothing but its configuration."""

    def __init__(self, table: FakeTable) -> None:
        self.conf = SimpleNamespace(
            set=table.conf.__setitem__, unset=lambda name: table.conf.pop(name, None), get=table.conf.get
        )
        state = SimpleNamespace(conf=lambda: None)
        context = SimpleNamespace(isLocal=lambda: table.is_local)
        self._jsparkSession = SimpleNamespace(sparkContext=lambda: context, sessionState=lambda: state)


class FakeScala:
    """Stands for `actor.jvm.scala.Scala`: Scala's collections are Python's."""

    none = None
    optimize = "OPTIMIZE"

    def __init__(self, table: FakeTable) -> None:
        self._table = table
        store = SimpleNamespace(readAsIterator=lambda path, _conf: _Lines(table.lines(path.name)))
        delta_log = SimpleNamespace(
            update=self._read_log,
            createSnapshot=lambda segment, _client, _catalog, checksum: FakeSnapshot(
                table, table.version if segment is None else segment.version(), checksum
            ),
            unsafeVolatileSnapshot=lambda: table.at(table.version),
            installSnapshot=lambda snapshot, _at_ms: table.installed.append(snapshot.version()),
            checkpoint=table.checkpoint,
            doLogCleanup=lambda *_: None,
            liveFiles=table.replayed_files,
            readLastCheckpointFile=table.newest_checkpoint,
            createDataFrame=lambda _snapshot, adds, *_: FakeFrame(table, [one.body for one in adds]),
            store=lambda: store,
            logPath=lambda: FakePath(table, "_delta_log"),
            dataPath=lambda: FakePath(table, LOCATION),
        )
        self.replayed_log = SimpleNamespace(open=lambda _location, _conf: delta_log)
        self.checkpoint_file = SimpleNamespace(
            segment=lambda _log, snapshot: snapshot.logSegment(),
            write=lambda _log, snapshot, _segment: table.checkpoint_here(snapshot),
        )
        table.delta_log = delta_log
        self.row_tracking = SimpleNamespace(
            preserveRowTrackingColumns=lambda frame, _snapshot: frame,
        )
        self.rewrite_transaction = lambda _log, snapshot: FakeTransaction(table, snapshot)
        self.session_settings = SimpleNamespace(set=self._set)
        self.log_commit = SimpleNamespace(
            commit=self._commit,
            checksum=self._checksum,
        )
        self.data_files = SimpleNamespace(sizes=self._sizes)
        self.commit_file = SimpleNamespace(read=self._read_commit, digest=self._digest)
        self.next_snapshot = SimpleNamespace(since=self._since, carried=self._carried)
        self.group = SimpleNamespace(footers=self._footers)
        self.row_vectors = SimpleNamespace(hidden=self._hidden, write=self._write_vector)

    def _hidden(self, _log: Any, _conf: Any, files: "FakeSeq", at_most: int) -> Any:
        vectors = [one.body.get("deletionVector") for one in files]
        found = [self._table.vectors[vector["pathOrInlineDv"]] if vector else [] for vector in vectors]
        return SimpleNamespace(text=lambda: json.dumps(found)) if sum(map(len, found)) <= at_most else None

    def _write_vector(self, _log: Any, _conf: Any, positions: str) -> str:
        name = f"ab{next(self._table.names):020}"
        self._table.vectors[name] = json.loads(positions)
        written = vector(len(json.loads(positions)), name)
        self._table.disk[str(vector_path(written))] = written["sizeInBytes"]
        return json.dumps(written)

    def _set(self, _session: Any, text: str) -> Any:
        settings = json.loads(text)
        before = dict(self._table.conf)
        self._table.conf |= settings
        return SimpleNamespace(restore=lambda: (self._table.conf.clear(), self._table.conf.update(before)))

    def _commit(self, txn: FakeTransaction, conf: Any, session: Any, *given: Any) -> str:
        actions, operation, metrics, settings = given
        self._table.metrics = json.loads(metrics)
        of_checksum = json.loads(settings)[self._checksum(conf, "", txn.snapshot())]
        changed = self._set(session, json.dumps(of_checksum))
        try:
            return f"{txn.commit(actions, operation, {})} {self._table.checkpoint_interval}"
        finally:
            changed.restore()

    def _checksum(self, _conf: Any, _folder: str, snapshot: FakeSnapshot) -> str:
        if self._table.has_checksums:
            return "in the log"
        return "in memory" if snapshot.checksumOpt().isDefined() else "none"

    def _sizes(self, _conf: Any, paths: str) -> str:
        return json.dumps([self._table.disk.get(path.removeprefix(f"{LOCATION}/")) for path in json.loads(paths)])

    def hadoop_conf(self, _session: Any) -> None:
        return None

    def metadata(self, fields_json: str) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(fields_json)
        return fields

    def shape(self, snapshot: Any) -> tuple[str, str]:
        return snapshot.metadata().json(), snapshot.protocol().json()

    def _since(self, _conf: Any, _log: Any, before: Any, digest: str, at_most: int, is_recent: bool) -> str:
        known, texts = before.version(), list[bytes]()
        while (text := self._read_commit(None, "", known + len(texts) + 1)) is not None:
            texts.append(text[64:].encode())
        self._table.looks.append(is_recent)
        is_whole = len(texts) <= at_most and (is_recent or known + len(texts) == self._table.version)
        said = {
            "commits": [{"digest": hashlib.sha256(one).hexdigest(), "bytes": len(one)} for one in texts],
            "is_known": is_whole and self._digest(None, "", known) == digest,
        }
        return base64.b64encode(json.dumps(said).encode() + b"\n" + b"".join(texts)).decode()

    def _carried(self, _log: Any, before: Any, described: str, files: int, size: int) -> FakeSnapshot:
        known = before.checksumOpt().get()
        checksum = FakeChecksum(
            known.tableSizeBytes() + size, known.numFiles() + files, known.metadata(), known.protocol()
        )
        return FakeSnapshot(self._table, before.version() + len(json.loads(described)["commits"]), checksum)

    def _read_commit(self, conf: Any, folder: str, version: int) -> str | None:
        digest = self._digest(conf, folder, version)
        return None if digest is None else digest + "\n".join(self._table.lines(f"{version:020d}.json"))

    def _digest(self, _conf: Any, _folder: str, version: int) -> str | None:
        if version in self._table.vanished or version > self._table.version:
            return None
        return hashlib.sha256("\n".join(self._table.lines(f"{version:020d}.json")).encode()).hexdigest()

    def _read_log(self, *_: Any) -> FakeSnapshot:
        self._table.log_reads += 1
        return self._table.at(self._table.version)

    def delta_options(self, options: dict[str, Any], _conf: Any) -> dict[str, Any]:
        return options

    def glob_filter(self, pattern: str) -> str:
        return pattern

    def path(self, *parts: Any) -> FakePath:
        return FakePath(self._table, *parts)

    def uri(self, path: str) -> str:
        return path

    def some(self, value: Any) -> Any:
        return value

    def java_list(self, items: Iterable[Any]) -> list[Any]:
        return list(items)

    def seq(self, items: Iterable[Any] = ()) -> "FakeSeq":
        return FakeSeq(items)

    def map(self, entries: dict[str, Any] | None = None) -> dict[str, Any]:
        return dict(entries or {})

    def rows(self, frame: Any) -> list[Any]:
        return [json.loads(text) for text in frame.toJSON().collectAsList()]

    def to_json(self, value: Any) -> str:
        is_plain = isinstance(value, dict) or all(isinstance(one, dict) for one in value)
        return json.dumps(value if is_plain else [one.body for one in value], ensure_ascii=False)

    def _footers(self, _conf: Any, paths: str, *_: Any) -> Any:
        files = [{"obstacle": "no_footer"} for _ in json.loads(paths)]  # Of a table in memory.
        return SimpleNamespace(text=lambda: json.dumps({"files": files, "schemas": {}}))

    def adds(self, text: str) -> "FakeSeq":
        return FakeSeq(FakeAction(body) for body in json.loads(text))

    def replacement(self, txn: FakeTransaction, inputs: str, outputs: str, at_ms: int) -> "FakeSeq":
        read = self.adds(inputs)
        txn.trackFilesRead(read)
        return self.adds(outputs).concat(self.removes(read, at_ms, data_change=False))

    def removes(self, adds: "FakeSeq", at_ms: int, *, data_change: bool) -> "FakeSeq":
        return FakeSeq(add.removeWithTimestamp(at_ms, data_change) for add in adds)


class FakeSeq(list[Any]):
    """Stands for Scala's `Seq`."""

    def concat(self, other: Iterable[Any]) -> "FakeSeq":
        return FakeSeq([*self, *other])


class FakeFooters:
    """Stands for `Footers`, whose every line is a call of parquet-java; see `FakeTable.storage`."""

    def __init__(self, scala: FakeScala, *_: object) -> None:
        self._table = scala._table

    def columns(self, _digest: str, file: LoggedFile) -> tuple[Column, ...]:
        (found,) = self.storage([file]).schemas
        return found

    def storage(self, files: Sequence[LoggedFile]) -> Storage:
        found = [self._table.storage.get(logged.file.path, PLAIN) for logged in files]
        codecs = Counter[str]()
        for one in found:
            codecs.update(one.codec_bytes)
        return Storage(tuple(dict.fromkeys(schema for one in found for schema in one.schemas)), codecs)

    def read_each(self, _files: Sequence[LoggedFile]) -> None:
        pass

    def bounds(self, _file: LoggedFile, _wanted: Iterable[Column]) -> dict[Column, Bounds]:
        return {}


class FakeSessions:
    """Stands for `actor.jvm.sessions.Sessions`: the lease signs the table's commits."""

    def __init__(self, table: FakeTable) -> None:
        self._table = table

    @contextmanager
    def lease(
        self, *, tag: str, more_tags: Iterable[str] = (), user_metadata: str = "", conf: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        self._table.user_metadata = user_metadata
        own = dict(conf or {})
        self._table.conf |= own
        try:
            yield tag
        finally:
            for name in own:
                self._table.conf.pop(name)

    @contextmanager
    def bound(self, _owned: str) -> Iterator[FakeSession]:
        yield FakeSession(self._table)


def group_of(table: FakeTable, *paths: str, mode: RewriteMode = RewriteMode.MINOR) -> FileGroup:
    """A planned group of files that are live now, as the snapshot decodes them."""
    log = table.log()
    snapshot = log.snapshot()
    listed = decode_adds(log.files(snapshot), log.shape(snapshot).metadata.partition_columns)
    by_path = {logged.file.path: logged.file for logged in listed}
    return FileGroup(by_path[paths[0]].partition, tuple(by_path[path] for path in paths), mode)


def live_group(table: FakeTable, *paths: str) -> LiveGroup:
    """The same, as it was found in the newest snapshot."""
    log = table.log()
    snapshot = log.snapshot()
    (live,) = find_live(log, snapshot, [group_of(table, *paths)], log.shape(snapshot).metadata.partition_columns)
    return live


A = PartitionKey('{"p":"a"}')


def listed(table: FakeTable, partition: PartitionKey | None = None) -> CachedRead:
    """What a listing of the newest snapshot gives."""
    memory = ReadCache()
    read_partition(table.log(), partition or A, memory)
    seen = memory.get(LOCATION, partition or A)
    assert seen is not None
    return replace(
        seen,
        partition=partition,
        files={key: one for key, one in seen.files.items() if one.file.partition == (partition or A)},
    )


def whole(table: FakeTable) -> CachedRead:
    memory = ReadCache()
    read_partition(table.log(), A, memory)
    seen = memory.get(LOCATION, A)
    assert seen is not None
    assert seen.partition is None
    return seen


def brought(table: FakeTable, seen: CachedRead) -> CachedRead | None:
    log = table.log()
    return caught_up(log, seen, log.shape(log.snapshot()), version=table.version)
