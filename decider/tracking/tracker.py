"""Following a table: its log is read in order from the cursor, folded, decided on, and ingested in one atomic step.

An event only says that it is worth looking. The log is the truth, the cursor says how far it was taken, and the
ingest script moves the cursor only if nobody else did; so lost, doubled, reordered and forged events change nothing
but the moment at which a commit is seen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from decider.decide.actions import ACTIONS, ActionRegistry
from decider.state.effective_policy import EffectivePolicy, LogFacts
from decider.state.fold import fold
from decider.store.ingest import ingest
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.table_state import TableState, TableStateStore
from decider.tracking.commit_batch import CommitBatch
from decider.tracking.drift_check import DRIFT, DriftCheck
from decider.tracking.log_cache import LogCache, TrackedLog
from decider.tracking.rebuild import StateRebuilder
from decider.tracking.shared_defaults import DefaultsProvider
from shared.errors import RetryableError
from shared.properties import is_stopped
from shared.queue.commands import LEDGER_KEPT
from shared.refusals import Refusal, refusal
from shared.table import Commit, TableId, TableRef

COMMITS_PER_INGEST = 64
"""Commits folded into one ingest: enough to share the round trip, few enough to keep the script below a millisecond."""

CHANGES_PER_INGEST = 1_000
"""Cell changes one ingest may carry (the script's bound); a single commit that touches more leads to a recount."""

TRUSTED_MS = 60_000
"""How long a table whose commits we fold is taken to be the same one without asking."""

FIRST_SIGHT = "first sight of the table"
"""Why a table is counted that was never followed, or of which everything was dropped."""

MAX_RACES = 20
"""Times in a row that another decider may move the cursor first before we leave the table to it."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TrackResult:
    """How far a table was followed, how many commits were folded on the way, and why it was recounted, if it was.

    `refusal` is why the table must not be rewritten as it stands at that version.
    """

    version: int
    commits: int = 0
    rescan: str = ""
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class _TrackStep:
    """One attempt to get further: `rescan` asks for a recount, `raced` says that the cursor moved under us."""

    version: int
    commits: int = 0
    raced: bool = False
    rescan: str = ""
    caught_up: bool = False
    refusal: Refusal | None = None


class TableTracker:
    """Brings the stored state of a table up to its log; safe to run in any number of processes."""

    def __init__(  # noqa: PLR0913 - every part is independent of the others
        self,
        queue: AsyncQueueExecutor,
        open_log: Callable[[str], TrackedLog],
        now_ms: Callable[[], int],
        standing: DefaultsProvider,
        *,
        ledger_kept: int | None = None,
        drift: DriftCheck | None = None,
        actions: ActionRegistry = ACTIONS,
    ) -> None:
        """`ledger_kept`: records per table that stay in Redis at most, None for what the queue keeps by itself."""
        self._queue = queue
        self.ledger_kept = ledger_kept or LEDGER_KEPT
        self._states = TableStateStore(queue)
        self._now_ms = now_ms
        self._standing = standing
        self._drift = drift or DriftCheck(self._states, now_ms)
        self._logs = LogCache(open_log)
        self._recounter = StateRebuilder(queue, now_ms, standing, ledger_kept=self.ledger_kept, actions=actions)
        self.actions = actions
        # Each action leaves a ledger record of each change, whose number the script bounds as well.
        self._max_changes = CHANGES_PER_INGEST // len(actions)
        self._listed: set[TableId] = set()
        self._trusted: dict[TableId, tuple[int, int]] = {}

    async def follow(self, table: TableRef, hinted: int | None = None) -> TrackResult:
        """Fold what is new in a table's log; `hinted` is the version an event spoke of, None to probe for the next.

        Raises InvalidInput or Corrupt where the log cannot be read, RetryableError where somebody keeps winning the
        race or the store does not answer. Nothing is half done in any case.
        """
        total = races = 0
        rescan = ""
        reader = self._logs.at(table.location)
        while races < MAX_RACES:
            cursor = await self._states.cursor(table.id)
            if cursor is None:
                step = await self._recount(table, reader, None, FIRST_SIGHT)
            else:
                step = await self._advance(table, reader, cursor, hinted)
                if step.rescan:
                    step = await self._recount(table, reader, cursor, step.rescan)
            total += step.commits
            rescan = step.rescan or rescan
            races = races + 1 if step.raced else 0
            if step.caught_up:
                drifted = await self._drift.found(table, reader)
                if drifted is None:
                    return TrackResult(step.version, total, rescan, step.refusal)
                rescan = drifted.reason
                await self._recounter.recount(table, reader, drifted.cursor, rescan, counters={DRIFT: 1})
        raise RetryableError(f"table {table.name}: other deciders moved its cursor {MAX_RACES} times in a row")

    async def _advance(self, table: TableRef, reader: TrackedLog, cursor: TableState, hinted: int | None) -> _TrackStep:
        """Fold the next batch of commits behind the cursor."""
        at = cursor.version
        policy = self.effective(table, cursor).policy
        if policy.version != cursor.policy:
            # Another decider may have started with other defaults; or another look of ours has just found that out.
            await self._standing.refresh()
            policy = self.effective(table, cursor).policy
        if cursor.protocol is None or policy.version != cursor.policy:
            return _TrackStep(at, rescan="the policy of the service, the tenant or the registration changed")
        if not await self._is_same_table(table, reader, cursor):
            return _TrackStep(
                cursor.version, rescan=f"commit {cursor.version} is gone or another one: the table was made anew"
            )
        batch = CommitBatch(table, policy, cursor.metadata, self.actions)
        last = cursor
        more = hinted is None or hinted > cursor.version
        while more and len(batch) < COMMITS_PER_INGEST:
            commit = await reader.commit(last.version + 1, last.metadata)
            if commit is None:
                break
            folded = fold(commit, last.metadata, batch.policy, batch.files)
            moved = self._moved(table, last, commit)
            if folded.rescan is not None or moved is None:
                return _TrackStep(
                    at, rescan=folded.rescan or "the policy of the table changed, or whether it is refused"
                )
            if len(folded.changes) > self._max_changes:
                return _TrackStep(at, rescan=f"commit {commit.version} touches {len(folded.changes)} cells")
            if batch.changes + len(folded.changes) > self._max_changes:
                break
            heat, aborts = last.heat.after(commit, folded.changes, self._now_ms())
            batch.add(commit, folded, aborts=aborts)
            last = replace(moved, heat=heat)
            more = hinted is None or hinted > last.version
        if not len(batch):
            return await self._nothing_new(table, reader, cursor, hinted)
        return await self._ingest(table, cursor, last, batch, caught_up=not more)

    def effective(self, table: TableRef, cursor: TableState) -> EffectivePolicy:
        """Return the policy in force for a table whose cursor stands there."""
        return self._standing.current.effective(table, cursor.metadata.configuration, cursor.last_good, cursor.facts)

    async def _is_same_table(self, table: TableRef, reader: TrackedLog, cursor: TableState) -> bool:
        """Whether the commit that the cursor stands on is still the same one.

        A table that was dropped and made anew at its place starts over at version 0 and would be folded onto a dead
        table's cells. Asked at most once in `TRUSTED_MS` for a table, and not while we fold its commits ourselves.
        """
        now_ms = self._now_ms()
        version, since_ms = self._trusted.get(table.id, (-1, 0))
        if not cursor.digest or (version == cursor.version and now_ms - since_ms < TRUSTED_MS):
            return True
        if await reader.digest(cursor.version) != cursor.digest:
            return False
        self._trusted[table.id] = (cursor.version, now_ms)
        return True

    def _moved(self, table: TableRef, cursor: TableState, commit: Commit) -> TableState | None:
        """Move the cursor over a commit; None if the commit changes the policy, so that every cell is decided anew.

        Metadata and protocol also say whether the table is refused, which is part of the policy.
        """
        metadata, protocol, last_good = cursor.metadata, cursor.protocol, cursor.last_good
        stopped = cursor.is_stopped
        if commit.metadata is not None or commit.protocol is not None:
            before = self.effective(table, cursor)
            metadata, protocol = commit.metadata or metadata, commit.protocol or protocol
            if protocol is None:
                return None
            stopped = is_stopped(cursor.metadata.configuration, metadata.configuration, was_stopped=stopped)
            facts = LogFacts(refusal(metadata, protocol), stopped)
            after = self._standing.current.effective(table, metadata.configuration, before.last_good, facts)
            if after.policy != before.policy:
                return None
            last_good = after.last_good
        return replace(
            cursor,
            version=commit.version,
            digest=commit.digest,
            metadata=metadata,
            protocol=protocol,
            is_stopped=stopped,
            last_good=last_good,
            commit_ms=commit.timestamp_ms,
        )

    async def _nothing_new(
        self, table: TableRef, reader: TrackedLog, cursor: TableState, hinted: int | None
    ) -> _TrackStep:
        """The next version is not there: either we are caught up, or the log was cleaned up behind the cursor.

        The listing that tells them apart is asked for once per table and process, and when an event spoke of more.
        """
        at = cursor.version
        expects_more = hinted is not None and hinted > at
        if expects_more or table.id not in self._listed:
            later = await reader.versions_after(at)
            self._listed.add(table.id)
            if later and later[0] > at + 1:
                return _TrackStep(at, rescan=f"versions {at + 1} to {later[0] - 1} are gone from the log")
            if later:
                return _TrackStep(at, raced=True)
        return _TrackStep(at, caught_up=True, refusal=cursor.refusal)

    async def _ingest(
        self, table: TableRef, old: TableState, new: TableState, batch: CommitBatch, *, caught_up: bool
    ) -> _TrackStep:
        known = await self._states.known(table.id, batch.cells)
        done = batch.decide(known, new.heat, self._now_ms())
        if not done.is_possible:
            return _TrackStep(old.version, rescan="the log removed files that the state never held")
        new = replace(new, folded_ms=self._now_ms())
        step = replace(done.step, ledger_kept=self.ledger_kept)
        if not await ingest(self._queue, table.id, old=old, new=new, step=step):
            return _TrackStep(old.version, raced=True)
        self._trusted[table.id] = (new.version, self._now_ms())
        log.info("commits_applied", table=table.name, version=new.version, commits=len(batch), jobs=len(done.step.jobs))
        return _TrackStep(new.version, commits=len(batch), caught_up=caught_up, refusal=new.refusal)

    async def _recount(self, table: TableRef, reader: TrackedLog, old: TableState | None, reason: str) -> _TrackStep:
        cursor = await self._recounter.recount(table, reader, old, reason)
        if cursor is None:
            return _TrackStep(old.version if old else -1, raced=True)
        return _TrackStep(cursor.version, rescan=reason)
