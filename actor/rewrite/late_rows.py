"""Late rows: those that others deleted while a group was rewritten, where its output has them, and that they are there.

An output that holds its inputs one after the other has one place for each of their rows. So a commit can hide there
what others deleted meanwhile, and need not be given up. Before anything is hidden, the rows at these places are read
and compared with the deleted ones. How rows are hidden is the business of a format.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from actor.rewrite.model import S
from shared.layout.planner import FileGroup

MOST_ROWS = 1_000_000
"""Rows that are hidden in an output at most: as text, they travel twice between Python and the JVM, 8 MB each way."""

MAX_COMPARISONS = 5
"""Comparisons of late rows in one attempt: one takes a twentieth of a second, and others may delete rows meanwhile."""

ROWS_COMPARED = 1_000
"""Late rows of a group that are compared at most; of more, as many are drawn."""

ONCE_FROM_BYTES = 64 << 20
"""Bytes of inputs from which a comparison takes longer than others need to delete again. It is made once, with as many
drawn rows besides, which lie where they should only if all do."""

N = TypeVar("N")
Found = TypeVar("Found")
Positions = Sequence[Sequence[int]]
"""Positions of rows in each input, ascending."""


@dataclass(frozen=True, slots=True)
class RowMap:
    """Where an output that holds its inputs one after the other has their rows.

    rows: stored rows of each input; omitted: positions of each that the output lacks (empty: it has all rows).
    """

    rows: tuple[int, ...]
    omitted: Positions = ()

    @property
    def output_rows(self) -> int:
        """How many rows the output must have."""
        return sum(self.rows) - sum(map(len, self.omitted))

    def places(self, chosen: Positions) -> Iterator[int]:
        """Yield the places of the rows at chosen positions of each input, none of which is omitted."""
        start = 0
        for rows, omitted, positions in zip(self.rows, self._omitted, chosen, strict=True):
            yield from (start + position - bisect_left(omitted, position) for position in positions)
            start += rows - len(omitted)

    def drawn(self, draw: random.Random, at_most: int) -> Positions:
        """Return some positions of each input that the output has: of half of its rows, so many at most."""
        chosen = [_drawn(draw, range(rows), min(at_most, rows // 2)) for rows in self.rows]
        return [sorted({*some}.difference(gone)) for some, gone in zip(chosen, self._omitted, strict=True)]

    @property
    def _omitted(self) -> Positions:
        return self.omitted or [()] * len(self.rows)


@dataclass(frozen=True, slots=True)
class LateRows(Generic[S, N]):
    """Rows of a written group that others deleted since; `now` is what the format knows of its inputs of today.

    hidden: positions of those that were not hidden before; places: where the output, whose rows `row_map` places, holds
    all that it has to hide; both ascending.
    """

    group: S
    now: N
    row_map: RowMap
    hidden: Positions
    places: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return how many rows others deleted."""
        return sum(map(len, self.hidden))


class Comparisons(Generic[S]):
    """Remembers which late rows of one rewrite were compared with those at their places in the output.

    `compare` compares the rows at positions of a group's inputs with those at places of its output: it raises
    Difference, and returns False if no reader can.
    """

    def __init__(self, compare: Callable[[S, Positions, Sequence[int]], bool]) -> None:
        self._compare = compare
        self._proven: dict[FileGroup, tuple[int, ...]] = {}
        self._unread: set[FileGroup] = set()

    def are_made(self, late: LateRows[S, Any]) -> bool:
        """Return whether these rows were compared, or this large group was."""
        proven = self._proven.get(late.group.live.group)
        return proven is not None and (proven == late.places or _is_large(late))

    def spare(self, late: LateRows[S, Any]) -> None:
        """Take late rows as compared, because all bytes of the output were."""
        self._proven[late.group.live.group] = late.places

    def make(self, late: LateRows[S, Any]) -> bool:
        """Compare late rows with those at their places; returns False if no reader can. Raises Difference."""
        draw = random.Random(late.group.outputs[0].file.path)  # noqa: S311 - a sample, the same each time
        share = max(1, ROWS_COMPARED // len(late.hidden))
        samples: list[Positions] = [[_drawn(draw, positions, share) for positions in late.hidden]]
        if _is_large(late):
            samples.append(late.row_map.drawn(draw, share))
        if all(self._compare(late.group, chosen, list(late.row_map.places(chosen))) for chosen in samples):
            self._proven[late.group.live.group] = late.places
            return True
        self._unread.add(late.group.live.group)
        return False

    def look(self, look: Callable[[], tuple[Found, list[LateRows[S, N]]]]) -> tuple[Found, list[LateRows[S, N]]]:
        """Look at the table until what it shows is compared; return what was found, and the late rows proven."""
        found, late = look()
        for _ in range(MAX_COMPARISONS):
            unproven = [rows for rows in late if not (self.are_made(rows) or rows.group.live.group in self._unread)]
            if not unproven:
                break
            for rows in unproven:
                self.make(rows)
            found, late = look()  # That took its time, in which others go on.
        return found, [rows for rows in late if self.are_made(rows)]


def _is_large(late: LateRows[S, N]) -> bool:
    return bool(late.group.live.group.bytes >= ONCE_FROM_BYTES)


def _drawn(draw: random.Random, positions: Sequence[int], at_most: int) -> Sequence[int]:
    return positions if len(positions) <= at_most else sorted(draw.sample(positions, at_most))
