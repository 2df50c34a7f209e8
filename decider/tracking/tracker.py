"""Tracking a table: its log is read in order from the cursor, applied, decided on, and ingested in one atomic step.

An event only means that the table may have changed. The log is the truth, the cursor is the position up to which it is
applied, and the ingest script moves the cursor only if no other did; so lost, doubled, reordered and forged events
change nothing but the time at which a commit is applied.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

import structlog

from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.decision import TableSignals
from decider.formats.table_format import TableReader
from decider.state.commit_counts import CommitCounts
from decider.state.contention import WriteContention
from decider.state.effective_policy import EffectivePolicy, LogStatus
from decider.state.fold import FoldedCommit, fold
from decider.state.level_fit import LevelFit
from decider.state.recent_files import RecentFiles
from decider.store.ingest import ingest
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.table_state import COUNTS_KEPT, TableState, TableStateStore
from decider.tracking.commit_batch import CommitBatch
from decider.tracking.drift_check import DRIFT, DriftCheck
from decider.tracking.followed_table import FollowedTable
from decider.tracking.index_reader import read_index
from decider.tracking.log_cache import LogCache
from decider.tracking.rebuild import StateRebuilder
from decider.tracking.shared_defaults import DefaultsProvider
from shared import tracing
from shared.errors import OtherTable, RetryableError
from shared.job_payload import REWRITE_MANIFESTS
from shared.properties import is_stopped_by_qbeast
from shared.queue.commands import LEDGER_KEPT
from shared.table import Commit, Position, Snapshot, TableId, TableMetadata, TableRef
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
class _Parts:
    """What following any table needs."""

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


class TableTracker:
    """Brings the stored state of a table up to its log; safe to run in any number of processes."""

    def __init__(  # noqa: PLR0913 - every part is independent of the others
        self,
        queue: AsyncQueueExecutor,
        open_table: Callable[[str], TableReader],
        now_ms: Callable[[], int],
        defaults: DefaultsProvider,
        *,
        ledger_kept: int | None = None,
        drift: DriftCheck | None = None,
        actions: ActionRegistry = ACTIONS,
    ) -> None:
        """`ledger_kept`: records per table that stay in Redis at most, None for what the queue keeps by itself."""
        self.ledger_kept = ledger_kept or LEDGER_KEPT
        self.actions = actions
        states = TableStateStore(queue)
        rebuilder = StateRebuilder(queue, now_ms, defaults, ledger_kept=self.ledger_kept, actions=actions)
        self._parts = _Parts(
            *(queue, states, drift or DriftCheck(states, now_ms), rebuilder, defaults, now_ms),
            *(self.ledger_kept, actions, RecentFiles()),
        )
        self._logs = LogCache(open_table)
        self._followed: defaultdict[TableId, FollowedTable] = defaultdict(FollowedTable)

    async def follow(
        self, table: TableRef, hinted: int | None = None, *, known: TableState | None = None
    ) -> TrackResult:
        """Apply the new commits of a table's log; `hinted` is the version of an event, None to probe for the next.

        known: state of the table if the caller has just read it. Raises InvalidInput or Corrupt where the log cannot be
        read, RetryableError where other deciders keep winning the race or the store does not answer. Nothing is half
        done in any case.
        """
        reader, here = self._logs.at(table.location), self._followed[table.id]
        if here.lock.locked():
            known = None  # Who follows the table now moves its state.
        async with here.lock:
            return await _TableTracking(self._parts, table, reader, here).follow(hinted, known)

    async def followed(self, table: TableRef) -> TableState:
        """Apply the new commits of a table's log, and return its state; raises what `follow` raises."""
        await self.follow(table)
        state = await self._parts.states.state(table.id)
        if state is None:
            raise RetryableError(f"table {table.name} was removed meanwhile; register it again")
        return state

    async def signals(self, table: TableRef, cursor: TableState, kinds: Collection[str]) -> TableSignals:
        """Return what decisions of these kinds about a whole table rest on, with its newest checkpoint and index."""
        reader = self._logs.at(table.location)
        manifests = await reader.manifests() if REWRITE_MANIFESTS in kinds else None
        signals = replace(cursor.signals, checkpoint=await reader.checkpoint(), manifests=manifests)
        policy = self.effective(table, cursor).policy
        if not policy.is_indexed:
            return signals
        return replace(signals, index=await read_index(table, reader, cursor.version, policy))

    def effective(self, table: TableRef, cursor: TableState) -> EffectivePolicy:
        """Return the policy in effect for a table in this state."""
        defaults = self._parts.defaults.current
        return defaults.resolve(table, cursor.metadata.configuration, cursor.last_good, cursor.log_status)

    def effective_at(self, table: TableRef, snapshot: Snapshot, cursor: TableState | None) -> EffectivePolicy:
        """Return the policy in effect for a snapshot, which may be newer than the table's state; None: it has none."""
        is_stopped = cursor is not None and cursor.is_stopped_by_qbeast
        typical_bytes = cursor.level_fit.typical_file_bytes if cursor else 0
        status = LogStatus(snapshot.refusal, is_stopped, snapshot.metadata.format, typical_bytes)
        last_good = cursor.last_good if cursor else {}
        return self._parts.defaults.current.resolve(table, snapshot.metadata.configuration, last_good, status)


