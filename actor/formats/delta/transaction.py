"""The exact rewrite: replace precisely the planned files, in one commit that changes no data.

Theory of operation. Outputs are written first, through a transaction that is never committed. Then, and only then, a
fresh transaction is opened, groups whose inputs changed meanwhile are set aside, and the rest is committed: the window
in which Lakewright and other writers could abort each other is as short as that commit (see `commit.py`). Delta runs a
commit of nothing but `dataChange=false` file actions under snapshot isolation, where appends never conflict with it; a
`txn` action would undo that, so identity travels in userMetadata only.
"""

import time
from dataclasses import dataclass
from functools import partial

from actor.formats.delta.actions import require_origins, with_range
from actor.formats.delta.commit import CommitResult, Committer
from actor.formats.delta.footers import SchemaCache
from actor.formats.delta.free_space import MIB, require_free_space
from actor.formats.delta.live_files import resolve_live
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_paths import OutputPaths, naming, new_prefix
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.preflight import check_identity, check_table
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.formats.delta.write import GroupWriter
from actor.formats.delta.write_groups import WriteContext, WriteResult, write_groups
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits, CopyRule
from actor.jvm.scala import Scala
from actor.jvm.sessions import Sessions
from actor.ports import Control, GroupOutcome, GroupStatus, RewriteOutcome, RewriteRequest
from shared.table import PartitionColumn

FILES_WRITTEN = "files_written"
COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """How the executor works: threads that write groups at once, and commit attempts before groups are given back."""

    write_threads: int = 2  # Of groups, each of which needs a core at a time; more only share them.
    commit_attempts: int = 5  # Each attempt means that others committed on our files in the second before.
    reserved_disk_bytes: int = 256 * MIB  # Left free on a local disk: the table's own writers need it.
    copy_limits: CopyLimits = DEFAULT_LIMITS  # What outputs may be like whose row groups are copied, not encoded.


class TransactionExecutor:
    """Rewrites through Delta's own transaction, file by file as planned."""

    is_exact = True

    def __init__(
        self,
        scala: Scala,
        sessions: Sessions,
        read_cache: ReadCache,
        snapshots: SnapshotCache,
        settings: TransactionSettings,
    ) -> None:
        self._scala = scala
        self._sessions = sessions
        self._read_cache = read_cache
        self._snapshots = snapshots
        self._settings = settings
        self._classes = ParquetClasses()
        self._schemas = SchemaCache()

    def stop_copying(self) -> bool:
        """Encode every group from now on; returns whether row groups could be copied until now."""
        return self._classes.give_up()

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files; groups whose inputs are not live return CONFLICTED, those not begun SKIPPED.

        Groups that fail for themselves return FAILED if others are written.

        Raises:
            LeaseLost: the control forbade the commit; nothing was committed, our files are deleted.
            Conflict: metadata changed so that the written files no longer fit, or others won every attempt.
            Corrupt: rows in and rows out differ; nothing was committed.
            RetryableError: Spark failed, the disk is full, outputs are missing before the commit, or the outcome of the
                commit is unknown and the log does not show it.
        """
        origin, *others = require_origins(request.user_metadata)
        prefix = new_prefix()
        lease = self._sessions.lease(
            tag=origin.job,
            more_tags=[other.job for other in others],
            user_metadata=request.user_metadata,
            conf=naming(prefix),
        )
        with lease as owned, self._sessions.bound(owned) as session:
            log = TableLog(self._scala, session, request.location, self._snapshots)
            started = time.monotonic()
            reading = log.transaction()
            shape = log.shape(reading.snapshot())
            check_identity(log.location, shape.metadata, request.table_uuid)
            check_table(log.location, shape.metadata, shape.protocol)
            committer = Committer(self._scala, log, shape, origin, control)
            columns = shape.metadata.partition_columns
            paths = OutputPaths(self._scala, log, reading, shape, prefix)
            known = [(group, self._read_cache.live_group(request.location, group, shape)) for group in request.groups]
            live = resolve_live(log, reading.snapshot(), known, columns)
            input_bytes = sum(group.group.bytes for group in live)
            require_free_space(log, input_bytes, reserved_bytes=self._settings.reserved_disk_bytes)
            tasks = ParquetTasks(self._scala, log, paths, self._classes, self._schemas)
            rule = CopyRule(request.may_copy, request.full_bytes, self._settings.copy_limits)
            workshop = WriteContext(
                writer=GroupWriter(self._scala, log, reading, paths, tasks, rule),
                threads=self._settings.write_threads,
                bound=partial(self._sessions.bound, owned),
                should_stop=control.should_stop,
                is_live=lambda group: bool(resolve_live(log, log.snapshot(), [(group.group, group)], columns)),
                discard=committer.discard,
                sweep=lambda kept: committer.sweep(paths, kept),
                has_lost_attempts=lambda: paths.has_lost_attempts,
            )
            prepared = write_groups(workshop, live)
            written_at = time.monotonic()
            landing = self._commit(prepared, committer, control)
            return _outcome(request, prepared, landing, (started, written_at), shape.metadata.sort_key)

    def _commit(self, writes: WriteResult, committer: Committer, control: Control) -> CommitResult:
        if not writes.written:
            return CommitResult(None, (), (), 0)
        try:
            control.reached(FILES_WRITTEN)
        except BaseException:
            committer.discard(writes.written)
            raise
        landing = committer.commit(writes.written, attempts=self._settings.commit_attempts)
        if landing.version is not None:
            control.reached(COMMITTED)
        return landing


def _outcome(
    request: RewriteRequest,
    writes: WriteResult,
    commit: CommitResult,
    times: tuple[float, float],
    sort_key: PartitionColumn | None,
) -> RewriteOutcome:
    """`times`: when the rewrite began, and when its files were written."""
    started, written_at = times
    landed = {
        group.live.group: GroupOutcome(
            group.live.group,
            GroupStatus.COMMITTED,
            tuple(with_range(output, sort_key) for output in group.outputs),
            group.rows,
            is_copied=group.encoded_because is None,
            encoded_because=group.encoded_because or "",
            by_column=group.by_column,
        )
        for group in commit.committed
    }
    skipped = {group: GroupOutcome(group, GroupStatus.SKIPPED) for group in writes.skipped}
    failed = {group: GroupOutcome(group, GroupStatus.FAILED, error=error) for group, error in writes.failed}
    known = landed | skipped | failed
    return RewriteOutcome(
        version=commit.version,
        groups=tuple(known.get(group) or GroupOutcome(group, GroupStatus.CONFLICTED) for group in request.groups),
        prepare_ms=round((written_at - started) * 1000),
        commit_ms=round((time.monotonic() - written_at) * 1000),
        conflicts=commit.conflicts,
    )
