"""Heat: the share of recent time in which MERGE, UPDATE and DELETE were at work in a cell; they come first.

A rewrite that commits while such a command reads the same partition aborts it. The log tells, afterwards, what ran,
for how long, and in which cells: that is all this is made of, in integers, in the order of commits. Tables without
such commands carry nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from shared.table import Commit, PartitionKey

WINDOW_MS = 3_600_000
"""Recent time: an hour, of which the older part fades while the newer one comes in."""

CELLS_KEPT = 64
"""Cells of one table with a heat of their own; they travel with the cursor and must stay a few kilobytes."""

DML = frozenset({"MERGE", "UPDATE", "DELETE"})
"""Operations that read what they change, and are aborted by a rewrite of it."""

EVERYWHERE = PartitionKey("*")
"""Stands for all cells, where one command touched more of them than are kept."""


@dataclass(frozen=True, slots=True)
class ActivityWindow:
    """How busy a cell was: milliseconds in the hour `window` (counted from 1970) and in the one before it.

    `ours_ms` is when a commit of ours met the cell, 0 once such a command has been there since.
    """

    window: int = 0
    busy_ms: int = 0
    before_ms: int = 0
    ours_ms: int = 0

    def at(self, window: int) -> "ActivityWindow":
        """Return the same, seen from a later hour."""
        if window <= self.window:
            return self
        before_ms = self.busy_ms if window == self.window + 1 else 0
        return ActivityWindow(window, 0, before_ms, self.ours_ms)


@dataclass(frozen=True, slots=True)
class WriteContention:
    """The heat of a table's cells; cells that are not named were never met."""

    spells: Mapping[PartitionKey, ActivityWindow] = field(default_factory=dict)

    def share(self, cell: PartitionKey, now_ms: int) -> Fraction:
        """Return the share of the last hour, 0 to 1, in which such commands were running in a cell.

        The hour before fades evenly: what is counted of it is the part that lies within the last sixty minutes.
        """
        return max(_share(self.spells.get(name), now_ms) for name in (cell, EVERYWHERE))

    def after(self, commit: Commit, cells: Iterable[PartitionKey], now_ms: int) -> tuple["WriteContention", int]:
        """Return the heat after a commit that touched these cells, and how many aborts of ours it hints at.

        A writer whose clock runs far ahead of `now_ms` is taken to have committed now, or its heat would never end.

        The rule of the estimate: a command is the first one in a cell since a commit of ours; it began after that
        commit; and an earlier attempt of the same length, right before it, would have been running at that commit.
        """
        at_ms = now_ms if _lies_ahead(commit.timestamp_ms // WINDOW_MS, now_ms) else commit.timestamp_ms
        spells = {cell: spell for cell, spell in self.spells.items() if not _lies_ahead(spell.window, now_ms)}
        if commit.origin is not None and not commit.data_change:
            return _met(spells, cells, at_ms), 0
        if commit.operation not in DML or not commit.data_change:
            return self, 0
        touched = tuple(cells)
        began_ms = at_ms - commit.execution_ms
        hints = sum(
            began_ms - commit.execution_ms <= spell.ours_ms <= began_ms
            for cell in touched
            if (spell := spells.get(cell)) is not None and spell.ours_ms
        )
        if len(touched) > CELLS_KEPT:
            touched = (EVERYWHERE,)
        window = at_ms // WINDOW_MS
        for cell in touched:
            spell = spells.get(cell, ActivityWindow()).at(window)
            busy_ms = min(WINDOW_MS, spell.busy_ms + commit.execution_ms)
            spells[cell] = replace(spell, busy_ms=busy_ms, ours_ms=0)
        return _bounded(spells, window), min(hints, 1)

    def encode(self) -> dict[str, list[int]]:
        """Write the heat as plain lists by cell."""
        return {cell: [s.window, s.busy_ms, s.before_ms, s.ours_ms] for cell, s in self.spells.items()}

    @staticmethod
    def decode(raw: Mapping[str, list[int]]) -> "WriteContention":
        """Read what `encode` wrote."""
        return WriteContention({PartitionKey(cell): ActivityWindow(*numbers) for cell, numbers in raw.items()})


COLD = WriteContention()
"""No such command was ever met."""


def _share(spell: ActivityWindow | None, now_ms: int) -> Fraction:
    if spell is None or _lies_ahead(spell.window, now_ms):
        return Fraction(0)
    seen = spell.at(now_ms // WINDOW_MS)
    faded_ms = now_ms % WINDOW_MS
    total = seen.busy_ms * WINDOW_MS + seen.before_ms * (WINDOW_MS - faded_ms)
    return min(Fraction(1), Fraction(total, WINDOW_MS * WINDOW_MS))


def _lies_ahead(window: int, now_ms: int) -> bool:
    """Whether an hour was told by a clock that runs ahead by more than clocks differ: nothing can be said of it."""
    return window > now_ms // WINDOW_MS + 1


def _met(spells: dict[PartitionKey, ActivityWindow], cells: Iterable[PartitionKey], at_ms: int) -> WriteContention:
    """Note a commit of ours in the cells of a table in which such commands are at work."""
    if not spells:
        return COLD
    window = at_ms // WINDOW_MS
    for cell in cells:
        spells[cell] = replace(spells.get(cell, ActivityWindow()).at(window), ours_ms=at_ms)
    return _bounded(spells, window)


def _bounded(spells: dict[PartitionKey, ActivityWindow], window: int) -> WriteContention:
    """Drop what has cooled down, and beyond the bound the coldest."""
    warm = {cell: spell for cell, spell in spells.items() if _is_warm(spell.at(window))}
    if len(warm) > CELLS_KEPT:
        hottest = sorted(warm, key=lambda cell: (warm[cell].window, warm[cell].busy_ms + warm[cell].before_ms, cell))
        warm = {cell: warm[cell] for cell in hottest[-CELLS_KEPT:]}
    # Commits of ours are only of interest in a table where such commands are at work.
    return WriteContention(warm) if any(spell.busy_ms or spell.before_ms for spell in warm.values()) else COLD


def _is_warm(spell: ActivityWindow) -> bool:
    recent_ms = (spell.window - 1) * WINDOW_MS
    return bool(spell.busy_ms or spell.before_ms) or spell.ours_ms >= recent_ms > 0
