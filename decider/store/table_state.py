"""A table's cursor: the version up to which commits are applied, with everything needed to apply the next one.

It is stored as one hash and moved only by the ingest script, which compares the version and writes partitions, jobs and
cursor together; two deciders on one table cost a retry at most.
"""

import json
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from decider.decide.calibration import Calibration
from decider.decide.decision import TableSignals
from decider.state.commit_counts import NO_COMMITS, CommitCounts
from decider.state.contention import NO_CONTENTION, WriteContention
from decider.state.effective_policy import LogStatus
from decider.state.level_fit import NOT_FITTED, LevelFit
from decider.state.table_summary import TableSummary
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.read_counts import weekly_reads
from decider.store.redis_errors import translate_redis_errors, translating_redis_errors
from decider.store.server_time import milliseconds
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.key_runs import NO_KEY_RUNS, KeyRuns
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.layout.removals import NO_REMOVALS, Removals
from shared.queue import keys
from shared.queue.decode import text
from shared.refusals import Refusal, RefusalCode
from shared.table import PartitionColumn, PartitionKey, Position, TableId, TableMetadata, TableProtocol

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

    `policy` is the version of the policy that the partitions were counted and decided under; `digest` names the commit
    of `version`; `last_good` is the newest configuration that could be used as a whole; `folded_ms` is the decider's
    clock at the last move; `queue_limits` are the limits that the policy sets in the queue for this table;
    `contention`: where MERGE, UPDATE and DELETE ran. `protocol` is None where an earlier release wrote the cursor;
    `is_stopped_by_qbeast`: Qbeast's switch was unset. `refusal` is why the table must not be rewritten at this version,
    by the rule of its format; None if it may be. `summary`: sums over the partitions; None where an earlier release
    wrote the state. `removals`: what was removed and not vacuumed yet. `commit_counts`: commits by partition, where the
    policy counts them. `key_runs`: which rows were added and compared, where the table has a key. `level_fit`: the size
    of new files that the partitions' levels are fitted to. `file_counts`: versions at which checkpoints may
    lie, each with the number of live files that the state counted there. `clustered`: files of a clustered table, None
    for any other.
    """

    version: int
    metadata: TableMetadata
    protocol: TableProtocol | None
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
    summary: TableSummary | None = None
    removals: Removals = NO_REMOVALS
    commit_counts: CommitCounts = NO_COMMITS
    key_runs: KeyRuns = NO_KEY_RUNS
    level_fit: LevelFit = NOT_FITTED
    file_counts: tuple[tuple[int, int], ...] = ()
    clustered: ClusteredFiles | None = None

    def encode(self) -> dict[str, str]:
        """Write the cursor as the fields of its hash."""
        return {
            "version": str(self.version),
            "metadata": json.dumps(asdict(self.metadata), separators=(",", ":")),
            "protocol": _encoded_protocol(self.protocol),
            "policy": self.policy,
            "digest": self.digest,
            "last_good": json.dumps(dict(self.last_good), separators=(",", ":")),
            "folded_ms": str(self.folded_ms),
            "commit_ms": str(self.commit_ms),
            "rescans": str(self.rebuilds),
            "rebuild_reason": self.rebuild_reason,
            "steered": self.queue_limits,
            "stopped": str(int(self.is_stopped_by_qbeast)),
            "format": self.metadata.format,
            "refusal": "" if self.refusal is None else json.dumps(asdict(self.refusal), separators=(",", ":")),
            "removals": json.dumps(self.removals.encode(), separators=(",", ":")),
            "level_fit": json.dumps(self.level_fit.encode(), separators=(",", ":")),
            "file_counts": json.dumps(self.file_counts, separators=(",", ":")),
            "heat": json.dumps(self.contention.encode(), separators=(",", ":")),
            "commit_counts": json.dumps(self.commit_counts.encode(), separators=(",", ":")),
            "key_runs": json.dumps(self.key_runs.encode(), separators=(",", ":")),
            "summary": "" if self.summary is None else self.summary.encode(),
            "clustered": json.dumps(None if self.clustered is None else self.clustered.encode()),
        }

    @staticmethod
    def decode(raw: Mapping[bytes | str, bytes | str]) -> "TableState":
        """Read the fields that `encode` wrote."""
        values = {text(name): text(value) for name, value in raw.items()}
        return TableState(
            int(values["version"]),
            _metadata(values["metadata"]),
            _protocol(values.get("protocol", "")),
            values["policy"],
            values["digest"],
            json.loads(values["last_good"]),
            int(values["folded_ms"]),
            int(values["commit_ms"]),
            int(values["rescans"]),
            values["rebuild_reason"],
            values.get("steered", ""),
            WriteContention.decode(json.loads(values.get("heat", "{}"))),
            values.get("stopped") == "1",
            _refusal(values.get("refusal", "")),
            TableSummary.decode(values.get("summary", "")),
            Removals.decode(json.loads(values.get("removals", "{}"))),
            CommitCounts.decode(json.loads(values.get("commit_counts", "{}"))),
            KeyRuns.decode(json.loads(values.get("key_runs", "{}"))),
            LevelFit.decode(json.loads(values.get("level_fit", "{}"))),
            tuple((version, files) for version, files in json.loads(values.get("file_counts", "[]"))),
            ClusteredFiles.decode(json.loads(values.get("clustered", "null"))),
        )

    @property
    def position(self) -> Position:
        """Position of this state in the table's history."""
        return Position(self.version, self.digest)

    @property
    def signals(self) -> TableSignals:
        """What decisions about the table as a whole rest on, as far as the state knows it."""
        return TableSignals(self.version, self.removals, key_runs=self.key_runs, clustered=self.clustered)

    @property
    def last_rewrite_ms(self) -> int:
        """Commit time of the newest Lakewright rewrite, 0 if there was none or an earlier release wrote the state."""
        return 0 if self.summary is None else self.summary.last_rewrite_ms

    @property
    def log_status(self) -> LogStatus:
        """Inputs to the policy from the log beyond the properties."""
        fitted_bytes = self.level_fit.typical_file_bytes
        return LogStatus(self.refusal, self.is_stopped_by_qbeast, self.metadata.format, fitted_bytes)


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """States of some partitions of a table, and the calibration of the table: the input of decisions."""

    partitions: Mapping[PartitionKey, PartitionStats]
    calibration: Calibration