class _TableTracking:
    """Following one table once."""

    def __init__(self, parts: _Parts, table: TableRef, reader: TableReader, here: FollowedTable) -> None:
        self._parts = parts
        self._table = table
        self._reader = reader
        self._here = here

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
            total += step.commits
            rescan = step.rescan or rescan
            races = races + 1 if step.raced else 0
            known = step.state
            if known is not None and step.is_caught_up:
                drifted = await self._parts.drift.found(self._table, self._reader)
                if drifted is None:
                    return TrackResult(known, total, rescan)
                rescan = drifted.reason
                known = (await self._rebuild(drifted.cursor, rescan, counters={DRIFT: 1})).state
        raise RetryableError(f"table {self._table.name}: other deciders moved its cursor {MAX_RACES} times in a row")

    async def _advance(self, cursor: TableState, hinted: int | None) -> _TrackStep:
        """Apply the next batch of commits after the cursor."""
        policy = self._in_force(cursor).policy
        if policy.version != cursor.policy:
            # Another decider may have started with other defaults; or another refresh has just adopted them.
            await self._parts.defaults.refresh()
            policy = self._in_force(cursor).policy
        if cursor.protocol is None or policy.version != cursor.policy:
            return _TrackStep(rescan="the policy of the service, the tenant or the registration changed")
        if not await self._is_same_table(cursor.position):
            return _TrackStep(
                rescan=f"commit {cursor.version} is missing or another one: the table was created again or rolled back"
            )
        batch = CommitBatch(self._table, policy, cursor.metadata, self._parts.actions, self._parts.recent)
        last = cursor
        async with aclosing(self._reader.changes(cursor.position, cursor.metadata, until=hinted)) as commits:
            async for commit in commits:
                folded = fold(commit, last.metadata, batch.policy, batch.files)
                heat, aborts = last.contention.after_commit(commit, folded.changes, self._parts.now_ms())
                counts = last.commit_counts.after_commit(commit, folded.changes, policy)
                fit = last.level_fit.after(commit, policy)
                moved = self._moved(last, commit, _Learned(heat, counts, fit))
                reason = batch.files.repeated or _why_not_folded(folded, moved, self._parts.max_changes)
                if reason or moved is None:
                    return _TrackStep(rescan=reason)
                if batch.changes + len(folded.changes) > self._parts.max_changes:
                    break
                batch.add(commit, folded, aborts=aborts, counts=counts)
                last = moved
                if len(batch) == COMMITS_PER_INGEST:
                    break
        if not len(batch):
            return await self._nothing_new(cursor, hinted)
        with tracing.step(SpanName.DECIDE, self._attributes(last.version, commits=len(batch))):
            return await self._ingest(cursor, last, batch, is_caught_up=hinted is not None and hinted <= last.version)

    def _in_force(self, cursor: TableState) -> EffectivePolicy:
        """Return the policy for a table at this version, by the rule of refusals that this release has."""
        log_status = cursor.log_status
        if cursor.protocol is not None:
            log_status = replace(log_status, refusal=self._reader.refusal(cursor.metadata, cursor.protocol))
        return self._effective(cursor.metadata, cursor.last_good, log_status)

    def _effective(
        self, metadata: TableMetadata, last_good: Mapping[str, str], log_status: LogStatus
    ) -> EffectivePolicy:
        return self._parts.defaults.current.resolve(self._table, metadata.configuration, last_good, log_status)

    async def _is_same_table(self, position: Position) -> bool:
        """Whether the table's history still contains the cursor's position.

        A table that was dropped and created again at its location starts over at version 0, and its commits would be
        applied to the old table's partitions. Checked at most once in `followed_table.TRUSTED_MS`, and not while this
        process applies its commits.
        """
        now_ms = self._parts.now_ms()
        if not position.digest or self._here.is_trusted(position, now_ms):
            return True
        if not await self._reader.contains(position):
            return False
        self._here.verify(position, now_ms)
        return True

    def _moved(self, cursor: TableState, commit: Commit, learned: "_Learned") -> TableState | None:
        """Move the cursor over a commit; None if it changes the policy, so that every partition is decided again.

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
            contention=learned.contention,
            commit_counts=learned.commit_counts,
            level_fit=learned.level_fit,
        )
        if commit.metadata is None and commit.protocol is None:
            return moved
        before = self._in_force(cursor)
        metadata, protocol = commit.metadata or cursor.metadata, commit.protocol or cursor.protocol
        if protocol is None:
            return None
        was, now = cursor.metadata.configuration, metadata.configuration
        stopped = is_stopped_by_qbeast(was, now, was_stopped=cursor.is_stopped_by_qbeast)
        refusal, typical_bytes = self._reader.refusal(metadata, protocol), moved.level_fit.typical_file_bytes
        log_status = LogStatus(refusal, stopped, metadata.format, typical_bytes)
        after = self._effective(metadata, before.last_good, log_status)
        if after.policy != before.policy:
            return None
        return replace(
            moved,
            metadata=metadata,
            protocol=protocol,
            is_stopped_by_qbeast=log_status.is_stopped_by_qbeast,
            refusal=log_status.refusal,
            last_good=after.last_good,
        )

    async def _nothing_new(self, cursor: TableState, hinted: int | None) -> _TrackStep:
        """The next commit is not there: either we are caught up, or the log was cleaned up behind the cursor.

        The request that distinguishes them is made once per table and process, and when an event named a higher
        version.
        """
        expects_more = hinted is not None and hinted > cursor.version
        if expects_more or not self._here.is_listed:
            end = await self._reader.end_of_history(cursor.position)
            self._here.is_listed = True
            if end.lost:
                return _TrackStep(rescan=end.lost)
            if not end.is_end:
                return _TrackStep(raced=True)
        return _TrackStep(state=cursor, is_caught_up=True)

    async def _ingest(self, old: TableState, new: TableState, batch: CommitBatch, *, is_caught_up: bool) -> _TrackStep:
        fit = new.level_fit.refitted(batch.policy, self._parts.now_ms())
        if fit.typical_file_bytes != old.level_fit.typical_file_bytes:
            return _TrackStep(rescan=fit.reason, fitted=replace(old, level_fit=fit))
        new = replace(new, level_fit=fit)
        known = await self._parts.states.calibrated_partitions(self._table.id, batch.partitions)
        signals = replace(new.signals, new_commits=new.version - old.version)
        rewritten_ms = old.last_rewrite_ms
        done = batch.decide(known, new.contention, signals, self._parts.now_ms(), last_rewrite_ms=rewritten_ms)
        if not done.is_consistent:
            return _TrackStep(rescan="the log removed files that the state never held")
        summary = None if old.summary is None else old.summary.after(done.change, batch.last_rewrite_ms)
        counts = () if old.summary is None else batch.file_counts(old.summary.files)
        counts = (*old.file_counts, *counts)[-COUNTS_KEPT:]
        new = replace(new, folded_ms=self._parts.now_ms(), summary=summary, file_counts=counts)
        step = replace(done.step, ledger_kept=self._parts.ledger_kept)
        if not await ingest(self._parts.queue, self._table.id, old=old, new=new, update=step):
            return _TrackStep(raced=True)
        self._here.verify(new.position, self._parts.now_ms())
        self._parts.recent.update(self._table.id, batch.files.latest())
        log.info(
            "commits_applied", table=self._table.name, version=new.version, commits=len(batch), jobs=len(step.jobs)
        )
        return _TrackStep(len(batch), state=new, is_caught_up=is_caught_up)

    def _attributes(self, version: int, *, commits: int = 0) -> tracing.Attributes:
        return {Attribute.TABLE: self._table.name, Attribute.VERSION: version, Attribute.COMMITS: commits}

    async def _rebuild(
        self, old: TableState | None, reason: str, *, counters: Mapping[str, int] | None = None
    ) -> _TrackStep:
        attributes = self._attributes(old.version if old else -1) | {Attribute.REBUILD: reason}
        with tracing.step(SpanName.DECIDE, attributes):
            cursor = await self._parts.rebuilder.rebuild(self._table, self._reader, old, reason, counters=counters)
        if cursor is None:
            return _TrackStep(raced=True)
        return _TrackStep(rescan=reason, state=cursor)


class _Learned(NamedTuple):
    """What a commit teaches about its table, as the state after it has it."""

    contention: WriteContention
    commit_counts: CommitCounts
    level_fit: LevelFit


def _why_not_folded(folded: FoldedCommit, moved: TableState | None, max_changes: int) -> str:
    """Return why the table is rebuilt instead of applying a commit; empty if it is applied."""
    if folded.rebuild_reason is not None:
        return folded.rebuild_reason
    if moved is None:
        return "the policy of the table changed, or whether it is refused"
    if len(folded.changes) > max_changes:
        return f"commit {folded.version} touches {len(folded.changes)} partitions"
    return ""
