"""A table's cursor: the version up to which commits are applied, with everything needed to apply the next one.

It is stored as one hash and moved only by the ingest script, which compares the version and writes partitions, jobs and
cursor together; two deciders on one table cost a retry at most.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decider.decide.calibration import Calibration
from decider.decide.decision import TableSignals
from decider.state.commit_pace import NO_COMMITS, UNKNOWN_PACE, CommitCounts, CommitPace, IngestedDays
from decider.state.contention import NO_CONTENTION, WriteContention
from decider.state.effective_policy import LogStatus
from decider.state.level_fit import NOT_FITTED, LevelFit
from decider.state.own_tail import OwnTail
from decider.state.refused_partitions import NO_REFUSALS, RefusedPartitions
from decider.state.table_summary import NOTHING_COUNTED, TableSummary
from decider.state.target_fit import NO_TARGET, TargetFit
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors, translating_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from decider.store.stored_values import milliseconds
from decider.store.tables.read_counts import weekly_reads
from shared.layout.cells.counts import CellFiles
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.key_runs import NO_KEY_RUNS, KeyRuns
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.layout.removals import NO_REMOVALS, Removals
from shared.queue import keys
from shared.queue.decode import text
from shared.refusals import Refusal
from shared.release import RELEASE
from shared.table import PartitionKey, Position, TableId, TableMetadata, TableProtocol
from shared.typed_json import from_texts, to_texts

_Hash = Mapping[bytes | str, bytes | str]

PAGE = 1_000
"""Partitions read per round trip: decoding them takes a few milliseconds, which other calls may wait for."""


COUNTED_VERSIONS = 10
"""Versions whose multiples have their live files remembered: writers leave a checkpoint every 10 or 100 commits."""

COUNTS_KEPT = 16
"""Counts that are remembered: a checkpoint of the last 160 versions can be compared."""


@dataclass(frozen=True, slots=True)
class TableState:
    """Version of a table up to which commits are applied, with its metadata and policy.

    `policy` is the `state_version` of the policy that the partitions were counted under; `digest` names the commit of
    `version`; `last_good` is the newest configuration that could be used as a whole; `folded_ms` is the decider's clock
    at the last move; `queue_limits` are those that the policy sets in the queue for this table (see
    `table_queue_limits`); `contention`: where MERGE, UPDATE and DELETE ran. `is_stopped_by_qbeast`: Qbeast's switch was
    unset. `refusal` is why the table must not be rewritten at this version, by the rule of its format; None if it may
    be. `summary`: sums over the partitions. `removals`: what was removed and not vacuumed yet. `commit_counts`: commits
    by partition, where the policy counts them. `key_runs`: which rows were added and compared, where the table has a
    key. `level_fit`: the size of new files that the partitions' levels are fitted to. `ingested`: bytes
    that writers added by day, which the queue's scripts read. `target_fit`: the target that was chosen, if one may be.
    `file_counts`: versions at which
    checkpoints may lie, each with the number of live files that the state counted there. `clustered`: files of a
    clustered table, `cells`: of one in cells; None for any other. `pace`: how often writers commit. `together_ms`: when
    the merges that wait for each other are ready. `release`: of the decider that wrote it; another one tries refused
    files again. `group`: the one of the queue that has the table's jobs, as the scripts read it; empty: the queue
    itself. `own_tail`: our newest rewrites, which a catalog may undo.
    """

    version: int
    metadata: TableMetadata
    protocol: TableProtocol
    policy: str
    digest: str = ""
    last_good: Mapping[str, str] = field(default_factory=dict)
    folded_ms: int = 0
    commit_ms: int = 0
    rebuilds: int = 0
    rebuild_reason: str = ""
    queue_limits: str = ""
    contention: WriteContention = NO_CONTENTION
    is_stopped_by_qbeast: bool = False
    refusal: Refusal | None = None
    summary: TableSummary = NOTHING_COUNTED
    removals: Removals = NO_REMOVALS
    commit_counts: CommitCounts = NO_COMMITS
    key_runs: KeyRuns = NO_KEY_RUNS
    level_fit: LevelFit = NOT_FITTED
    ingested: IngestedDays = ()
    target_fit: TargetFit = NO_TARGET
    pace: CommitPace = UNKNOWN_PACE
    together_ms: int = 0
    file_counts: tuple[tuple[int, int], ...] = ()
    clustered: ClusteredFiles | None = None
    cells: CellFiles | None = None
    release: str = RELEASE
    group: str = ""
    own_tail: OwnTail = ()

    def encode(self, since: "TableState | None" = None) -> dict[str, str]:
        """Write the cursor as the fields of its hash; the queue's scripts read the format: an actor has to know it.

        since: the cursor that is stored, of which fields that did not change stay as they are; None: there is none.
        """
        return to_texts(self, since) | {"format": self.metadata.format, "table_uuid": self.metadata.table_uuid}

    @staticmethod
    def decode(raw: Mapping[bytes | str, bytes | str]) -> "TableState":
        """Read the fields that `encode` wrote."""
        return from_texts(TableState, {text(name): text(value) for name, value in raw.items()})

    @property
    def position(self) -> Position:
        """Position of this state in the table's history."""
        return Position(self.version, self.digest)

    @property
    def signals(self) -> TableSignals:
        """Inputs of decisions about the table as a whole, as far as the state knows it."""
        return TableSignals(
            self.version, self.removals, key_runs=self.key_runs, clustered=self.clustered, cells=self.cells
        )

    @property
    def last_rewrite_ms(self) -> int:
        """Commit time of the newest Lakewright rewrite, 0 if there was none."""
        return self.summary.last_rewrite_ms

    @property
    def log_status(self) -> LogStatus:
        """Inputs to the policy from the log beyond the properties."""
        fitted_bytes = self.level_fit.typical_file_bytes
        return LogStatus(
            *(self.refusal, self.is_stopped_by_qbeast, self.metadata.format, fitted_bytes, self.target_fit.target_bytes)
        )


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """States of some partitions of a table, its calibration, and refused files: the input of decisions."""

    partitions: Mapping[PartitionKey, PartitionStats]
    calibration: Calibration
    refusals: RefusedPartitions = NO_REFUSALS


