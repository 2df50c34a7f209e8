"""One table's transaction log, seen through Delta's own `DeltaLog`: snapshots, transactions, and single commits.

Everything that costs time is visible here: `files` runs a Spark job over the snapshot's state, `few_files` replays a
small log in the driver, and single commits are read straight from the log store, whose cost does not depend on how
large the table is.
"""

import json
import time
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from actor.formats.delta.actions import decode_metadata, decode_origins, decode_protocol
from actor.formats.delta.checkpoint_writer import NO_CHECKSUM_FILE, CheckpointWriter
from actor.formats.delta.commit_file import DIGEST_DIGITS, CommitFile, NewCommits, decode_new_commits
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.snapshot_cache import CachedSnapshot, OpenedLog, SnapshotCache, newest, with_checksum
from actor.formats.delta.stored_schema import as_stored
from actor.jvm.errors import first_line, jvm_class_names
from actor.jvm.scala import jvm_session
from actor.jvm.sessions import USER_METADATA
from actor.rewrite.model import NotAsked
from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.formats.delta_vacuum import COMPLETED
from shared.layout import commit_metadata
from shared.partitions import partition_key
from shared.paths.data_paths import file_name, is_absolute
from shared.paths.locations import hadoop_path
from shared.table import CommitOrigin, FileKey, PartitionColumn, PartitionKey, TableMetadata, TableProtocol

MAX_COMMITS_SEARCHED = 10_000
"""Commits that `find_commit` opens at most. A lease lasts minutes and busy tables see a few commits a second."""

_NOT_DERIVED = "spark.databricks.delta.incremental.commit.enabled"
_IN_LOG, _IN_MEMORY, _NOWHERE = "in the log", "in memory", "none"
"""Where `LogCommit.java` says the checksum of a snapshot is."""

_FALSE_WHILE_COMMITTING: Mapping[str, tuple[str, ...]] = {
    _IN_LOG: (),
    _IN_MEMORY: NO_CHECKSUM_FILE,
    _NOWHERE: (*NO_CHECKSUM_FILE, _NOT_DERIVED),
}
"""Settings by where the checksum of the snapshot before is: a commit gets a checksum (`.crc`) only if that one has one.

It follows from that one at once. Otherwise Delta would list the whole snapshot in a Spark job for it, which takes as
long as the rest of a small rewrite; the table's own writers do without, and so do its readers. A checksum that was
carried here stays in the JVM.
"""

_log = structlog.get_logger(__name__)

# Scala's positional flags by name.
_MUST_BE_FRESH = False
_NOT_STREAMING = False
_NOT_RECURSIVE = False
_IGNORES_DEFAULTS = False


@dataclass(frozen=True)
class TableShape:
    """Shape by which files are written: two equal ones mean that a file written under one is valid under the other."""

    metadata_json: str
    protocol_json: str

    @cached_property
    def metadata(self) -> TableMetadata:
        """The decoded metadata."""
        return decode_metadata(self.metadata_json)

    @cached_property
    def protocol(self) -> TableProtocol:
        """The decoded protocol."""
        return decode_protocol(self.protocol_json)

    @cached_property
    def fields(self) -> Sequence[Mapping[str, Any]]:
        """The columns as the metadata have them."""
        metadata = json.loads(self.metadata_json)["metaData"]
        return json.loads(metadata.get("schemaString") or '{"fields":[]}')["fields"]  # type: ignore[no-any-return]

    @cached_property
    def is_on(self) -> Mapping[str, bool]:
        """The properties, by their names in lower case, and True for those that are on."""
        return {name.lower(): value.lower() == "true" for name, value in self.metadata.configuration.items()}

    @property
    def allows_vectors(self) -> bool:
        """True where the table lets statements hide rows of its files by deletion vectors."""
        return self.is_on.get("delta.enabledeletionvectors", False)

    @property
    def stored(self) -> "TableShape":
        """The shape that files are read and written by in a rewrite (see `stored_schema`); for no commit."""
        metadata = json.loads(self.metadata_json)["metaData"]
        stored = as_stored(metadata)
        return self if stored == metadata else replace(self, metadata_json=json.dumps({"metaData": stored}))

    def same_layout(self, other: "TableShape") -> bool:
        """Return whether files written under one are valid under the other: they differ only in ignored properties."""
        return self.protocol_json == other.protocol_json and _layout(self.metadata_json) == _layout(other.metadata_json)


