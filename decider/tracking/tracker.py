"""Tracking tables: each is followed by one call at a time in this process, and by any number of processes.

An event only means that the table may have changed; `table_tracking` reads what did.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.decision import TableSignals
from decider.formats.table_format import TableReader
from decider.state.batch_files import RecentFiles
from decider.state.effective_policy import EffectivePolicy, LogStatus
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.registry.table_registry import TableTwins
from decider.store.tables.table_state import TableState, TableStateStore
from decider.tracking.drift_check import DriftCheck
from decider.tracking.index_reader import read_index
from decider.tracking.rebuild import StateRebuilder
from decider.tracking.shared_defaults import DefaultsProvider
from decider.tracking.table_context import FollowedTable, TableContext
from decider.tracking.table_tracking import TableTracking, TrackingParts, TrackResult, files_to_purge
from shared.errors import RetryableError
from shared.formats.registry import support_of
from shared.jobs.payload import VACUUM
from shared.layout.partition_stats import PartitionStats
from shared.layout.upkeep import UPKEEP
from shared.partition_refusals import NOTHING, PartitionRefusals, TableFingerprint
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy, PortablePaths
from shared.queue.limits import LEDGER_KEPT
from shared.table import NOTHING_EXAMINED, ExaminedTable, PartitionKey, Snapshot, TableId, TableMetadata, TableRef

OPEN_LOGS = 1_000
"""Logs kept open; an open log is a client object of a few kilobytes."""


class LogCache:
    """Opens logs on demand and keeps the last used ones."""

    def __init__(self, open_table: Callable[[str], TableReader]) -> None:
        self._open_table = open_table
        self._open: OrderedDict[str, TableReader] = OrderedDict()

    def at(self, location: str) -> TableReader:
        """Return the reader of the log at a location."""
        reader = self._open.pop(location, None) or self._open_table(location)
        self._open[location] = reader
        if len(self._open) > OPEN_LOGS:
            self._open.popitem(last=False)
        return reader


class TableTracker:
    """Brings the stored state of a table up to its log; safe to run in any number of processes."""

    def __init__(  # noqa: PLR0913 - every part is independent of the others
        self,
        queue: AsyncQueueExecutor,
        open_table: Callable[[str], TableReader],
        now_ms: Callable[[], int],
        defaults: DefaultsProvider,
        *,
        ledger_kept: int = LEDGER_KEPT,
        drift: DriftCheck | None = None,
        actions: ActionRegistry = ACTIONS,
    ) -> None:
        """`ledger_kept`: records per table that stay in Redis at most."""
        self.ledger_kept = ledger_kept
        self.actions = actions
        states = TableStateStore(queue)
        rebuilder = StateRebuilder(queue, now_ms, defaults, ledger_kept=self.ledger_kept, actions=actions)
        self._parts = TrackingParts(
            *(queue, states, drift or DriftCheck(states, now_ms), rebuilder, defaults, now_ms),
            *(self.ledger_kept, actions, RecentFiles()),
        )
        self._logs = LogCache(open_table)
        self._twins = TableTwins(queue)
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
            return await TableTracking(self._parts, table, reader, here).follow(hinted, known)

    async def load(self, table: TableRef) -> TableContext:
        """Apply the new commits of a table's log, and return it as of then; raises what `follow` raises."""
        await self.follow(table)
        state = await self._parts.states.state(table.id)
        if state is None:
            raise RetryableError(f"table {table.name} was removed meanwhile; register it again")
        return TableContext(table, state, self.effective(table, state))

    async def signals(self, table: TableRef, cursor: TableState, kinds: Collection[str]) -> TableSignals:
        """Return what decisions of these kinds about a whole table rest on, with its newest checkpoint and index."""
        reader = self._logs.at(table.location)
        policy = self.effective(table, cursor).policy
        examined = NOTHING_EXAMINED
        if any(one.kind in kinds for one in UPKEEP):
            examined = await self.examined(table, cursor.metadata, policy, cursor.version)
        upkeep = await reader.upkeep(kinds, examined)
        twins = await self.twins(table, cursor.metadata) if VACUUM in kinds else ()
        signals = replace(cursor.signals, upkeep=upkeep, twins=twins, checkpoint=await reader.checkpoint())
        if not policy.traits.is_indexed:
            return signals
        return replace(signals, index=await read_index(table, reader, cursor.version, policy))

    async def examined(
        self, table: TableRef, metadata: TableMetadata, policy: Policy, version: int
    ) -> Mapping[str, ExaminedTable]:
        """Return where jobs on the table as a whole left work that they refused, by their kind."""
        known = (await self._parts.states.calibrated_partitions(table.id, [WHOLE_TABLE])).refusals
        in_force = known.in_force(TableFingerprint.of(metadata, policy), version).get(WHOLE_TABLE)
        return NOTHING_EXAMINED if in_force is None else in_force.examined

    async def files_to_purge(
        self,
        table: TableRef,
        states: Mapping[PartitionKey, PartitionStats],
        policy: Policy,
        refusals: Mapping[PartitionKey, PartitionRefusals],
    ) -> Counter[PartitionKey]:
        """Count the files of partitions in these states that are rewritten even alone, without those that are refused.

        The snapshot is read for that only where a partition has files with deletion vectors, or where paths count.
        """
        all_paths = policy.portable_paths is PortablePaths.ALWAYS
        wanted = {partition for partition, state in states.items() if all_paths or state.dv_files}
        found = await files_to_purge(self._logs.at(table.location), wanted, policy)
        return Counter({one: max(0, count - refusals.get(one, NOTHING).purgeable) for one, count in found.items()})

    async def twins(self, table: TableRef, metadata: TableMetadata) -> tuple[str, ...]:
        """Return the other names that a table is registered under, where each has metadata of its own."""
        if not support_of(metadata.format).has_entries:
            return ()
        return await self._twins.names(table.id, metadata.table_uuid)

    def effective(self, table: TableRef, cursor: TableState) -> EffectivePolicy:
        """Return the policy in effect for a table in this state."""
        defaults = self._parts.defaults.current
        return defaults.resolve(table, cursor.metadata.configuration, cursor.last_good, cursor.log_status)

    def effective_at(self, table: TableRef, snapshot: Snapshot, cursor: TableState | None) -> EffectivePolicy:
        """Return the policy in effect for a snapshot, which may be newer than the table's state; None: it has none."""
        known = cursor.log_status if cursor else LogStatus()
        status = replace(known, refusal=snapshot.refusal, format=snapshot.metadata.format)
        last_good = cursor.last_good if cursor else {}
        return self._parts.defaults.current.resolve(table, snapshot.metadata.configuration, last_good, status)
