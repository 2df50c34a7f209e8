"""The one step in which a table's state moves: cells, cursor, jobs and ledger together, or nothing.

The script compares the cursor first, so of two deciders that folded the same commits one writes and the other tries
again. A script carries a bounded number of jobs; the others are queued before it moves the cursor, so that a crash in
between repeats the work instead of losing it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from decider.store.cursors import Cursor
from decider.store.queue import AsyncQueue
from shared.queue import transitions
from shared.queue.model import JobSpec
from shared.queue.transitions import LEDGER_KEPT
from shared.table import TableId

JOBS_PER_INGEST = 100
"""Jobs one ingest may carry (the script's bound)."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is written: encoded cells (None: to be deleted), jobs, ledger lines with the index of their job, counters.

    reset: all cells of the table are dropped first. ledger_kept: records of the table that stay at most.
    """

    cells: Mapping[str, str | None]
    jobs: Sequence[JobSpec] = ()
    ledger: Sequence[tuple[str, int]] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    reset: bool = False
    ledger_kept: int = LEDGER_KEPT


async def ingest(queue: AsyncQueue, table: TableId, *, old: Cursor | None, new: Cursor, step: Step) -> bool:
    """Move a table from one cursor to the next; False if somebody else moved it first, and nothing was written.

    Raises RetryableError where Redis does not answer; whether it was done is then seen by the cursor.
    """
    for spec in step.jobs[JOBS_PER_INGEST:]:
        await queue.run(transitions.enqueue(queue.name, spec))
    result = await queue.run(
        transitions.ingest(
            queue.name,
            table=table,
            expected=old.version if old else -1,
            expected_policy=old.policy if old else "",
            cursor=new.encode(),
            cells=step.cells,
            reset=step.reset,
            jobs=step.jobs[:JOBS_PER_INGEST],
            ledger=[(line, index if index < JOBS_PER_INGEST else -1) for line, index in step.ledger],
            counters=step.counters,
            ledger_kept=step.ledger_kept,
        )
    )
    return result.applied