def _layout(metadata_json: str) -> Mapping[str, Any]:
    metadata: dict[str, Any] = json.loads(metadata_json)["metaData"]
    configuration = metadata.get("configuration") or {}
    kept = {name: value for name, value in configuration.items() if name.startswith("delta.")}
    return {**metadata, "configuration": kept, "description": None, "name": None}


class TableLog:
    """The log of the table at one location, used from one session."""

    def __init__(
        self, scala: DeltaScala, session: SparkSession, location: str, snapshots: SnapshotCache | None = None
    ) -> None:
        self.location = location
        self.session = session
        self._scala = scala
        self._snapshots = snapshots or SnapshotCache(0)
        self._newest: CachedSnapshot | None = None  # What was found last, if it is known in Python, too.
        self._stored: tuple[Any, Any] = None, None  # The snapshot that was described last, and as what.
        # As of the look that found the snapshot which was returned last: commits that it read, and known digests.
        self._read: dict[int, CommitFile] = {}
        self._known: dict[int, str] = {}
        known = self._snapshots.get(location)
        # Delta itself keeps few logs: to open one again reads its newest checkpoint and commits.
        self._opened = known.log if known else self._open()
        self._log = self._opened.delta_log

    def _open(self) -> OpenedLog:
        opened = self._scala.replayed_log.open(hadoop_path(self.location), self.hadoop_conf)
        return OpenedLog(opened, str(opened.dataPath().toString()))

    def snapshot(self) -> Any:
        """Return the newest snapshot; raises InvalidInput where there is no Delta table."""
        self._read.clear()
        self._known.clear()
        cached = self._snapshots.get(self.location)
        found = None if cached is None else newest(cached, self, self._scala)
        if found is not None:
            self._snapshots.put(self.location, found)
            self._newest = found
            return found.snapshot
        snapshot = self._log.update(_MUST_BE_FRESH, self._scala.none, self._scala.none)
        if snapshot.version() < 0:
            raise InvalidInput(f"there is no Delta table at {self.location}", field="location")
        return snapshot if cached is None else self.cache(snapshot)

    def cache(self, snapshot: Any) -> Any:
        """Cache a snapshot whose files are listed, so that later ones follow from it without a Spark job; return it.

        It also becomes the snapshot of Delta's own log: the one that was listed holds megabytes of query plans.
        """
        version = int(snapshot.version())
        digest = self.digest(version)
        if digest is None:
            return snapshot
        complete = with_checksum(snapshot, self._log, self._scala)
        if int(self._log.unsafeVolatileSnapshot().version()) == version:
            self._log.installSnapshot(complete, int(time.time() * 1000))
        shape = self.shape(complete)
        self._newest = CachedSnapshot(self._opened, complete, version, digest, version, shape)
        self._snapshots.put(self.location, self._newest)
        return complete

    def transaction(self, snapshot: Any = None) -> Any:
        """Open a transaction on this snapshot, on the newest one if none is given."""
        given = self.snapshot() if snapshot is None else snapshot
        return self._scala.rewrite_transaction(self._log, given)

    def stored(self, snapshot: Any) -> Any:
        """Return the snapshot by which its files are read and written in a rewrite; to read, never to commit on."""
        given, found = self._stored
        if given is not snapshot:
            found = self._described(snapshot)
            self._stored = snapshot, found
        return found

    def _described(self, snapshot: Any) -> Any:
        shape = self.shape(snapshot)
        stored = shape.stored
        if stored is shape:
            return snapshot
        metadata = self._scala.metadata(json.dumps(json.loads(stored.metadata_json)["metaData"]))
        return self._scala.next_snapshot.described(self._log, snapshot, metadata)

    def shape(self, snapshot: Any) -> TableShape:
        """Return the metadata and protocol of a snapshot."""
        if self._newest is not None and snapshot is self._newest.snapshot:
            known: TableShape = self._newest.shape
            return known
        return TableShape(*self._scala.shape(snapshot))

    def version(self, snapshot: Any) -> int:
        """Return the version of a snapshot."""
        if self._newest is not None and snapshot is self._newest.snapshot:
            return self._newest.version
        return int(snapshot.version())

    def partitions(self, snapshot: Any, columns: tuple[PartitionColumn, ...]) -> frozenset[PartitionKey]:
        """Return the keys of all partitions that have live files, by one Spark job."""
        texts = snapshot.allFiles().selectExpr(self._scala.seq(["to_json(partitionValues) AS text"])).distinct()
        values = (json.loads(row["text"]) for row in self._scala.rows(texts))
        return frozenset(
            partition_key(columns, {one.physical: found.get(one.physical) for one in columns}) for found in values
        )

    def files(self, snapshot: Any, condition: str = "") -> str:
        """Return the live files as a JSON array of `add` fields, filtered by an SQL condition on those fields."""
        files = snapshot.allFiles()
        if condition:
            files = files.filter(condition)
        return self._scala.to_json(files.collectAsList())

    def few_files(self, snapshot: Any, at_most: int) -> str | None:
        """Return all live files as a JSON array of `add` fields, None if there are more than that."""
        checksum = snapshot.checksumOpt()
        if checksum.isDefined() and int(checksum.get().numFiles()) > at_most:
            return None
        files = self._log.liveFiles(snapshot)
        if files is None:
            files = snapshot.allFiles().limit(at_most + 1).collectAsList()
        return None if files.size() > at_most else self._scala.to_json(files)

    def frame(self, snapshot: Any, adds: Any) -> Any:
        """Return the JVM's frame that reads exactly these files as they are stored, deletion vectors applied."""
        return self._log.createDataFrame(self.stored(snapshot), adds, _NOT_STREAMING, self._scala.some("Optimize"))

    def rows(self, snapshot: Any, adds: Any) -> int:
        """Count the live rows of these files by reading them."""
        return int(self.frame(snapshot, adds).count())

    def write_options(self, **options: str) -> Any:
        """Return Delta's options for one write."""
        conf = jvm_session(self.session).sessionState().conf()
        return self._scala.delta_options(self._scala.map(options), conf)

    def commit(
        self, txn: Any, actions: Any, metrics: Mapping[str, int], compared_by: str = "", *, operation: Any = None
    ) -> int:
        """Commit actions as an OPTIMIZE of chosen files, or as another operation; returns the version.

        compared_by: what its userMetadata say of proofreading.

        Raises whatever Delta raises, and NotAsked where it failed before the log was asked for the commit.
        """
        return self._commit(txn, actions, operation or self._scala.optimize, metrics, compared_by)

    def commit_vacuum_end(self, metrics: Mapping[str, int]) -> int:
        """Commit that a vacuum has deleted all that was due, as Delta's own does; returns the version."""
        operation = self._scala.vacuum_end(COMPLETED)
        return self._commit(self.transaction(), self._scala.seq(), operation, metrics)

    def commit_properties(self, snapshot: Any, properties: Mapping[str, str]) -> int:
        """Commit that properties are set, unless the metadata changed after this snapshot; returns the version.

        Raises whatever Delta raises.
        """
        txn, metadata = self.transaction(snapshot), json.loads(self.shape(snapshot).metadata_json)["metaData"]
        metadata["configuration"] = {**(metadata.get("configuration") or {}), **properties}
        txn.updateMetadata(self._scala.metadata(json.dumps(metadata)), _IGNORES_DEFAULTS)
        operation = self._scala.set_properties_operation(self._scala.map(dict(properties)))
        return self._commit(txn, self._scala.seq(), operation, {})

    def commit_delete(
        self, txn: Any, actions: Any, condition: str, metrics: Mapping[str, int], compared_by: str = ""
    ) -> int:
        """Commit actions as a DELETE under a condition, an SQL expression that is only shown; returns the version."""
        operation = self._scala.delete_operation(self._scala.seq([self._scala.sql_parser.parseExpression(condition)]))
        return self._commit(txn, actions, operation, metrics, compared_by)

    def _commit(self, txn: Any, actions: Any, operation: Any, metrics: Mapping[str, int], compared_by: str = "") -> int:
        mark = commit_metadata.with_proofread(self.session.conf.get(USER_METADATA, ""), compared_by)
        marked = {USER_METADATA: mark} if mark else {}
        settings = {where: dict.fromkeys(off, "false") | marked for where, off in _FALSE_WHILE_COMMITTING.items()}
        texts = json.dumps(metrics), json.dumps(settings)
        try:
            done = self._scala.log_commit.commit(
                txn, self.hadoop_conf, jvm_session(self.session), actions, operation, *texts
            )
        except Exception as error:
            if not txn.isAsked():
                raise NotAsked(f"the log of {self.location} was not asked for the commit") from error
            raise
        version, interval = map(int, str(done).split())
        if version % interval == 0:
            self._checkpoint_after(version, interval)
        return version

    def _checkpoint_after(self, version: int, interval: int) -> None:
        """Write the checkpoint that is due at this commit; a failure is only logged."""
        try:
            # Beyond this version, it is the record of a table that was here before.
            if not version - interval < self._checkpoints.newest() <= version:
                self.checkpoint(self.snapshot())
        except Exception as error:  # noqa: BLE001 - the commit is made, and the next due version has a checkpoint again
            _log.warning("checkpoint_not_written", table=self.location, version=version, error=first_line(error))

    def checkpoint(self, snapshot: Any) -> None:
        """Write a checkpoint of this snapshot, and clean up the log; Delta logs what fails, and raises nothing."""
        self._checkpoints.write(snapshot, has_checksum_file=self._checksum(snapshot) == _IN_LOG)

    @cached_property
    def _checkpoints(self) -> CheckpointWriter:
        return CheckpointWriter(self._scala, self.session, self._log)

    def _checksum(self, snapshot: Any) -> str:
        return str(self._scala.log_commit.checksum(self.hadoop_conf, self._log_path, snapshot))

    def touched_paths(self, *, after: int, until: int) -> Mapping[str, int]:
        """Map the path of each file action in the commits `after` < version <= `until` to the newest such version.

        Paths are spelled as in the log.
        """
        touched: dict[str, int] = {}
        for version, actions in enumerate(self.actions_of_snapshot(after=after, until=until), after + 1):
            for action in actions:
                body = action.get("add") or action.get("remove")
                if body is not None:
                    touched[body["path"]] = version
        return touched

    def actions_of_snapshot(self, *, after: int, until: int) -> Iterator[list[dict[str, Any]]]:
        """Yield the actions of each of the commits `after` < version <= `until`, as they were read for the snapshot."""
        for version in range(after + 1, until + 1):
            yield self._required(version, self.commit_of_snapshot(version)).actions

    def find_commit(self, origin: CommitOrigin, *, since_version: int) -> int | None:
        """Return the version above `since_version` that carries this job and token, None if there is none."""
        newest = int(self.snapshot().version())
        if newest - since_version > MAX_COMMITS_SEARCHED:
            raise PermanentError(
                f"cannot determine whether job {origin.job} (token {origin.token}) has committed to {self.location}: "
                f"{newest - since_version} commits since version {since_version}, and only "
                f"{MAX_COMMITS_SEARCHED} are searched; search for its userMetadata with DESCRIBE HISTORY",
            )
        versions = range(since_version + 1, newest + 1)
        return next((version for version in versions if origin in self._origins(version)), None)

    def _origins(self, version: int) -> tuple[CommitOrigin, ...]:
        """Read a commit's first line only: Delta, which wrote ours, puts commitInfo there."""
        try:
            lines = self._log.store().readAsIterator(self._commit_path(version), self.hadoop_conf)
        except Py4JError as error:
            if "FileNotFoundException" in jvm_class_names(error):
                return ()  # Cleaned up by log retention, days after any lease: cannot be the commit requested.
            raise
        try:
            first = json.loads(lines.next()) if lines.hasNext() else {}
        finally:
            lines.close()
        return decode_origins((first.get("commitInfo") or {}).get("userMetadata"))

    def commit_file(self, version: int) -> CommitFile | None:
        """Read one commit, None if it does not exist: it was undone, or log retention has removed it."""
        text = self._scala.commit_file.read(self.hadoop_conf, self._log_path, version)
        return None if text is None else CommitFile(text[:DIGEST_DIGITS], text[DIGEST_DIGITS:])

    def commits_since(self, cached: CachedSnapshot, *, at_most: int) -> NewCommits:
        """Return the commits after a snapshot, not known if there are more than this, or it is no longer the table's.

        The commits are read before the digest: if one of them is undone later, the next look notices.
        """
        is_recent = self._snapshots.is_recent(self.location)
        since = self._scala.next_snapshot.since
        answer = since(self.hadoop_conf, self._log, cached.snapshot, cached.digest, at_most, is_recent)
        found = decode_new_commits(b64decode(answer))
        self._read |= enumerate(found.commits, cached.version + 1)
        if found.is_known:
            self._known |= {cached.version: cached.digest} | {one: read.digest for one, read in self._read.items()}
        return found

    def commit_of_snapshot(self, version: int) -> CommitFile | None:
        """Return a commit as it was read for the newest snapshot; read now if it was not."""
        found = self._read.get(version) or self.commit_file(version)
        if found is not None:
            self._read[version] = found
        return found

    def actions(self, version: int) -> list[dict[str, Any]]:
        """Return all actions of one commit, each a dictionary with one key; raises RetryableError if it is gone."""
        return self._required(version, self.commit_file(version)).actions

    def _required(self, version: int, found: CommitFile | None) -> CommitFile:
        if found is None:
            raise RetryableError(f"commit {version} of {self.location} is gone: it was undone, or removed as too old")
        return found

    def digest(self, version: int) -> str | None:
        """Return the digest of one commit as of the last look, None if it does not exist; its bytes stay in the JVM."""
        known: str | None = self._known.get(version)
        return known or self._scala.commit_file.digest(self.hadoop_conf, self._log_path, version)

    def has_commit(self, version: int, digest: str | None) -> bool:
        """Return whether the commit still has this digest: it may have been undone, and replaced by another."""
        return digest is not None and self.digest(version) == digest

    def _commit_path(self, version: int) -> Any:
        return self._scala.path(self._log.logPath(), f"{version:020d}.json")

    @cached_property
    def _log_path(self) -> str:
        return f"{self.root}/_delta_log"

    def delete(self, keys: Iterable[FileKey]) -> int:
        """Delete data files of ours that no commit refers to; returns how many existed."""
        return sum(bool(self.store.delete(self.data_path(key), _NOT_RECURSIVE)) for key in keys)

    def data_path(self, key: FileKey) -> Any:
        """Return the location of a data file as Hadoop's `Path`."""
        return self._scala.path(self.data_location(key))

    def data_location(self, key: FileKey) -> str:
        """Return the location of a data file as Hadoop spells paths: not URI-encoded, as they are in the log."""
        if is_absolute(key.path):
            return str(self._scala.path(self._scala.uri(key.path)).toString())
        return f"{self.root}/{file_name(key.path)}"  # No call into the JVM: there may be thousands of files.

    @property
    def root(self) -> str:
        """The table's folder as Hadoop spells it."""
        return self._opened.root

    def hidden_rows(self, files: Any, at_most: int) -> Any:
        """Return the rows that each file's deletion vector hides (`HiddenRows.java`); None if they are more than this.

        `files`: a Scala `Seq` of `AddFile`s.
        """
        return self._scala.row_vectors.hidden(self._log, self.hadoop_conf, files, at_most)

    def write_vector(self, positions: Iterable[int]) -> dict[str, Any]:
        """Write a deletion vector that hides these rows of a file, in a file of its own; return its descriptor."""
        text = json.dumps(list(positions))
        return json.loads(self._scala.row_vectors.write(self._log, self.hadoop_conf, text))  # type: ignore[no-any-return]

    def sizes(self, keys: Iterable[FileKey]) -> dict[FileKey, int | None]:
        """Ask the store for the sizes of data files in bytes, None for one that is not there."""
        wanted = list(keys)
        paths = json.dumps([self.data_location(key) for key in wanted])
        sizes = json.loads(self._scala.data_files.sizes(self.hadoop_conf, paths))
        return dict(zip(wanted, sizes, strict=True))

    def list_names(self, folder: str, pattern: str) -> list[str]:
        """List the names in a folder below the table's root that match this glob pattern, relative to the root.

        The folder's name must need no escaping; one that is not there is empty.
        """
        root = self._log.dataPath()
        place = self._scala.path(root, folder) if folder else root
        try:
            found = self.store.listStatus(place, self._scala.glob_filter(pattern))
        except Py4JError as error:
            if "FileNotFoundException" not in jvm_class_names(error):
                raise
            return []
        names = [str(status.getPath().getName()) for status in found]
        return [f"{folder}/{name}" if folder else name for name in names]

    @cached_property
    def hadoop_conf(self) -> Any:
        """Hadoop's configuration for the table's store."""
        return self._scala.hadoop_conf(self.session)

    @property
    def log_folder(self) -> Any:
        """The folder of the log as Hadoop's `Path`."""
        return self._log.logPath()

    @property
    def delta_log(self) -> Any:
        """Delta's own object, for what Delta itself writes into the log."""
        return self._log

    @cached_property
    def store(self) -> Any:
        """Hadoop's file system of the table."""
        return self._log.dataPath().getFileSystem(self.hadoop_conf)
