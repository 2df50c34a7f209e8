"""Timers: what a cell is looked at again for when no commit leads to it, and when.

A timer is only set where it would find work, so that an idle lake has no timers. A commit that changes data sets the
time of the last merge anew: a cell is settled when it has been quiet for so long, and once for each quiet spell.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shared.cells import CellState
from shared.facts import Ask
from shared.policy import Policy
from shared.predicate import permits
from shared.queue.model import Timer, TimerChange
from shared.table import CellKey, DataFile, PartitionColumn
from shared.worth import judge_full, judge_settling


def timer_name(ask: Ask, cell: CellKey) -> str:
    """Return the name under which the queue keeps a cell's timer."""
    return f"{ask} {cell}"


def parse_timer(name: str) -> tuple[Ask, CellKey] | None:
    """Read what `timer_name` wrote; None for what another release may have written."""
    ask, _, cell = name.partition(" ")
    return (Ask(ask), CellKey(cell)) if ask in set(Ask) else None


def timers_after_commit(
    cell: CellKey, state: CellState, policy: Policy, at_ms: int, columns: Sequence[PartitionColumn]
) -> Iterator[Timer]:
    """Yield what becomes of a cell's timers after a commit that changed data brought it into this state."""
    is_ours = policy.enabled and permits(policy.filter, cell, columns)
    settles = is_ours and policy.settle_after_s is not None and judge_settling(state, policy).is_work
    due_ms = at_ms + (policy.settle_after_s or 0) * 1000
    yield Timer(timer_name(Ask.SETTLE, cell), due_ms, TimerChange.SET if settles else TimerChange.STOP)
    if is_ours and policy.full_interval_s is not None and judge_full(state).is_work:
        yield Timer(timer_name(Ask.FULL, cell), at_ms + policy.full_interval_s * 1000, TimerChange.EARLIER)


def timers_after_rewrite(cell: CellKey, state: CellState, policy: Policy) -> Iterator[Timer]:
    """Yield the timers that would find nothing any more, now that a rewrite has brought the cell into this state."""
    if not judge_settling(state, policy).is_work:
        yield Timer(timer_name(Ask.SETTLE, cell), 0, TimerChange.STOP)
    if not judge_full(state).is_work:
        yield Timer(timer_name(Ask.FULL, cell), 0, TimerChange.STOP)


def timers_after_recount(
    files: Iterable[DataFile],
    cells: Mapping[CellKey, CellState],
    policy: Policy,
    at_ms: int,
    columns: Sequence[PartitionColumn],
) -> Iterator[Timer]:
    """Yield the timers of a table that was counted anew; quiet begins with a cell's newest file."""
    newest: dict[CellKey, int] = {}
    for file in files:
        newest[file.cell] = max(newest.get(file.cell, 0), file.modified_ms)
    for cell, state in cells.items():
        # A clock that runs ahead must not postpone the settling for ever.
        quiet_since_ms = min(at_ms, newest.get(cell, at_ms))
        for timer in timers_after_commit(cell, state, policy, at_ms, columns):
            if timer.name.startswith(Ask.FULL):
                yield timer
            elif timer.change is TimerChange.SET:
                yield Timer(timer.name, timer.at_ms - at_ms + quiet_since_ms)