class TableStateStore:
    """Reads of cursors, partitions and ledgers; all writes go through the queue's ingest script."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def state(self, table: TableId) -> TableState | None:
        """Return the cursor of a table, None if it has none yet."""
        raw = await self._queue.redis.hgetall(keys.table_state(self._queue.name, table))
        return TableState.decode(raw) if raw else None

    @translate_redis_errors
    async def versions(self, tables: Sequence[TableId]) -> dict[TableId, int]:
        """Return the version of each of these tables that has been read."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for table in tables:
                pipe.hget(keys.table_state(self._queue.name, table), "version")
            found = await pipe.execute() if tables else []
        return {table: int(version) for table, version in zip(tables, found, strict=True) if version is not None}

    @translate_redis_errors
    async def partitions(self, table: TableId, wanted: Sequence[PartitionKey]) -> dict[PartitionKey, PartitionStats]:
        """Return the states of these partitions; a partition that is not stored is empty."""
        if not wanted:
            return {}
        found = await self._queue.redis.hmget(keys.partitions(self._queue.name, table), list(wanted))
        return _states(wanted, found)

    @translate_redis_errors
    async def calibrated_partitions(self, table: TableId, wanted: Sequence[PartitionKey]) -> PartitionStates:
        """Return the states of these partitions and the table's calibration, in one round trip."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            self._ask_calibration(pipe, table)
            if wanted:
                pipe.hmget(keys.partitions(self._queue.name, table), list(wanted))
            sums, reads, clock, *found = await pipe.execute()
        return PartitionStates(_states(wanted, found[0] if found else ()), _calibration(sums, reads, clock))

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


def _encoded_protocol(protocol: TableProtocol | None) -> str:
    if protocol is None:
        return ""
    features = (sorted(protocol.reader_features), sorted(protocol.writer_features))
    return json.dumps([protocol.min_reader, protocol.min_writer, *features], separators=(",", ":"))


def _protocol(encoded: str) -> TableProtocol | None:
    if not encoded:
        return None
    reader, writer, reads, writes = json.loads(encoded)
    return TableProtocol(reader, writer, frozenset(reads), frozenset(writes))


def _metadata(encoded: str) -> TableMetadata:
    raw = json.loads(encoded)
    columns = tuple(PartitionColumn(**column) for column in raw["partition_columns"])
    key = raw.get("sort_key")
    sort_key = None if key is None else PartitionColumn(**key)
    return TableMetadata(raw["table_uuid"], columns, raw["configuration"], raw["format"], sort_key)


def _refusal(encoded: str) -> Refusal | None:
    if not encoded:
        return None
    raw = json.loads(encoded)
    return Refusal(RefusalCode(raw["code"]), raw["subject"], raw["reason"], raw["action"], tuple(raw.get("allows", ())))
