"""The rolling state of a cell is exact: integers that form a commutative group under adding and removing files.

Whatever the order of commits, the state equals a recount of the live files, integer for integer. Nothing here knows a
path; a commit costs the size of the commit and an idle cell costs nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import add, sub

from shared.levels import FULL, SMALL_LEVELS, Ladder
from shared.table import DataFile

_NO_LEVELS = (0,) * SMALL_LEVELS
_SCALARS = 6
_LENGTHS = (_SCALARS + 2 * SMALL_LEVELS, _SCALARS + 3 * SMALL_LEVELS)

SETTLED_TAG = "lakewright.settled"
"""AddFile tag of a file with bytes that were settled once; they are not settled again, which bounds the settling."""


@dataclass(frozen=True, slots=True)
class CellState:
    """What is known of a cell's live files.

    files: number of files; bytes: their total size; shortfall: sum of (T - min(size, T))^2 over all of them (bytes^2);
    small_shortfall: the same over the small ones; dv_files: files with a deletion vector; deleted_rows: rows these
    hide; counts and sizes: number and bytes of the small files on each level; settled: how many of them on each level
    say that they were settled.
    """

    files: int = 0
    bytes: int = 0
    shortfall: int = 0
    small_shortfall: int = 0
    dv_files: int = 0
    deleted_rows: int = 0
    counts: tuple[int, ...] = _NO_LEVELS
    sizes: tuple[int, ...] = _NO_LEVELS
    settled: tuple[int, ...] = _NO_LEVELS

    def __add__(self, other: "CellState") -> "CellState":
        return self._combine(other, add)

    def __sub__(self, other: "CellState") -> "CellState":
        return self._combine(other, sub)

    def _combine(self, other: "CellState", plus: Callable[[int, int], int]) -> "CellState":
        return CellState(
            plus(self.files, other.files),
            plus(self.bytes, other.bytes),
            plus(self.shortfall, other.shortfall),
            plus(self.small_shortfall, other.small_shortfall),
            plus(self.dv_files, other.dv_files),
            plus(self.deleted_rows, other.deleted_rows),
            tuple(map(plus, self.counts, other.counts)),
            tuple(map(plus, self.sizes, other.sizes)),
            tuple(map(plus, self.settled, other.settled)),
        )

    @property
    def small_files(self) -> int:
        """Number of files below the full size."""
        return sum(self.counts)

    @property
    def small_bytes(self) -> int:
        """Total bytes of the files below the full size."""
        return sum(self.sizes)

    def to_settle(self, levels: int) -> int:
        """Number of small files on the first `levels` levels that were never settled."""
        return sum(self.counts[:levels]) - sum(self.settled[:levels])

    def plausible(self) -> "CellState":
        """Return the state with no negative number of settled files.

        Not every writer repeats a file's tags when it removes it. Such a file is taken for a settled one, so that what
        there is to settle is counted too high rather than too low, and never by more than there are settled files.
        """
        if min(self.settled) >= 0:
            return self
        return replace(self, settled=tuple(max(0, count) for count in self.settled))

    @property
    def is_possible(self) -> bool:
        """False when a count is negative: the state has been told of removals that it never saw as files."""
        scalars = (self.files, self.bytes, self.shortfall, self.small_shortfall, self.dv_files, self.deleted_rows)
        return min(*scalars, *self.counts, *self.sizes) >= 0

    def mse(self) -> Fraction:
        """Entropy as published: mean squared shortfall of the file sizes against the target, in bytes^2, exact."""
        return Fraction(self.shortfall, self.files) if self.files else Fraction(0)

    def excess(self, target_bytes: int) -> int:
        """Return the most of the total squared shortfall (bytes^2) that merging small files can remove; never less.

        Below the target in all, one output of all of them is the best, and leaves what is missing to the target. From
        the target on one output may have no shortfall at all, whatever its overshoot: only 0 is sure to be reached.
        """
        left = max(0, target_bytes - self.small_bytes) ** 2
        return max(0, self.small_shortfall - left)

    def encode(self) -> str:
        """Write the state as comma-separated decimal integers, without the settled files where there are none."""
        scalars = (self.files, self.bytes, self.shortfall, self.small_shortfall, self.dv_files, self.deleted_rows)
        settled = self.settled if any(self.settled) else ()
        return ",".join(map(str, (*scalars, *self.counts, *self.sizes, *settled)))

    @staticmethod
    def decode(text: str) -> "CellState":
        """Read what `encode` wrote; raises ValueError for anything else."""
        numbers = [int(part) for part in text.split(",")]
        if len(numbers) not in _LENGTHS:
            raise ValueError(f"a cell state has {_LENGTHS[0]} or {_LENGTHS[1]} integers, found {len(numbers)}")
        files, total, shortfall, small, dv_files, deleted = numbers[:_SCALARS]
        rows = [tuple(numbers[at : at + SMALL_LEVELS]) for at in range(_SCALARS, len(numbers), SMALL_LEVELS)]
        return CellState(files, total, shortfall, small, dv_files, deleted, *rows)


EMPTY_CELL = CellState()


def file_state(
    ladder: Ladder, size_bytes: int, *, has_dv: bool = False, deleted_rows: int = 0, is_settled: bool = False
) -> CellState:
    """Return the state of a cell that holds just one file of this size."""
    missing = ladder.target_bytes - min(size_bytes, ladder.target_bytes)
    shortfall = missing * missing
    level = ladder.level(size_bytes)
    dv_files = int(has_dv)
    if level == FULL:
        return CellState(1, size_bytes, shortfall, 0, dv_files, deleted_rows)
    one = _at(level, 1)
    settled = one if is_settled else _NO_LEVELS
    return CellState(1, size_bytes, shortfall, shortfall, dv_files, deleted_rows, one, _at(level, size_bytes), settled)


def _at(level: int, value: int) -> tuple[int, ...]:
    return (*_NO_LEVELS[:level], value, *_NO_LEVELS[level + 1 :])


def contribution(file: DataFile, ladder: Ladder) -> CellState:
    """Return what one live file adds to the state of its cell; deciders and actors must count alike."""
    return file_state(
        ladder,
        file.size_bytes,
        has_dv=file.dv_id is not None,
        deleted_rows=file.deleted_rows,
        is_settled=SETTLED_TAG in file.tags,
    )


def recount(ladder: Ladder, sizes_bytes: Iterable[int]) -> CellState:
    """Return the state of files of these sizes without deletion vectors."""
    state = EMPTY_CELL
    for size in sizes_bytes:
        state += file_state(ladder, size)
    return state
