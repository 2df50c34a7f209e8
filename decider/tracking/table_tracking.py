"""Following one table once: its log is read in order from the cursor, applied, decided on, and ingested in one step.

The log is the truth, the cursor is the position up to which it is applied, and the ingest script moves the cursor only
if no other did; so lost, doubled, reordered and forged events change nothing but the time at which a commit is applied.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

import structlog

from decider.decide.actions import ActionRegistry
from decider.decide.funnel import CommitCounter
from decider.formats.table_format import TableReader
from decider.state.batch_files import RecentFiles
from decider.state.commit_pace import CommitCounts, IngestedDays, ingested_after, ingested_per_day
from decider.state.contention import WriteContention
from decider.state.effective_policy import EffectivePolicy, LogStatus
from decider.state.fold import FoldedCommit, fold
from decider.state.level_fit import LevelFit
from decider.state.own_tail import tail_after
from decider.state.table_summary import SummaryChange, TableSummary
from decider.state.target_fit import TargetBasis, TargetFit
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.tables.ingest import ingest
from decider.store.tables.table_history import TableHistory
from decider.store.tables.table_queue_limits import move_queue_limits, move_table, queue_limits_of
from decider.store.tables.table_state import COUNTS_KEPT, TableState, TableStateStore
from decider.tracking.commit_batch import CommitBatch
from decider.tracking.drift_check import DriftCheck
from decider.tracking.late_events import commits_after
from decider.tracking.rebuild import StateRebuilder
from decider.tracking.shared_defaults import DefaultsProvider
from decider.tracking.table_context import FollowedTable
from shared import tracing
from shared.errors import OtherTable, RetryableError
from shared.layout.eligibility import is_purgeable
from shared.partition_refusals import TableFingerprint
from shared.policy.policy import Policy, PortablePaths
from shared.policy.properties import is_stopped_by_qbeast, yields_to_writers
from shared.release import RELEASE, is_newer
from shared.table import Commit, PartitionKey, Position, TableMetadata, TableRef
from shared.tracing import Attribute, SpanName

COMMITS_PER_INGEST = 64
"""Commits in one ingest: enough to share the round trip, few enough to keep the script below a millisecond."""

CHANGES_PER_INGEST = 1_000
"""Partition changes one ingest may carry (the script's bound); a single commit that touches more leads to a rebuild."""

FIRST_SIGHT = "first sight of the table"
"""Reason for the rebuild of a table that has no state yet, or none any more."""

MAX_RACES = 20
"""Times in a row that another decider may move the cursor first, before the table is left to it."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TrackResult:
    """State up to which a table is applied, the number of commits on the way, and why it was rebuilt, if it was."""

    state: TableState
    commits: int = 0
    rescan: str = ""

    @property
    def version(self) -> int:
        """Version up to which the table is applied."""
        return self.state.version


@dataclass(frozen=True, slots=True)
class _TrackStep:
    """One attempt to advance: `rescan` requests a rebuild, `raced`: another process moved the cursor.

    state: what is stored after it, as far as this process knows; `is_caught_up`: nothing more is to be applied to it.
    `fitted`: the state to rebuild, with other levels.
    """

    commits: int = 0
    raced: bool = False
    rescan: str = ""
    state: TableState | None = None
    is_caught_up: bool = False
    fitted: TableState | None = None


@dataclass(frozen=True, slots=True)
class TrackingParts:
    """Collaborators that following any table needs."""

    queue: AsyncQueueExecutor
    states: TableStateStore
    drift: DriftCheck
    rebuilder: StateRebuilder
    defaults: DefaultsProvider
    now_ms: Callable[[], int]
    ledger_kept: int
    actions: ActionRegistry
    recent: RecentFiles

    @property
    def max_changes(self) -> int:
        """Changes per ingest: each action leaves a ledger record of each, whose number the script bounds as well."""
        return CHANGES_PER_INGEST // len(self.actions)


class TableTracking:
    """Following one table once."""

    def __init__(self, parts: TrackingParts, table: TableRef, reader: TableReader, here: FollowedTable) -> None:
        self._parts = parts
        self._table = table
        self._reader = reader
        self._here = here
        self._history = TableHistory(parts.queue)

    async def follow(self, hinted: int | None, known: TableState | None) -> TrackResult:
        """Advance until the end of the history, or the hinted version, is reached."""
        total = races = 0
        rescan = ""
        while races < MAX_RACES:
            cursor = known or await self._parts.states.state(self._table.id)
            if cursor is None:
                step = await self._rebuild(None, FIRST_SIGHT)
            else:
                try:
                    step = await self._advance(cursor, hinted)
                except OtherTable as other:
                    step = _TrackStep(rescan=str(other))
                if step.rescan:
                    step = await self._rebuild(step.fitted or cursor, step.rescan)
            if cursor is not None and step.state is not None and step.state.metadata is not cursor.metadata:
                was, now = cursor.metadata.configuration, step.state.metadata.configuration
                await self._history.mark_properties(self._table.id, was, now)
            total += step.commits
            rescan = step.rescan or rescan
            races = races + 1 if step.raced else 0
            known = step.state
            if known is not None and step.is_caught_up:
                drifted = await self._parts.drift.found(self._table, self._reader)
                if drifted is None:
                    return TrackResult(known, total, rescan)
                rescan = drifted.reason
                known = (await self._rebuild(drifted.cursor, rescan, counters={CommitCounter.DRIFT: 1})).state
        raise RetryableError(f"table {self._table.name}: other deciders moved its cursor {MAX_RACES} times in a row")

    async def _advance(self, cursor: TableState, hinted: int | None) -> _TrackStep:
        """Apply the next batch of commits after the cursor."""
        in_force = self._in_force(cursor)
        if (
            self._where(in_force) != (cursor.queue_limits, cursor.group)
            or in_force.policy.state_version != cursor.policy
        ):
            # Another decider may have started with other defaults; or another refresh has just adopted them.
            await self._parts.defaults.refresh()
            in_force = self._in_force(cursor)
        policy = in_force.policy
        if policy.state_version != cursor.policy:
            return _TrackStep(rescan="the policy of the service, the tenant or the registration changed")
        if self._where(in_force) != (cursor.queue_limits, cursor.group):
            return await self._place(cursor, *self._where(in_force))
        if not await self._is_same_table(cursor.position):
            return _TrackStep(
                rescan=f"commit {cursor.version} is missing or another one: the table was created again or rolled back"
            )
        batch = CommitBatch(
            *(self._table, policy, cursor.metadata, self._parts.actions, self._parts.recent), cursor.commit_ms
        )
        last, is_end = cursor, False
        async with aclosing(commits_after(self._reader, cursor, hinted, self._parts.now_ms)) as commits:
            async for commit in commits:
                folded = fold(commit, last.metadata, batch.policy, batch.files)
                heat, aborts = last.contention.after_commit(commit, folded.changes, self._parts.now_ms())
                counts = last.commit_counts.after_commit(commit, folded.changes, policy)
                fit = last.level_fit.after(commit, policy)
                ingested = ingested_after(last.ingested, commit, self._parts.now_ms())
                moved = self._moved(last, commit, _Learned(heat, counts, fit, ingested))
                reason = batch.files.repeated or _why_not_folded(folded, moved, self._parts.max_changes)
                if reason or moved is None:
                    return _TrackStep(rescan=reason)
                if batch.changes + len(folded.changes) > self._parts.max_changes:
                    break
                batch.add(commit, folded, aborts=aborts, counts=counts)
                last = moved
                # Jobs carry the properties in force, so jobs of later commits are made in a batch of their own.
                if len(batch) == COMMITS_PER_INGEST or commit.metadata is not None:
                    break
            else:
                # Where nothing hides behind a gap, the end that was read is the end.
                is_end = self._here.is_listed or self._reader.checks_history
        if not len(batch):
            return await self._nothing_new(cursor, hinted)
        with tracing.step(SpanName.DECIDE, self._attributes(last.version, commits=len(batch))):
            is_reached = is_end if hinted is None else hinted <= last.version
            is_caught_up = is_reached and last.metadata is cursor.metadata
            return await self._ingest(cursor, last, batch, is_caught_up=is_caught_up)

    def _where(self, in_force: EffectivePolicy) -> tuple[str, str]:
        """Return the limits that a policy sets in the queue, and the group."""
        return queue_limits_of(in_force), self._parts.defaults.current.group(in_force.policy)

    async def _place(self, cursor: TableState, limits: str, group: str) -> _TrackStep:
        """Set the table's limits in the queue by its policy, or move it to its group; nothing is counted again."""
        queue, table = self._parts.queue, self._table
        if limits != cursor.queue_limits:
            if not await move_queue_limits(queue, table.id, before=cursor.queue_limits, after=limits):
                return _TrackStep(raced=True)
            return _TrackStep(state=replace(cursor, queue_limits=limits))
        if not await move_table(queue, table.id, before=cursor.group, after=group):
            return _TrackStep(raced=True)
        log.info("table_moved", table=table.name, before=cursor.group, group=group)
        return _TrackStep(state=replace(cursor, group=group))

    def _in_force(self, cursor: TableState) -> EffectivePolicy:
        """Return the policy for a table at this version, by the rule of refusals that this release has."""
        log_status = replace(cursor.log_status, refusal=self._reader.refusal(cursor.metadata, cursor.protocol))
        return self._effective(cursor.metadata, cursor.last_good, log_status)

    def _effective(
        self, metadata: TableMetadata, last_good: Mapping[str, str], log_status: LogStatus
    ) -> EffectivePolicy:
        return self._parts.defaults.current.resolve(self._table, metadata.configuration, last_good, log_status)

    async def _is_same_table(self, position: Position) -> bool:
        """Return whether the table's history still contains the cursor's position.

        A table that was dropped and created again at its location starts over at version 0, and its commits would be
        applied to the old table's partitions. Checked at most once in `table_context.TRUSTED_MS`, and not while this
        process applies its commits; nor here where commits that follow it show it.
        """
        now_ms = self._parts.now_ms()
        if self._reader.checks_history or not position.digest or self._here.is_trusted(position, now_ms):
            return True
        if not await self._reader.contains(position):
            return False
        self._here.verify(position, now_ms)
        return True

    def _moved(self, cursor: TableState, commit: Commit, learned: "_Learned") -> TableState | None:
        """Move the cursor over a commit; None if it changes what the state depends on: it is counted again.

        Metadata and protocol also decide whether the table is refused, which is part of the policy.
        """
        moved = replace(
            cursor,
            version=commit.version,
            digest=commit.digest,
            commit_ms=commit.timestamp_ms,
            removals=cursor.removals.after(commit),
            key_runs=cursor.key_runs.after(commit),
            clustered=None if cursor.clustered is None else cursor.clustered.after(commit),
            cells=None if cursor.cells is None else cursor.cells.after(commit),
            contention=learned.contention,
            commit_counts=learned.commit_counts,
            level_fit=learned.level_fit,
            ingested=learned.ingested,
            pace=cursor.pace.after(commit),
            own_tail=tail_after(cursor.own_tail, commit, is_asked=yields_to_writers(cursor.metadata.configuration)),
        )
        if commit.metadata is None and commit.protocol is None:
            return moved
        before = self._in_force(cursor)
        metadata, protocol = commit.metadata or cursor.metadata, commit.protocol or cursor.protocol
        was, now = cursor.metadata.configuration, metadata.configuration
        stopped = is_stopped_by_qbeast(was, now, was_stopped=cursor.is_stopped_by_qbeast)
        refusal = self._reader.refusal(metadata, protocol)
        log_status = replace(moved.log_status, refusal=refusal, is_stopped_by_qbeast=stopped, format=metadata.format)
        after = self._effective(metadata, before.last_good, log_status)
        if after.policy.state_version != before.policy.state_version:
            return None
        return replace(
            moved,
            metadata=metadata,
            protocol=protocol,
            is_stopped_by_qbeast=log_status.is_stopped_by_qbeast,
            refusal=log_status.refusal,
            last_good=after.last_good,
        )

    async def _why_lifted(self, old: TableState, new: TableState, policy: Policy) -> str:
        """Return why the refused files of a table are to be tried again, all of them; empty if they are not.

        They may lie in partitions that no commit touches, so every partition is evaluated.
        """
        before = TableFingerprint.of(old.metadata, policy, old.release)
        is_same = before.still_describes(TableFingerprint.of(new.metadata, policy, old.release))
        if (is_same and not is_newer(RELEASE, old.release)) or not await self._parts.states.has_refusals(
            self._table.id
        ):
            return ""
        what = "this release is newer" if is_same else "the table's schema or properties changed"
        return f"{what}: files that were refused are tried again"

    async def _nothing_new(self, cursor: TableState, hinted: int | None) -> _TrackStep:
        """The next commit is not there: either we are caught up, or the log was cleaned up behind the cursor.

        The request that distinguishes them is made once per table and process, and when an event named a higher
        version; where no other has shown that it is the same table, as often as that is checked.
        """
        expects_more = hinted is not None and hinted > cursor.version
        now_ms = self._parts.now_ms()
        is_proved = not self._reader.checks_history or self._here.is_trusted(cursor.position, now_ms)
        if expects_more or not self._here.is_listed or not is_proved:
            end = await self._reader.end_of_history(cursor.position)
            self._here.is_listed = True
            if end.lost:
                return _TrackStep(rescan=end.lost)
            if not end.is_end:
                return _TrackStep(raced=True)
            if self._reader.checks_history:
                self._here.verify(cursor.position, now_ms)
        lifted = await self._why_lifted(cursor, cursor, self._in_force(cursor).policy)
        if lifted:
            return _TrackStep(rescan=lifted)
        return _TrackStep(state=cursor, is_caught_up=True)

    async def _ingest(self, old: TableState, new: TableState, batch: CommitBatch, *, is_caught_up: bool) -> _TrackStep:
        fit = new.level_fit.refitted(batch.policy, self._parts.now_ms())
        if fit.typical_file_bytes != old.level_fit.typical_file_bytes:
            return _TrackStep(rescan=fit.reason, fitted=replace(old, level_fit=fit, ingested=new.ingested))
        target_fit = await self._target_fit(new, batch.policy)
        if target_fit.target_bytes != old.target_fit.target_bytes:
            fitted = replace(old, target_fit=target_fit, ingested=new.ingested)
            return _TrackStep(rescan=str(target_fit.changes[-1]), fitted=fitted)
        new = replace(
            new,
            level_fit=fit,
            target_fit=target_fit,
            release=old.release if is_newer(old.release, RELEASE) else RELEASE,
        )
        if lifted := await self._why_lifted(old, new, batch.policy):
            return _TrackStep(rescan=lifted)
        known = await self._parts.states.calibrated_partitions(self._table.id, batch.partitions)
        signals = replace(new.signals, new_commits=new.version - old.version)
        rewritten_ms = old.last_rewrite_ms
        examined = await files_to_purge(self._reader, batch.with_more_deletes(known), batch.policy)
        done = batch.decide(
            *(known, new.contention, signals, self._parts.now_ms()),
            last_rewrite_ms=rewritten_ms,
            examined=examined,
            commit_every_ms=new.pace.every_ms,
            together_ms=old.together_ms,
        )
        if not done.is_consistent:
            return _TrackStep(rescan="the log removed files that the state never held")
        is_invalid = bool(self._in_force(new).issues)
        summary = replace(old.summary.after(done.change, batch.last_rewrite_ms), has_invalid_properties=is_invalid)
        counts = (*old.file_counts, *batch.file_counts(old.summary.files))[-COUNTS_KEPT:]
        folded_ms, together_ms = self._parts.now_ms(), done.together_ms
        new = replace(new, folded_ms=folded_ms, summary=summary, file_counts=counts, together_ms=together_ms)
        counters = {**done.step.counters, **_bytes_counted(old.summary, summary, done.change)}
        step = replace(done.step, ledger_kept=self._parts.ledger_kept, counters=counters)
        if not await ingest(self._parts.queue, self._table.id, old=old, new=new, update=step):
            return _TrackStep(raced=True)
        self._here.verify(new.position, self._parts.now_ms())
        self._parts.recent.update(self._table.id, batch.files.latest())
        if batch.files.is_unsure:
            self._parts.drift.suspect(self._table.id)
        log.info(
            "commits_applied", table=self._table.name, version=new.version, commits=len(batch), jobs=len(step.jobs)
        )
        return _TrackStep(len(batch), state=new, is_caught_up=is_caught_up)

    async def _target_fit(self, state: TableState, policy: Policy) -> TargetFit:
        """Return the target of a table as of now; what it is chosen by is read only if a change is due."""
        now_ms = self._parts.now_ms()
        if not state.target_fit.is_due(policy, now_ms):
            return state.target_fit
        known = await self._parts.states.calibration(self._table.id)
        daily_bytes = ingested_per_day(state.ingested, now_ms)
        basis = TargetBasis.of(state.summary, known.full_shrink, daily_bytes, known.weekly_reads)
        return state.target_fit.refitted(policy, basis, now_ms)

    def _attributes(self, version: int, *, commits: int = 0) -> tracing.Attributes:
        return {Attribute.TABLE: self._table.name, Attribute.VERSION: version, Attribute.COMMITS: commits}

    async def _rebuild(
        self, old: TableState | None, reason: str, *, counters: Mapping[str, int] | None = None
    ) -> _TrackStep:
        attributes = self._attributes(old.version if old else -1) | {Attribute.REBUILD: reason}
        with tracing.step(SpanName.DECIDE, attributes):
            counters = {**(counters or {}), **(await self._undone(old) if old else {})}
            cursor = await self._parts.rebuilder.rebuild(self._table, self._reader, old, reason, counters=counters)
        if cursor is None:
            return _TrackStep(raced=True)
        return _TrackStep(rescan=reason, state=cursor)

    async def _undone(self, old: TableState) -> dict[str, int]:
        """Count our newest rewrites that the history has no more, and the bytes that they wrote.

        Those that are older than all that is retained may have expired instead.
        """
        if not old.own_tail or await self._reader.contains(old.position):
            return {}
        retained = (await self._reader.retained()).positions
        known = [one for one in old.own_tail if retained and retained[0].version < one.version]
        lost = [one for one in known if not await self._reader.contains(one.position)]
        if not lost:
            return {}
        log.info("rewrites_undone", table=self._table.name, versions=[one.version for one in lost])
        return {
            CommitCounter.REWRITES_UNDONE: len(lost),
            CommitCounter.BYTES_UNDONE: sum(one.bytes for one in lost),
        }


class _Learned(NamedTuple):
    """Statistics of a table that a commit changes, as the state after it has them."""

    contention: WriteContention
    commit_counts: CommitCounts
    level_fit: LevelFit
    ingested: IngestedDays


async def files_to_purge(
    reader: TableReader, partitions: Collection[PartitionKey], policy: Policy
) -> Counter[PartitionKey]:
    """Count the files of partitions that are rewritten even alone; the newest snapshot is read if there may be any."""
    purges = policy.delete_ratio_threshold is not None or policy.portable_paths is PortablePaths.ALWAYS
    if not (partitions and purges):
        return Counter()
    files = (await reader.snapshot()).files
    return Counter(one.partition for one in files if one.partition in partitions and is_purgeable(one, policy))


def _why_not_folded(folded: FoldedCommit, moved: TableState | None, max_changes: int) -> str:
    """Return why the table is rebuilt instead of applying a commit; empty if it is applied."""
    if folded.rebuild_reason is not None:
        return folded.rebuild_reason
    if moved is None:
        return "the policy of the table changed, or whether it is refused"
    if len(folded.changes) > max_changes:
        return f"commit {folded.version} touches {len(folded.changes)} partitions"
    return ""


def _bytes_counted(before: TableSummary, after: TableSummary, change: SummaryChange) -> dict[str, int]:
    """Count what was written and rewritten: for the backlog as long as there was one, as steady work since then."""
    counts: dict[str, int] = (
        {CommitCounter.BACKLOG_BYTES_DONE: before.backlog_bytes - after.backlog_bytes}
        if before.backlog_bytes
        else {
            CommitCounter.STEADY_BYTES_ADDED: change.bytes_added,
            CommitCounter.STEADY_BYTES_REWRITTEN: before.steady_bytes(change.bytes_rewritten),
        }
    )
    return {name: count for name, count in counts.items() if count}
