"""Removes the older rows of each key, partition by partition: one commit for each partition that has any.

Only partitions to which a commit added data since the last run are read, and of these only those that the owner's
filter permits. A run that dies has removed rows in some partitions, and the next one does the rest: removed rows are
not found again. A partition that is refused keeps no other from its turn, and the run ends with its refusal: the
version is not named.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

from actor.attempts import READS
from actor.formats.delta.actions import json_array
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_paths import OutputPaths, new_prefix
from actor.formats.delta.preflight import check_files
from actor.formats.delta.read_rows import refused_sizes
from actor.formats.delta.removal_job import RemovalJob, schema_fields
from actor.formats.delta.snapshot import list_partition
from actor.formats.delta.superseded_rows import SupersededRows, files_by_name
from actor.not_wanted import may_lose_rows
from actor.ports import TableJobOutcome
from shared.errors import Conflict, RefusedFiles, Unsupported
from shared.formats.delta_keys import find_problem
from shared.jobs.options import DeduplicateOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import partition_key
from shared.policy.key_rule import KeyRule
from shared.policy.partition_filter import lets_in
from shared.table import PartitionKey

MAX_COMMITS_READ = 10_000
"""Commits since the last run that are read to learn which partitions changed; beyond, all partitions are compared."""


@dataclass(slots=True)
class Deduplication(RemovalJob):
    """One run on one table."""

    def run(self) -> TableJobOutcome:
        """Compare the rows of all partitions that changed. Raises Unsupported for a key that must not be compared."""
        mark, options = self.job.mark(), DeduplicateOptions.decode(self.job.options)
        with self.log() as log:
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            reason = self.not_wanted(shape)
            rule = None if reason else self._rule(shape)
            if rule is None:
                return TableJobOutcome(version, shape.metadata, reason=reason or "the table has no primary key")
            changed = self._changed(log, snapshot, options.since_version)
            columns, now_ms = shape.metadata.partition_columns, time.time_ns() // 1_000_000
            partitions = sorted(one for one in changed if may_lose_rows(self.job, one, columns, now_ms))
        refused: RefusedFiles | None = None
        for number, partition in enumerate(partitions):
            self.control.reached("comparing", number, len(partitions))
            if self.control.should_stop():
                return self.outcome(version, shape.metadata, is_complete=False)
            try:
                reason = self._remove_from(partition, rule, replace(mark, partition=partition), is_dry=options.dry_run)
            except RefusedFiles as error:
                refused = refused or error
            self.control.measured(self.figures)
            if reason:
                return self.outcome(version, shape.metadata, is_complete=False, reason=reason)
        if refused is not None:
            raise refused
        if partitions and not options.dry_run:
            self.end(version, SupersededRows.condition)
        # What was only counted satisfies no request.
        return self.outcome(-1 if options.dry_run else version, shape.metadata, is_complete=True)

    def _rule(self, shape: TableShape) -> KeyRule | None:
        rule = KeyRule.of(self.job.policy)
        problem = None if rule is None else find_problem(rule, shape.metadata, schema_fields(shape))
        if problem is not None:
            raise Unsupported(f"{self.job.location}: {problem.message}; no row was removed", field=problem.property)
        return rule

    def _changed(self, log: TableLog, snapshot: Any, since_version: int) -> frozenset[PartitionKey]:
        """Return the partitions to which data was added after a version; all where that cannot be read.

        All as well where time may have let others into the filter, which the last run did not compare.
        """
        columns, newest = log.shape(snapshot).metadata.partition_columns, int(snapshot.version())
        live = log.partitions(snapshot, columns)
        is_readable = 0 <= since_version <= newest and newest - since_version <= MAX_COMMITS_READ
        if not is_readable or lets_in(self.job.policy.filter):
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
            with self.log(mark, prefix) as log:
                snapshot = log.snapshot()
                shape = log.shape(snapshot)
                reason = self.not_wanted(shape)
                if not reason:
                    self._rule(shape)  # The schema may forbid by now what it permitted.
                paths = OutputPaths(self.scala, log, snapshot, shape, prefix)
                if reason or self._try(log, paths, snapshot, partition, rule, is_dry=is_dry):
                    return reason
            self.figures["conflicts"] += 1
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
        check_files(self.job.location, live.group.files)
        self.check_live(live)
        named = files_by_name(files, self.job.location)
        frame = log.frame(snapshot, self.scala.adds(json_array(files)))
        with refused_sizes(log, files), SupersededRows(self.scala, frame, rule) as rows:
            counts = {named[name]: count for name, count in rows.counts().items()}
            if not is_dry and counts and not self.write_without(log, paths, snapshot, live, rows, counts):
                return False
        self.figures["partitions_read"] += 1
        self.count(counts)
        return True
