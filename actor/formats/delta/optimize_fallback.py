"""The fallback if Delta's internal API is not as expected: OPTIMIZE ... WHERE, which is public, but not exact.

OPTIMIZE takes every small file of the partition, also those that arrived after planning, and commits on its own. So
the lease is checked before the statement instead of before its commit, a group is committed if the commit removed all
its inputs, and outputs are reported per partition, not per group. A group that the commit touched only in part is
stale: the rest has to be planned again. Single files are left alone: no deletion vector is purged. And rows can be
compared only after its commit: where they differ, the error names the version to restore.
"""

import time
from collections.abc import Sequence
from itertools import groupby

from actor.formats.delta.actions import decode_add, require_origins
from actor.formats.delta.live_files import LiveGroup, resolve_live
from actor.formats.delta.log import TableLog
from actor.formats.delta.optimize_statement import MAX_FILE_SIZE, MIN_FILE_SIZE, OptimizeStatement
from actor.formats.delta.preflight import check_identity, check_table
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.formats.delta.transaction import COMMITTED
from actor.formats.delta.write import logical_rows
from actor.jvm.scala import Scala
from actor.jvm.sessions import Sessions
from actor.ports import Control, GroupOutcome, GroupStatus, RewriteOutcome, RewriteRequest
from shared.errors import RetryableError
from shared.formats.delta import FORMAT
from shared.layout.planner import FileGroup
from shared.locations import hadoop_path
from shared.partitions import partition_values
from shared.sql_text import literal, quoted, table_name
from shared.table import PartitionColumn, PartitionKey


class OptimizeExecutor:
    """Rewrites by SQL, one statement and one commit per partition."""

    is_exact = False

    def __init__(self, scala: Scala, sessions: Sessions, read_cache: ReadCache, snapshots: SnapshotCache) -> None:
        self._scala = scala
        self._sessions = sessions
        self._read_cache = read_cache
        self._snapshots = snapshots

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Compact the partitions of the groups; see the module for how that differs from what was asked.

        Raises:
            LeaseLost: the control forbade a statement; partitions before it are committed.
            Conflict: others took the files while the statement ran.
            Corrupt: the rows in and out of the commit differ; it is made, and the message names the version to restore.
            RetryableError: a group has an order; Spark failed; or the outcome is unknown and the log does not show it.
        """
        if any(group.order is not None for group in request.groups):
            raise RetryableError(
                f"this actor can rewrite {request.location} by OPTIMIZE alone, which keeps no order of rows: nothing "
                "was done; its log says why it cannot rewrite exactly"
            )
        started = time.monotonic()
        outcomes: dict[FileGroup, GroupOutcome] = {}
        version = None
        for partition, groups in groupby(
            sorted(request.groups, key=lambda group: group.partition), lambda group: group.partition
        ):
            if outcomes and control.should_stop():
                break
            found, ends = self._compact(request, partition, tuple(groups), control)
            outcomes |= {end.group: end for end in ends}
            version = version if found is None else found
        if version is not None:
            control.reached(COMMITTED)
        return RewriteOutcome(
            version=version,
            groups=tuple(outcomes.get(group) or GroupOutcome(group, GroupStatus.SKIPPED) for group in request.groups),
            prepare_ms=0,
            commit_ms=round((time.monotonic() - started) * 1000),
        )

    def _compact(
        self, request: RewriteRequest, partition: PartitionKey, groups: Sequence[FileGroup], control: Control
    ) -> tuple[int | None, list[GroupOutcome]]:
        """Run one OPTIMIZE; returns its version, None if it found nothing to do, and how each group ended."""
        origin, *others = require_origins(request.user_metadata)
        sizes = {
            MIN_FILE_SIZE: str(max(file.size_bytes for group in groups for file in group.files) + 1),
            MAX_FILE_SIZE: str(max(group.bytes for group in groups) + 1),
        }
        lease = self._sessions.lease(
            tag=origin.job, more_tags=[other.job for other in others], user_metadata=request.user_metadata, conf=sizes
        )
        with lease as owned, self._sessions.bound(owned) as session:
            log = TableLog(self._scala, session, request.location, self._snapshots)
            snapshot = log.snapshot()
            shape = log.shape(snapshot)
            check_identity(log.location, shape.metadata, request.table_uuid)
            check_table(log.location, shape.metadata, shape.protocol)
            columns = shape.metadata.partition_columns
            known = [(group, self._read_cache.live_group(request.location, group, shape)) for group in groups]
            live = resolve_live(log, snapshot, known, columns)
            if not live:
                return None, [GroupOutcome(group, GroupStatus.CONFLICTED) for group in groups]
            control.may_commit()
            optimize = OptimizeStatement(self._scala, log)
            version = optimize.run(_statement(log.location, columns, partition), origin, int(snapshot.version()))
            if version is not None:
                optimize.check_rows(snapshot, columns, version)
            return version, _ends(log, groups, live, columns, version)


def _statement(location: str, columns: Sequence[PartitionColumn], partition: PartitionKey) -> str:
    values = partition_values(partition)
    conditions = [
        f"{quoted(column.name)} IS NULL"
        if values[column.physical] is None
        else f"{quoted(column.name)} = CAST({literal(str(values[column.physical]))} AS {column.type})"
        for column in columns
    ]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"OPTIMIZE {table_name(hadoop_path(location), FORMAT)}{where}"


def _ends(
    log: TableLog,
    groups: Sequence[FileGroup],
    live: Sequence[LiveGroup],
    columns: Sequence[PartitionColumn],
    version: int | None,
) -> list[GroupOutcome]:
    """Compare the commit with the plan; the outputs of the partition are reported with its first committed group."""
    inputs = {found.group: found.inputs for found in live}
    actions = [] if version is None else log.actions(version)
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    outputs = tuple(decode_add(action["add"], columns) for action in actions if "add" in action)
    ends = []
    for group in groups:
        if version is None and group in inputs:
            ends.append(GroupOutcome(group, GroupStatus.SKIPPED))
        elif group in inputs and all(file.path in removed for file in group.files):
            ends.append(GroupOutcome(group, GroupStatus.COMMITTED, outputs, logical_rows(inputs[group])))
            outputs = ()
        else:
            ends.append(GroupOutcome(group, GroupStatus.CONFLICTED))
    return ends
