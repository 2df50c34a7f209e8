"""Timers: what a cell is looked at again for when no commit leads to it, and when.

A timer is only set where it would find work, so that an idle lake has no timers. A commit that changes data sets the
time of the last merge anew: a cell is settled when it has been quiet for so long, and once for each quiet spell.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from shared.job_payload import RewriteKind
from shared.layout.eligibility import evaluate_full, evaluate_idle, is_left_to_settle
from shared.layout.file_selection import window_of
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, contribution
from shared.partition_filter import permits
from shared.policy import Policy
from shared.queue.model import Timer, TimerChange
from shared.table import DataFile, PartitionColumn, PartitionKey


def timer_name(ask: RewriteKind, cell: PartitionKey, start_ms: int | None = None) -> str:
    """Return the name under which the queue keeps a timer of a cell, or of a window of it that starts at this time."""
    return f"{ask} {cell}" if start_ms is None else f"{ask}@{start_ms} {cell}"


def parse_timer(name: str) -> tuple[RewriteKind, PartitionKey] | None:
    """Read what `timer_name` wrote; None for what another release may have written."""
    head, _, cell = name.partition(" ")
    ask = head.partition("@")[0]
    return (RewriteKind(ask), PartitionKey(cell)) if ask in set(RewriteKind) else None


def timers_after_commit(
    cell: PartitionKey, state: PartitionStats, policy: Policy, at_ms: int, columns: Sequence[PartitionColumn]
) -> Iterator[Timer]:
    """Yield what becomes of a cell's timers after a commit that changed data brought it into this state."""
    is_ours = policy.enabled and permits(policy.filter, cell, columns)
    settles = is_ours and policy.settle_after_s is not None and evaluate_idle(state, policy).is_work
    if policy.time_window_s is None:
        due_ms = at_ms + (policy.settle_after_s or 0) * 1000
        yield Timer(timer_name(RewriteKind.SETTLE, cell), due_ms, TimerChange.SET if settles else TimerChange.STOP)
    elif settles:
        yield from _window_timers(cell, state.windows, policy, at_ms)
    if is_ours and policy.full_interval_s is not None and evaluate_full(state).is_work:
        yield Timer(timer_name(RewriteKind.FULL, cell), at_ms + policy.full_interval_s * 1000, TimerChange.EARLIER)


def _window_timers(
    cell: PartitionKey, windows: Iterable[tuple[int, PartitionStats]], policy: Policy, at_ms: int
) -> Iterator[Timer]:
    """Yield a timer for each window with files to settle: it rings when the window has been over for long enough."""
    after_ms, length_ms = (policy.settle_after_s or 0) * 1000, (policy.time_window_s or 0) * 1000
    for start_ms, state in windows:
        if is_left_to_settle(state, policy):
            due_ms = max(start_ms + length_ms, at_ms) + after_ms
            yield Timer(timer_name(RewriteKind.SETTLE, cell, start_ms), due_ms, TimerChange.EARLIER)


def timers_after_rewrite(
    cell: PartitionKey, state: PartitionStats, policy: Policy, rewritten: Iterable[int] = ()
) -> Iterator[Timer]:
    """Yield the timers that would find nothing any more, now that a rewrite has brought the cell into this state.

    rewritten: starts of the windows that it made files of.
    """
    known = dict(state.windows)
    for start_ms in rewritten:
        if start_ms not in known or not is_left_to_settle(known[start_ms], policy):
            yield Timer(timer_name(RewriteKind.SETTLE, cell, start_ms), 0, TimerChange.STOP)
    if policy.time_window_s is None and not evaluate_idle(state, policy).is_work:
        yield Timer(timer_name(RewriteKind.SETTLE, cell), 0, TimerChange.STOP)
    if not evaluate_full(state).is_work:
        yield Timer(timer_name(RewriteKind.FULL, cell), 0, TimerChange.STOP)


def timers_after_recount(
    files: Iterable[DataFile],
    cells: Mapping[PartitionKey, PartitionStats],
    policy: Policy,
    at_ms: int,
    columns: Sequence[PartitionColumn],
) -> Iterator[Timer]:
    """Yield the timers of a table that was counted anew; quiet begins with a cell's newest file, or a window's end."""
    newest: dict[PartitionKey, int] = {}
    windows: dict[PartitionKey, dict[int, PartitionStats]] = {}
    for file in files:
        newest[file.cell] = max(newest.get(file.cell, 0), file.modified_ms)
        start_ms = window_of(file, policy)
        if start_ms is not None:
            inside = windows.setdefault(file.cell, {})
            inside[start_ms] = inside.get(start_ms, EMPTY_STATS) + contribution(file, policy.ladder)
    for cell, state in cells.items():
        # A clock that runs ahead must not postpone the settling for ever.
        quiet_since_ms = min(at_ms, newest.get(cell, at_ms))
        # Here all windows are known, and not the newest alone. Those that are overdue need one job, and one timer.
        known = replace(state, windows=tuple(sorted(windows.get(cell, {}).items())))
        is_overdue = False
        for timer in timers_after_commit(cell, known, policy, 0, columns):
            if timer.name.startswith(RewriteKind.FULL):
                yield replace(timer, at_ms=timer.at_ms + at_ms)
            elif timer.change is TimerChange.SET:
                yield replace(timer, at_ms=timer.at_ms + quiet_since_ms)
            elif timer.change is TimerChange.EARLIER and not (is_overdue and timer.at_ms <= at_ms):
                is_overdue = is_overdue or timer.at_ms <= at_ms
                yield replace(timer, change=TimerChange.SET)
