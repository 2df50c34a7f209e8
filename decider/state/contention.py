"""Write contention: the share of the last hour in which MERGE, UPDATE and DELETE ran in a partition.

Where they began to run less than an hour ago, the share of the time since counts, if that is more: what is rewritten
between two of many such commands is soon rewritten by the next.

A rewrite that commits while such a command reads the same partition aborts it. It is computed, in integers and in the
order of commits, from what the log records: which commands ran, for how long, and in which partitions. Nothing is
stored for tables without such commands.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from shared.table import Commit, PartitionKey

WINDOW_MS = 3_600_000
"""The hour that contention is measured over, in milliseconds."""

YOUNGEST_MS = 300_000
"""Shortest time that a share is of, in milliseconds: in less, a few commands would be a habit."""

MAX_PARTITIONS = 64
"""Maximum number of partitions of one table that are tracked; they are stored with its state, in a few kilobytes."""

DML = frozenset({"MERGE", "UPDATE", "DELETE"})
"""Operations that read what they change, and are aborted by a rewrite of it."""

_NOT_BUSY = Fraction(0)

ALL_PARTITIONS = PartitionKey("*")
"""Means all partitions, where one command touched more of them than are tracked."""


class ActivityWindow(NamedTuple):
    """How busy a partition was: milliseconds in the hour `hour` (counted from 1970) and in the one before it.

    `own_commit_ms` is the time of our last commit in the partition, 0 if such a command has committed since. since_ms:
    when the first command committed, after hours without any; first_ms: how long that ran.
    """

    hour: int = 0
    busy_ms: int = 0
    previous_busy_ms: int = 0
    own_commit_ms: int = 0
    since_ms: int = 0
    first_ms: int = 0

    def advanced_to(self, hour: int) -> "ActivityWindow":
        """Return the window as of a later hour."""
        if hour <= self.hour:
            return self
        before_ms = self.busy_ms if hour == self.hour + 1 else 0
        return self._replace(hour=hour, busy_ms=0, previous_busy_ms=before_ms)

    def after_command(self, at_ms: int, execution_ms: int) -> "ActivityWindow":
        """Return the window after a command that committed in its hour."""
        is_first = not (self.busy_ms or self.previous_busy_ms)
        begun = self._replace(since_ms=at_ms, first_ms=execution_ms) if is_first else self
        return begun._replace(busy_ms=min(WINDOW_MS, self.busy_ms + execution_ms), own_commit_ms=0)


@dataclass(frozen=True, slots=True)
class WriteContention:
    """Write contention of a table's partitions; such commands never ran in a partition that is not listed."""

    windows: Mapping[PartitionKey, ActivityWindow] = field(default_factory=dict)

    def busy_ratio(self, partition: PartitionKey, now_ms: int) -> Fraction:
        """Return the share of the last hour, 0 to 1, in which such commands were running in a partition.

        The share since the first of them counts, without that one, where it is more and an hour has not passed. The
        hour before counts in proportion: by the part of it that lies within the last sixty minutes.
        """
        if not self.windows:
            return _NOT_BUSY
        return max(_busy_ratio(self.windows.get(name), now_ms) for name in (partition, ALL_PARTITIONS))

    def after_commit(
        self, commit: Commit, partitions: Iterable[PartitionKey], now_ms: int
    ) -> tuple["WriteContention", int]:
        """Return the contention after a commit that touched these partitions, and how many aborts we may have caused.

        A writer whose clock runs far ahead of `now_ms` is assumed to have committed now; otherwise its contention would
        never end.

        The rule of the estimate: a command is the first one in a partition since a commit of ours; it began after that
        commit; and an earlier attempt of the same length, right before it, would have been running at that commit.
        """
        if not self.windows and (commit.operation not in DML or not commit.data_change):
            return self, 0
        at_ms = now_ms if _is_in_future(commit.timestamp_ms // WINDOW_MS, now_ms) else commit.timestamp_ms
        spells = {
            partition: spell for partition, spell in self.windows.items() if not _is_in_future(spell.hour, now_ms)
        }
        if commit.origin is not None and not commit.data_change:
            return _with_own_commit(spells, partitions, at_ms), 0
        if commit.operation not in DML or not commit.data_change:
            return self, 0
        touched = tuple(partitions)
        began_ms = at_ms - commit.execution_ms
        hints = sum(
            began_ms - commit.execution_ms <= spell.own_commit_ms <= began_ms
            for partition in touched
            if (spell := spells.get(partition)) is not None and spell.own_commit_ms
        )
        if len(touched) > MAX_PARTITIONS:
            touched = (ALL_PARTITIONS,)
        window = at_ms // WINDOW_MS
        for partition in touched:
            spell = spells.get(partition, ActivityWindow()).advanced_to(window)
            spells[partition] = spell.after_command(at_ms, commit.execution_ms)
        return _bounded(spells, window), min(hints, 1)


NO_CONTENTION = WriteContention()
"""No such command ever ran."""


def _busy_ratio(window: ActivityWindow | None, now_ms: int) -> Fraction:
    if window is None or _is_in_future(window.hour, now_ms):
        return Fraction(0)
    seen = window.advanced_to(now_ms // WINDOW_MS)
    faded_ms = now_ms % WINDOW_MS
    total = seen.busy_ms * WINDOW_MS + seen.previous_busy_ms * (WINDOW_MS - faded_ms)
    of_hour, age_ms = Fraction(total, WINDOW_MS * WINDOW_MS), now_ms - seen.since_ms
    if age_ms >= WINDOW_MS:
        return min(Fraction(1), of_hour)
    busy_ms = max(0, seen.busy_ms + seen.previous_busy_ms - seen.first_ms)
    return min(Fraction(1), max(of_hour, Fraction(busy_ms, max(YOUNGEST_MS, age_ms))))


def _is_in_future(hour: int, now_ms: int) -> bool:
    """Return whether an hour was recorded by a clock that runs ahead by more than clocks differ: it is ignored."""
    return hour > now_ms // WINDOW_MS + 1


def _with_own_commit(
    windows: dict[PartitionKey, ActivityWindow], partitions: Iterable[PartitionKey], at_ms: int
) -> WriteContention:
    """Note a commit of ours in a table in which such commands run."""
    if not windows:
        return NO_CONTENTION
    window = at_ms // WINDOW_MS
    for partition in partitions:
        windows[partition] = windows.get(partition, ActivityWindow()).advanced_to(window)._replace(own_commit_ms=at_ms)
    return _bounded(windows, window)


def _bounded(windows: dict[PartitionKey, ActivityWindow], hour: int) -> WriteContention:
    """Drop partitions without recent commands, and beyond the bound those with the least."""
    warm = {partition: spell for partition, spell in windows.items() if _is_recent(spell.advanced_to(hour))}
    if len(warm) > MAX_PARTITIONS:
        hottest = sorted(
            warm,
            key=lambda partition: (
                warm[partition].hour,
                warm[partition].busy_ms + warm[partition].previous_busy_ms,
                partition,
            ),
        )
        warm = {partition: warm[partition] for partition in hottest[-MAX_PARTITIONS:]}
    # Commits of ours only matter in a table in which such commands run.
    return (
        WriteContention(warm)
        if any(spell.busy_ms or spell.previous_busy_ms for spell in warm.values())
        else NO_CONTENTION
    )


def _is_recent(window: ActivityWindow) -> bool:
    recent_ms = (window.hour - 1) * WINDOW_MS
    return bool(window.busy_ms or window.previous_busy_ms) or window.own_commit_ms >= recent_ms > 0
