"""Following a table: its log is read in order from the cursor, folded, decided on, and ingested in one atomic step.

An event only says that it is worth looking. The log is the truth, the cursor says how far it was taken, and the
ingest script moves the cursor only if nobody else did; so lost, doubled, reordered and forged events change nothing
but the moment at which a commit is seen.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from decider.batch import COMPACT, Batch, job_spec
from decider.decide.verdict import decide_state
from decider.orient.cells import fold, recount
from decider.orient.policies import Effective, effective
from decider.store.cursors import Cursor, TableStates
from decider.store.queue import AsyncQueue
from shared.cells import CellState
from shared.errors import RetryableError
from shared.policy import Policy, terms
from shared.queue import transitions
from shared.queue.model import JobKey, JobSpec, job_id
from shared.table import CellKey, Commit, Snapshot, TableId, TableMetadata, TableRef
from shared.worth import is_purgeable

COMMITS_PER_INGEST = 64
"""Commits folded into one ingest: enough to share the round trip, few enough to keep the script below a millisecond."""

CHANGES_PER_INGEST = 1_000
"""Cell changes one ingest may carry (the script's bound); a single commit that touches more leads to a recount."""

JOBS_PER_INGEST = 100
"""Jobs one ingest may carry (the script's bound); a recount queues the others before it moves the cursor."""

TRUSTED_MS = 60_000
"""How long a table whose commits we fold is taken to be the same one without asking."""

MAX_RACES = 20
"""Times in a row that another decider may move the cursor first before we leave the table to it."""

OPEN_LOGS = 1_000
"""Logs kept open; an open log is a client object of a few kilobytes."""

log = structlog.get_logger()


class LogReader(Protocol):
    """Reads the log of one table."""

    async def commit(self, version: int, metadata: TableMetadata) -> Commit | None:
        """Return one commit, None if that version does not exist."""

    async def digest(self, version: int) -> str | None:
        """Return the digest of one commit, None if it does not exist."""

    async def versions_after(self, version: int) -> tuple[int, ...]:
        """Return the versions above `version` that have a commit file, ascending."""

    async def snapshot(self, version: int | None = None) -> Snapshot:
        """Return all live files of a version, the newest by default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the service decides for all tables."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Followed:
    """How far a table was followed, how many commits were folded on the way, and why it was recounted, if it was."""

    version: int
    commits: int = 0
    rescan: str = ""


@dataclass(frozen=True, slots=True)
class _Step:
    """One attempt to get further: `rescan` asks for a recount, `raced` says that the cursor moved under us."""

    cursor: Cursor
    commits: int = 0
    raced: bool = False
    rescan: str = ""
    caught_up: bool = False


class Follower:
    """Brings the stored state of a table up to its log; safe to run in any number of processes."""

    def __init__(
        self,
        queue: AsyncQueue,
        open_log: Callable[[str], LogReader],
        now_ms: Callable[[], int],
        settings: Settings,
    ) -> None:
        self._queue = queue
        self._states = TableStates(queue)
        self._open_log = open_log
        self._now_ms = now_ms
        self._settings = settings
        self._logs: OrderedDict[str, LogReader] = OrderedDict()
        self._listed: set[TableId] = set()
        self._trusted: dict[TableId, tuple[int, int]] = {}

    async def follow(self, table: TableRef, hinted: int | None = None) -> Followed:
        """Fold what is new in a table's log; `hinted` is the version an event spoke of, None to probe for the next.

        Raises InvalidInput or Corrupt where the log cannot be read, RetryableError where somebody keeps winning the
        race or the store does not answer. Nothing is half done in any case.
        """
        total = races = 0
        rescan = ""
        reader = self._reader(table.location)
        while races < MAX_RACES:
            cursor = await self._states.cursor(table.id)
            if cursor is None:
                step = await self._recount(table, reader, None, "first sight of the table")
            else:
                step = await self._advance(table, reader, cursor, hinted)
                if step.rescan:
                    step = await self._recount(table, reader, cursor, step.rescan)
            total += step.commits
            rescan = step.rescan or rescan
            races = races + 1 if step.raced else 0
            if step.caught_up:
                return Followed(step.cursor.version, total, rescan)
        raise RetryableError(f"table {table.name}: other deciders moved its cursor {MAX_RACES} times in a row")

    async def _advance(self, table: TableRef, reader: LogReader, cursor: Cursor, hinted: int | None) -> _Step:
        """Fold the next batch of commits behind the cursor."""
        policy = effective(self._settings.policy, cursor.metadata.configuration, cursor.last_good).policy
        if policy.version != cursor.policy:
            return _Step(cursor, rescan="the service's policy changed")
        if not await self._is_same_table(table, reader, cursor):
            return _Step(cursor, rescan=f"commit {cursor.version} is gone or another one: the table was made anew")
        batch = Batch(table, policy, terms(cursor.metadata.configuration), cursor.metadata.partition_columns)
        last = cursor
        more = hinted is None or hinted > cursor.version
        while more and len(batch) < COMMITS_PER_INGEST:
            commit = await reader.commit(last.version + 1, last.metadata)
            if commit is None:
                break
            folded = fold(commit, last.metadata, batch.rungs)
            moved = self._moved(last, commit)
            if folded.rescan is not None or moved is None:
                return _Step(cursor, rescan=folded.rescan or "the table's policy changed")
            if len(folded.changes) > CHANGES_PER_INGEST:
                return _Step(cursor, rescan=f"commit {commit.version} touches {len(folded.changes)} cells")
            if batch.changes + len(folded.changes) > CHANGES_PER_INGEST:
                break
            batch.add(commit, folded)
            last = moved
            more = hinted is None or hinted > last.version
        if not len(batch):
            return await self._nothing_new(table, reader, cursor, hinted)
        return await self._ingest(table, cursor, last, batch, caught_up=not more)

    async def _is_same_table(self, table: TableRef, reader: LogReader, cursor: Cursor) -> bool:
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

    def _moved(self, cursor: Cursor, commit: Commit) -> Cursor | None:
        """Move the cursor over a commit; None if the commit changes the policy, so that every cell is decided anew."""
        metadata, last_good = cursor.metadata, cursor.last_good
        if commit.metadata is not None:
            before = effective(self._settings.policy, metadata.configuration, last_good)
            after = effective(self._settings.policy, commit.metadata.configuration, before.last_good)
            if after.policy != before.policy:
                return None
            metadata, last_good = commit.metadata, after.last_good
        return replace(
            cursor,
            version=commit.version,
            digest=commit.digest,
            metadata=metadata,
            last_good=last_good,
            commit_ms=commit.timestamp_ms,
        )

    async def _nothing_new(self, table: TableRef, reader: LogReader, cursor: Cursor, hinted: int | None) -> _Step:
        """The next version is not there: either we are caught up, or the log was cleaned up behind the cursor.

        The listing that tells them apart is asked for once per table and process, and when an event spoke of more.
        """
        expects_more = hinted is not None and hinted > cursor.version
        if expects_more or table.id not in self._listed:
            later = await reader.versions_after(cursor.version)
            self._listed.add(table.id)
            if later and later[0] > cursor.version + 1:
                return _Step(cursor, rescan=f"versions {cursor.version + 1} to {later[0] - 1} are gone from the log")
            if later:
                return _Step(cursor, raced=True)
        return _Step(cursor, caught_up=True)

    async def _ingest(self, table: TableRef, old: Cursor, new: Cursor, batch: Batch, *, caught_up: bool) -> _Step:
        states = await self._states.cells(table.id, batch.cells)
        done = batch.decide(states, self._now_ms())
        if not done.is_possible:
            return _Step(old, rescan="the log removed files that the state never held")
        new = replace(new, folded_ms=self._now_ms())
        # The jobs that one script cannot carry are queued first: a crash before the cursor moves folds the batch again.
        for spec in done.jobs[JOBS_PER_INGEST:]:
            await self._queue.run(transitions.enqueue(self._queue.name, spec))
        result = await self._queue.run(
            transitions.ingest(
                self._queue.name,
                table=table.id,
                expected=old.version,
                expected_policy=old.policy,
                cursor=new.encode(),
                cells=done.cells,
                reset=False,
                jobs=done.jobs[:JOBS_PER_INGEST],
                ledger=[(line, index if index < JOBS_PER_INGEST else -1) for line, index in done.ledger],
                counters=done.counters,
            )
        )
        if not result.applied:
            return _Step(old, raced=True)
        self._trusted[table.id] = (new.version, self._now_ms())
        log.info("folded", table=table.name, version=new.version, commits=len(batch), jobs=len(done.jobs))
        return _Step(new, commits=len(batch), caught_up=caught_up)

    async def _recount(self, table: TableRef, reader: LogReader, old: Cursor | None, reason: str) -> _Step:
        """Count all live files anew and decide every cell; the repair for whatever cannot be folded."""
        snapshot = await reader.snapshot()
        in_force = effective(self._settings.policy, snapshot.metadata.configuration, old.last_good if old else {})
        cursor = Cursor(
            version=snapshot.version,
            metadata=snapshot.metadata,
            policy=in_force.policy.version,
            digest=snapshot.digest,
            last_good=in_force.last_good,
            folded_ms=self._now_ms(),
            commit_ms=snapshot.timestamp_ms,
            rescans=old.rescans + 1 if old else 0,
            rescan_reason=reason,
        )
        cells = recount(snapshot.files, in_force.policy.ladder)
        jobs = self._jobs_after_recount(table, snapshot, in_force, cells)
        # The jobs that one script cannot carry are queued first: a crash before the cursor moves repeats the recount.
        for spec in jobs[JOBS_PER_INGEST:]:
            await self._queue.run(transitions.enqueue(self._queue.name, spec))
        result = await self._queue.run(
            transitions.ingest(
                self._queue.name,
                table=table.id,
                expected=old.version if old else -1,
                expected_policy=old.policy if old else "",
                cursor=cursor.encode(),
                cells={cell: state.encode() for cell, state in cells.items()},
                reset=True,
                jobs=jobs[:JOBS_PER_INGEST],
                ledger=(),
                counters={"rescans": 1} if old else {"tables_seen": 1},
            )
        )
        if not result.applied:
            return _Step(cursor, raced=True)
        if not in_force.policy.enabled:
            await self._withdraw(table, cells)
        log.info("recounted", table=table.name, version=cursor.version, cells=len(cells), jobs=len(jobs), why=reason)
        return _Step(cursor, rescan=reason)

    async def _withdraw(self, table: TableRef, cells: Iterable[CellKey]) -> None:
        """Take back the jobs that wait for a table that was switched off; one that runs is told to stop."""
        for cell in cells:
            await self._queue.run(transitions.cancel(self._queue.name, job_id(JobKey(table.id, cell, COMPACT))))

    def _jobs_after_recount(
        self, table: TableRef, snapshot: Snapshot, in_force: Effective, cells: Mapping[CellKey, CellState]
    ) -> Sequence[JobSpec]:
        heavy = Counter(file.cell for file in snapshot.files if is_purgeable(file, in_force.policy))
        decisions = (
            decide_state(
                cell, state, in_force.policy, snapshot.version, heavy[cell], snapshot.metadata.partition_columns
            )
            for cell, state in cells.items()
        )
        said = terms(snapshot.metadata.configuration)
        return [job_spec(table, decision, in_force.policy, said) for decision in decisions if decision.prediction]

    def _reader(self, location: str) -> LogReader:
        reader = self._logs.pop(location, None) or self._open_log(location)
        self._logs[location] = reader
        if len(self._logs) > OPEN_LOGS:
            self._logs.popitem(last=False)
        return reader
