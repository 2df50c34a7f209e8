"""A recount: all live files are counted anew and every cell is decided; the repair for whatever cannot be folded.

It reads the newest snapshot and replaces the table's cells in the same atomic step in which a fold would add to them,
so a recount may be taken at any moment and by any number of deciders.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import uuid4

import structlog

from decider.batch import COMPACT, job_spec
from decider.decide.verdict import decide_state
from decider.logs import LogReader
from decider.orient.cells import recount
from decider.orient.policies import Effective, effective
from decider.store.cursors import Cursor
from decider.store.ingest import Step, ingest
from decider.store.queue import AsyncQueue
from shared.cells import CellState
from shared.policy import Policy, terms
from shared.queue import transitions
from shared.queue.model import JobKey, JobSpec, job_id
from shared.table import CellKey, Snapshot, TableRef
from shared.worth import is_purgeable

log = structlog.get_logger()


class Recounter:
    """Brings a table's state to its newest snapshot, whatever was stored before."""

    def __init__(self, queue: AsyncQueue, now_ms: Callable[[], int], policy: Policy) -> None:
        self._queue = queue
        self._now_ms = now_ms
        self._policy = policy

    async def recount(self, table: TableRef, reader: LogReader, old: Cursor | None, reason: str) -> Cursor | None:
        """Count anew and decide every cell; `reason` is kept with the cursor. None if somebody moved the cursor first.

        Raises InvalidInput or Corrupt where the log cannot be read, RetryableError where a store does not answer.
        """
        snapshot = await reader.snapshot()
        in_force = effective(self._policy, snapshot.metadata.configuration, old.last_good if old else {})
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
        jobs = _jobs(table, snapshot, in_force, cells)
        step = Step(
            cells={cell: state.encode() for cell, state in cells.items()},
            jobs=jobs,
            counters={"rescans": 1} if old else {"tables_seen": 1},
            reset=True,
        )
        if not await ingest(self._queue, table.id, old=old, new=cursor, step=step):
            return None
        if not in_force.policy.enabled:
            await self._withdraw(table, cells)
        log.info("recounted", table=table.name, version=cursor.version, cells=len(cells), jobs=len(jobs), why=reason)
        return cursor

    async def _withdraw(self, table: TableRef, cells: Iterable[CellKey]) -> None:
        """Take back the jobs that wait for a table that was switched off; one that runs is told to stop."""
        for cell in cells:
            await self._queue.run(
                transitions.cancel(self._queue.name, job_id(JobKey(table.id, cell, COMPACT)), nonce=uuid4().hex)
            )


def _jobs(
    table: TableRef, snapshot: Snapshot, in_force: Effective, cells: Mapping[CellKey, CellState]
) -> Sequence[JobSpec]:
    policy, columns = in_force.policy, snapshot.metadata.partition_columns
    heavy = Counter(file.cell for file in snapshot.files if is_purgeable(file, policy))
    decisions = (
        decide_state(cell, state, policy, snapshot.version, heavy[cell], columns) for cell, state in cells.items()
    )
    said = terms(snapshot.metadata.configuration)
    return [job_spec(table, decision, policy, said) for decision in decisions if decision.prediction]