class TableStateStore:
    """Reads of cursors, partitions and ledgers; all writes go through the queue's ingest script."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def state(self, table: TableId) -> TableState | None:
        """Return the cursor of a table, None if it has none yet."""
        raw = await self._queue.redis.hgetall(keys.table_state(self._queue.name, table))
        return TableState.decode(raw) if raw else None

    async def versions(self, tables: Sequence[TableId]) -> dict[TableId, int]:
        """Return the version of each of these tables that has been read; one whose key is damaged has none."""
        return {table: int(version) for table, version in (await self._fields(tables, "version")).items()}

    async def groups(self, tables: Sequence[TableId]) -> dict[TableId, str]:
        """Return the group of each of these tables; empty: the queue itself, or not read yet."""
        return dict.fromkeys(tables, "") | await self._fields(tables, "group")

    @translate_redis_errors
    async def _fields(self, tables: Sequence[TableId], name: str) -> dict[TableId, str]:
        """Return this field of each state that has it."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for table in tables:
                pipe.hget(keys.table_state(self._queue.name, table), name)
            found = await pipe.execute(raise_on_error=False) if tables else []
        read = zip(tables, found, strict=True)
        return {table: text(value) for table, value in read if isinstance(value, bytes | str)}

    @translate_redis_errors
    async def partitions(self, table: TableId, wanted: Sequence[PartitionKey]) -> dict[PartitionKey, PartitionStats]:
        """Return the states of these partitions; a partition that is not stored is empty."""
        if not wanted:
            return {}
        found = await self._queue.redis.hmget(keys.partitions(self._queue.name, table), list(wanted))
        return _states(wanted, found)

    @translate_redis_errors
    async def calibrated_partitions(self, table: TableId, wanted: Sequence[PartitionKey]) -> PartitionStates:
        """Return the states and refused files of these partitions and the table's calibration, in one round trip."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            self._ask_calibration(pipe, table)
            if wanted:
                pipe.hmget(keys.partitions(self._queue.name, table), list(wanted))
                pipe.hmget(keys.refusals(self._queue.name, table), list(wanted))
            sums, reads, clock, *found = await pipe.execute()
        states, refused = found or ((), ())
        known = RefusedPartitions.of(zip(wanted, refused, strict=True))
        return PartitionStates(_states(wanted, states), _calibration(sums, reads, clock), known)

    @translate_redis_errors
    async def refusals(self, table: TableId, *, limit: int | None = None) -> RefusedPartitions:
        """Return what is remembered of a table's refused files, of its first `limit` partitions (None: all)."""
        if limit is not None:
            names = await self._queue.redis.hkeys(keys.refusals(self._queue.name, table))
            first = sorted(PartitionKey(text(name)) for name in names)[:limit]
            return (await self.calibrated_partitions(table, first)).refusals
        raw = await self._queue.redis.hgetall(keys.refusals(self._queue.name, table))
        return RefusedPartitions.of((PartitionKey(text(partition)), known) for partition, known in raw.items())

    @translate_redis_errors
    async def has_refusals(self, table: TableId) -> bool:
        """Return whether anything is remembered of a table's refused files."""
        return bool(await self._queue.redis.exists(keys.refusals(self._queue.name, table)))

    @translate_redis_errors
    async def refusing_tables(self) -> dict[TableId, int]:
        """Return the number of partitions of which refusals are remembered, by table."""
        raw = await self._queue.redis.hgetall(keys.refusing_tables(self._queue.name))
        return {TableId(text(table)): int(partitions) for table, partitions in raw.items()}

    @translate_redis_errors
    async def calibration(self, table: TableId) -> Calibration:
        """Return a table's calibration."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            self._ask_calibration(pipe, table)
            return _calibration(*await pipe.execute())

    def _ask_calibration(self, pipe: Any, table: TableId) -> None:
        pipe.hgetall(keys.measures(self._queue.name, table))
        pipe.hgetall(keys.reads(table))
        pipe.time()

    @translate_redis_errors
    async def all_partitions(self, table: TableId) -> dict[PartitionKey, PartitionStats]:
        """Return every stored partition of a table."""
        raw = await self._queue.redis.hgetall(keys.partitions(self._queue.name, table))
        return {PartitionKey(text(partition)): PartitionStats.decode(text(state)) for partition, state in raw.items()}

    @translate_redis_errors
    async def page(
        self, table: TableId, *, after: str, limit: int
    ) -> tuple[dict[PartitionKey, PartitionStats], str | None]:
        """Return up to `limit` partitions whose keys follow `after`, in order, and the last key if there are more."""
        names = sorted(text(name) for name in await self._queue.redis.hkeys(keys.partitions(self._queue.name, table)))
        start = bisect_right(names, after)
        wanted = [PartitionKey(name) for name in names[start : start + limit]]
        more = wanted[-1] if start + limit < len(names) else None
        states = await self.partitions(table, wanted)
        return {partition: state for partition, state in states.items() if state.files}, more

    async def iterate_partitions(self, table: TableId) -> AsyncIterator[tuple[PartitionKey, PartitionStats]]:
        """Yield every partition once, in no order, without holding up the event loop for longer than one page."""
        place = 0
        seen: set[str] = set()
        while True:
            with translating_redis_errors():
                place, rows = await self._scan(table, place)
            for name, state in rows.items():
                if text(name) not in seen:
                    seen.add(text(name))
                    yield PartitionKey(text(name)), PartitionStats.decode(text(state))
            if not place:
                return

    async def _scan(self, table: TableId, place: int) -> tuple[int, Mapping[bytes | str, bytes | str]]:
        found: Any = await self._queue.redis.hscan(keys.partitions(self._queue.name, table), place, count=PAGE)
        return int(found[0]), found[1]


def _states(wanted: Sequence[PartitionKey], found: Sequence[bytes | str | None]) -> dict[PartitionKey, PartitionStats]:
    return {
        partition: EMPTY_STATS if raw is None else PartitionStats.decode(text(raw))
        for partition, raw in zip(wanted, found, strict=True)
    }


def _calibration(sums: _Hash, reads: _Hash, clock: tuple[int, int]) -> Calibration:
    known = {text(name): int(value) for name, value in sums.items()}
    return Calibration.of(known, weekly_reads(reads, milliseconds(clock)) if reads else 0)


@translate_redis_errors
async def replace_field(
    queue: AsyncQueueExecutor, table: TableId, name: str, *, before: str, after: str
) -> tuple[bool, str]:
    """Replace a field if it is `before`; return whether it was, and its value now, empty without a state."""
    key = keys.table_state(queue.name, table)

    async def replace(pipe: Any) -> tuple[bool, str]:
        found = text(await pipe.hget(key, name) or b"")
        if found != before or not await pipe.exists(key):
            return False, found
        pipe.multi()
        pipe.hset(key, name, after)
        return True, after

    return await watched_transaction(queue.redis, (key,), replace)
