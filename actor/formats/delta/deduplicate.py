"""Removes the older rows of each key, partition by partition: one commit for each partition that has any.

Only partitions to which a commit added data since the last run are read, and of these only those that the owner's
filter permits. The last commit of a run names the version up to which all rows were compared, from which the decider
and the next run learn where to begin; it is empty. A run that dies has removed rows in some partitions, and the next
one does the rest: removed rows are not found again. A partition that is refused keeps no other from its turn, and the
run ends with its refusal: the version is not named.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from actor.formats.delta.actions import LoggedFile, json_array, read_paths
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.footers import Footers
from actor.formats.delta.job_permission import JobPermission
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths, naming, new_prefix
from actor.formats.delta.preflight import check_files, check_table
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_rows import refused_sizes
from actor.formats.delta.row_removal import NOTHING_REMOVED, RemovalTarget, RemovalWriter
from actor.formats.delta.snapshot import list_partition
from actor.formats.delta.superseded_rows import SupersededRows, files_by_name
from actor.formats.delta.written_group import WrittenGroup
from actor.jvm.scala import jvm_context
from actor.jvm.sessions import Sessions
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import check_identity, require_free_space, require_single_entries
from actor.rewrite.commit import Committer
from shared.errors import Conflict, RefusedFiles, Unsupported
from shared.formats.delta_keys import find_problem
from shared.jobs.options import DeduplicateOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import partition_key
from shared.paths.boundary import Boundary
from shared.policy.key_rule import KeyRule
from shared.policy.partition_filter import permits
from shared.table import FileKey, PartitionKey, TableMetadata

READS = 3
"""Times that a partition is read at most: each time others changed a file of it before the commit."""

MAX_COMMITS_READ = 10_000
"""Commits since the last run that are read to learn which partitions changed; beyond, all partitions are compared."""


@dataclass(slots=True)
class Deduplication:
    """One run on one table; `reserved_disk_bytes` stay free on a local disk."""

    scala: DeltaScala
    sessions: Sessions
    boundary: Boundary
    proofreader: Proofreader
    job: TableJob
    control: TableJobControl
    reserved_disk_bytes: int
    _figures: Counter[str] = field(default_factory=Counter, init=False)
    _commits: list[int] = field(default_factory=list, init=False)

    def run(self) -> TableJobOutcome:
        """Compare the rows of all partitions that changed. Raises Unsupported for a key that must not be compared."""
        started_ms, options = int(time.time() * 1000), DeduplicateOptions.decode(self.job.options)
        with self._log() as log:
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            reason = self._not_wanted(shape)
            rule = None if reason else self._rule(shape)
            if rule is None:
                return TableJobOutcome(version, shape.metadata, reason=reason or "the table has no primary key")
            changed = self._changed(log, snapshot, options.since_version)
            permitted = partial(permits, self.job.policy.filter, columns=shape.metadata.partition_columns)
            partitions = sorted(filter(permitted, changed))
        mark = CommitMetadata(
            self.job.origin, mode=self.job.kind, started_ms=started_ms, traceparent=self.job.trace or None
        )
        refused: RefusedFiles | None = None
        for number, partition in enumerate(partitions):
            self.control.reached("comparing", number, len(partitions))
            if self.control.should_stop():
                return self._outcome(version, shape.metadata, is_complete=False)
            try:
                reason = self._remove_from(partition, rule, replace(mark, partition=partition), is_dry=options.dry_run)
            except RefusedFiles as error:
                refused = refused or error
            self.control.measured(self._figures)
            if reason:
                return replace(self._outcome(version, shape.metadata, is_complete=False), reason=reason)
        if refused is not None:
            raise refused
        if partitions and not options.dry_run:
            self._end(replace(mark, deduplicated_version=version))
        # What was only counted satisfies no request.
        return self._outcome(-1 if options.dry_run else version, shape.metadata, is_complete=True)

    def _outcome(self, version: int, metadata: TableMetadata, *, is_complete: bool) -> TableJobOutcome:
        return TableJobOutcome(version, metadata, tuple(self._commits), dict(self._figures), is_complete)

    @contextmanager
    def _log(self, mark: CommitMetadata | None = None, prefix: str = "") -> Iterator[TableLog]:
        """Open the table's log in a session of its own, whose commits carry the mark, and whose files the prefix."""
        text = "" if mark is None else mark.encode()
        conf = naming(prefix) if prefix else {}
        lease = self.sessions.lease(tag=self.job.origin.job, user_metadata=text, conf=conf)
        with lease as owned, self.sessions.bound(owned) as session:
            yield TableLog(self.scala, session, self.job.location)

    def _not_wanted(self, shape: TableShape) -> str:
        """Return why the job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""
        check_identity(self.job.location, shape.metadata, self.job.table_uuid)
        check_table(self.job.location, shape.metadata, shape.protocol)
        return reason_not_wanted(self.job, shape.metadata)

    def _rule(self, shape: TableShape) -> KeyRule | None:
        rule = KeyRule.of(self.job.policy)
        fields = json.loads(json.loads(shape.metadata_json)["metaData"]["schemaString"])["fields"]
        problem = None if rule is None else find_problem(rule, shape.metadata, fields)
        if problem is not None:
            raise Unsupported(f"{self.job.location}: {problem.message}; no row was removed", field=problem.property)
        return rule

    def _changed(self, log: TableLog, snapshot: Any, since_version: int) -> frozenset[PartitionKey]:
        """Return the partitions to which data was added after a version; all where that cannot be read."""
        columns, newest = log.shape(snapshot).metadata.partition_columns, int(snapshot.version())
        live = log.partitions(snapshot, columns)
        if not 0 <= since_version <= newest or newest - since_version > MAX_COMMITS_READ:
            return live
        found: set[PartitionKey] = set()
        for version in range(since_version + 1, newest + 1):
            commit = log.commit_file(version)
            if commit is None or any("metaData" in action for action in commit.actions):
                return live
            adds = (action["add"] for action in commit.actions if "add" in action)
            found |= {partition_key(columns, add.get("partitionValues") or {}) for add in adds if add["dataChange"]}
        return live & found

    def _remove_from(self, partition: PartitionKey, rule: KeyRule, mark: CommitMetadata, *, is_dry: bool) -> str:
        """Remove the older rows of one partition; return why no more rows are to be removed, if they are not.

        Raises Conflict if others changed its files each time.
        """
        for _ in range(READS):
            prefix = new_prefix()
            with self._log(mark, prefix) as log:
                snapshot = log.snapshot()
                shape = log.shape(snapshot)
                reason = self._not_wanted(shape)
                if not reason and self._rule(shape) != rule:
                    reason = "the key changed since the decision, which is made again"
                paths = OutputPaths(self.scala, log, snapshot, shape, prefix)
                if reason or self._try(log, paths, snapshot, partition, rule, is_dry=is_dry):
                    return reason
            self._figures["conflicts"] += 1
        raise Conflict(
            f"others changed files of {partition} at {self.job.location} each of {READS} times before the removal of "
            "older rows could be committed; it is tried again later",
            kind="Stale",
        )

    def _try(
        self, log: TableLog, paths: OutputPaths, snapshot: Any, partition: PartitionKey, rule: KeyRule, *, is_dry: bool
    ) -> bool:
        """Read a partition and remove its older rows; False if others changed its files before the commit."""
        version, shape = int(snapshot.version()), paths.shape
        digest = log.digest(version)  # Before the rows are read: a commit that is undone meanwhile must be noticed.
        files = tuple(list_partition(log, snapshot, shape.metadata.partition_columns, partition))
        group = FileGroup(partition, tuple(logged.file for logged in files), RewriteMode.PURGE)
        live = LiveGroup(group, files, version, digest)
        self._check_files(live)
        named = files_by_name(files, self.job.location)
        frame = self._frame(log, snapshot, files)
        with refused_sizes(log, files), SupersededRows(self.scala, frame, rule) as rows:
            counts = {named[name]: count for name, count in rows.counts().items()}
            if is_dry or not counts:
                self._count(counts)
                return True
            replaced_bytes = sum(logged.file.size_bytes for logged in counts)
            require_free_space(log.location, replaced_bytes, reserved_bytes=self.reserved_disk_bytes)
            target = RemovalTarget(self.scala, log, shape, self.job.origin)
            committer = Committer(target, JobPermission(self.control))
            footers = FooterReader(self.scala, log)
            output = OutputFormat(Footers(self.scala, log, footers), shape, self.job.location)
            proofs = Proofs(self.proofreader, log, shape, self.job.policy.proofread, self.job.origin.job, footers)
            try:
                removal = RemovalWriter(self.scala, snapshot, paths, output, proofs).write(live, rows, counts)
            except BaseException:
                self._sweep(committer, paths, ())
                raise
            if len(removal.outputs) < len(counts) or not jvm_context(log.session).isLocal():
                # Of a file that lost all rows, Delta writes an empty one, and does not report it. Nor does Spark report
                # the task of a lost executor that it repeated, and the file that was begun.
                self._sweep(committer, paths, removal.paths)
            try:
                landed = committer.commit([removal])
            except Conflict:
                return False
        if landed.version is None:
            return False
        self._commits.append(landed.version)
        self._count(counts)
        if removal.proof is not None:
            self._figures.update(removal.proof.figures)
        self._figures["files_written"] += len(removal.outputs)
        self._figures["bytes_written"] += sum(logged.file.size_bytes for logged in removal.outputs)
        self.control.reached("committed")
        return True

    def _sweep(self, committer: Committer[WrittenGroup], paths: OutputPaths, kept: Sequence[str]) -> None:
        committer.tidy(lambda: [key.path for key in paths.leftovers(set(map(FileKey, kept)))])

    def _check_files(self, live: LiveGroup) -> None:
        data = live.group.files
        check_files(self.job.location, data)
        self.boundary.check_files(self.job.location, data)
        self.boundary.check_links(self.job.location, read_paths(live.inputs))
        require_single_entries(self.job.location, live, [live])

    def _frame(self, log: TableLog, snapshot: Any, files: Sequence[LoggedFile]) -> Any:
        return log.frame(snapshot, self.scala.adds(json_array(files)))

    def _count(self, counts: dict[LoggedFile, int]) -> None:
        self._figures["partitions_read"] += 1
        self._figures["rows_removed"] += sum(counts.values())
        self._figures["files_replaced"] += len(counts)
        self._figures["bytes_replaced"] += sum(logged.file.size_bytes for logged in counts)

    def _end(self, mark: CommitMetadata) -> None:
        """Commit the version up to which all rows were compared."""
        self.control.may_change()
        with self._log(mark) as log:
            condition, txn = RemovalTarget.condition, log.transaction()
            self._commits.append(log.commit_delete(txn, self.scala.seq(), condition, NOTHING_REMOVED))
