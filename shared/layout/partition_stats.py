"""The rolling state of a partition is exact: integers that form a commutative group under adding and removing files.

Whatever the order of commits, the state equals a count of the live files, integer for integer. Nothing here knows a
path; a commit costs the size of the commit and an idle partition costs nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import add, sub
from typing import Any

from shared.layout.key_depth import KeyDepth, KeyRange, combined_levels, depth_of
from shared.policy.levels import FULL, SMALL_LEVELS, SizeLevels
from shared.table import DataFile, DeleteFile
from shared.whole_numbers import whole_number

_NO_LEVELS = (0,) * SMALL_LEVELS
_SCALARS = 6
_ROWS = range(_SCALARS, _SCALARS + 3 * SMALL_LEVELS, SMALL_LEVELS)
_LENGTHS = (_SCALARS + 2 * SMALL_LEVELS, _SCALARS + 3 * SMALL_LEVELS, _SCALARS + 3 * SMALL_LEVELS + 1)

WINDOWS_KEPT = 2
"""Time windows that a state distinguishes: files arrive in the newest and, around its start, in the one before."""

UNKNOWN_WINDOW = -1
"""In a change: the window of removed files whose window is unknown."""

IDLE_COMPACTED_TAG = "lakewright.idle_compacted"
"""AddFile tag of a file with bytes that were idle-compacted once; they are not idle-compacted again."""

CUBE_TAG = "ZCUBE_ID"
"""AddFile tag of a file that belongs to a Z-cube: engines write it where they cluster or Z-order a table."""


SORT_LEVEL_TAG = "lakewright.sort-level"
"""AddFile tag of a sorted file: how often its bytes were sorted again after they had become full files."""

SORT_LEVELS = 6
"""Sort levels below the last: files of level 0 to 5 may be sorted again, which raises them by a level or more."""

_DEPTH = "depth "
"""Prefix of the part of an encoded state that holds a depth."""


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """Statistics of a partition's live files.

    files: number of files; bytes: their total size; shortfall: sum of (T - min(size, T))^2 over all of them (bytes^2);
    small_shortfall: the same over the small ones; dv_files: files with a deletion vector, and delete files;
    deleted_rows: rows these hide; counts and sizes: number and bytes of the small files on each level; idle_compacted:
    how many of them on each level carry the tag of idle compaction; windows: the start in ms and the state of the
    newest time windows, where there are any, the oldest first. A removal seldom names its window, so these are lower
    bounds. cube_files: files of Z-cubes; a removal without tags leaves them too high rather than too low. depths:
    clustering depth of the full files of each sort level, where the table has a sort order; they hold for the whole
    partition, not of its windows.
    """

    files: int = 0
    bytes: int = 0
    shortfall: int = 0
    small_shortfall: int = 0
    dv_files: int = 0
    deleted_rows: int = 0
    counts: tuple[int, ...] = _NO_LEVELS
    sizes: tuple[int, ...] = _NO_LEVELS
    idle_compacted: tuple[int, ...] = _NO_LEVELS
    windows: tuple[tuple[int, "PartitionStats"], ...] = ()
    cube_files: int = 0
    depths: tuple[tuple[int, KeyDepth], ...] = ()

    def __add__(self, other: "PartitionStats") -> "PartitionStats":
        return self._combine(other, add)

    def __sub__(self, other: "PartitionStats") -> "PartitionStats":
        return self._combine(other, sub)

    def _combine(self, other: "PartitionStats", plus: Callable[[Any, Any], Any]) -> "PartitionStats":
        return PartitionStats(
            plus(self.files, other.files),
            plus(self.bytes, other.bytes),
            plus(self.shortfall, other.shortfall),
            plus(self.small_shortfall, other.small_shortfall),
            plus(self.dv_files, other.dv_files),
            plus(self.deleted_rows, other.deleted_rows),
            tuple(map(plus, self.counts, other.counts)),
            tuple(map(plus, self.sizes, other.sizes)),
            tuple(map(plus, self.idle_compacted, other.idle_compacted)),
            self._windows(other, plus) if self.windows or other.windows else (),
            plus(self.cube_files, other.cube_files),
            combined_levels(self.depths, other.depths, adds=plus is add),
        )

    def _windows(
        self, other: "PartitionStats", plus: Callable[[Any, Any], Any]
    ) -> tuple[tuple[int, "PartitionStats"], ...]:
        mine, theirs = dict(self.windows), dict(other.windows)
        starts = sorted(mine.keys() | theirs.keys())
        return tuple((at, plus(mine.get(at, EMPTY_STATS), theirs.get(at, EMPTY_STATS))) for at in starts)

    def in_window(self, start_ms: int | None) -> "PartitionStats":
        """Return this state as one whose files all lie in a window; None: in none."""
        if start_ms is None:
            return self
        return replace(self, windows=((start_ms, replace(self, depths=()) if self.depths else self),))

    @property
    def total(self) -> "PartitionStats":
        """The state without its windows and depths: what is to be added up over many partitions."""
        return replace(self, windows=(), depths=()) if self.windows or self.depths else self

    @property
    def small_files(self) -> int:
        """Number of files below the full size."""
        return sum(self.counts)

    @property
    def small_bytes(self) -> int:
        """Total bytes of the files below the full size."""
        return sum(self.sizes)

    def idle_compaction_inputs(self, levels: int) -> int:
        """Number of small files on the first `levels` levels that were never idle-compacted."""
        return sum(self.counts[:levels]) - sum(self.idle_compacted[:levels])

    def clamped(self) -> "PartitionStats":
        """Return the state with consistent numbers of idle-compacted and Z-cube files, and the newest windows.

        Not every writer repeats a file's tags when it removes it. Such a file is counted as an idle-compacted one, so
        that the inputs of idle compaction are overestimated rather than underestimated, and never by more than the
        number of idle-compacted files. A file whose window is unknown is subtracted from each, so that none promises
        work that does not exist.
        """
        if min(self.idle_compacted) >= 0 and not self.windows and 0 <= self.cube_files <= self.files:
            return self
        placed = dict(self.windows)
        gone = placed.pop(UNKNOWN_WINDOW, EMPTY_STATS)
        newest = sorted(placed.items())[-WINDOWS_KEPT:]
        windows = tuple((at, _non_negative(one + gone)) for at, one in newest)
        settled = tuple(max(0, count) for count in self.idle_compacted)
        return replace(
            self, idle_compacted=settled, windows=windows, cube_files=_bounded_count(self.cube_files, self.files)
        )

    def without(self, part: "PartitionStats") -> "PartitionStats":
        """Return the state without a part of its files; what is not in the state yet takes nothing from it."""
        left = (self - part).clamped()
        return left if left.is_consistent else _non_negative(left)

    @property
    def is_consistent(self) -> bool:
        """False when a count is negative: a removal of a file was applied whose addition was not."""
        scalars = (self.files, self.bytes, self.shortfall, self.small_shortfall, self.dv_files, self.deleted_rows)
        return min(*scalars, *self.counts, *self.sizes) >= 0 and all(depth.is_consistent for _, depth in self.depths)

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

    def spare_files(self, target_bytes: int) -> int:
        """Return how many small files the best layout of the same bytes would do without."""
        return self.small_files - min(self.small_files, max(1, self.small_bytes // target_bytes))

    def encode(self) -> str:
        """Write the state as comma-separated decimal integers, then the windows; what there is none of is left out."""
        scalars = (self.files, self.bytes, self.shortfall, self.small_shortfall, self.dv_files, self.deleted_rows)
        settled = self.idle_compacted if any(self.idle_compacted) or self.cube_files else ()
        cubes = (self.cube_files,) if self.cube_files else ()
        total = ",".join(map(str, (*scalars, *self.counts, *self.sizes, *settled, *cubes)))
        depths = (f"{_DEPTH}{level}:{depth.encode()}" for level, depth in self.depths)
        return ";".join((total, *(f"{at}:{one.encode()}" for at, one in self.windows), *depths))

    @staticmethod
    def decode(text: str) -> "PartitionStats":
        """Read what `encode` wrote; raises ValueError for anything else."""
        total, *parts = text.split(";")
        windows = [part for part in parts if not part.startswith(_DEPTH)]
        numbers = [int(part) for part in total.split(",")]
        if len(numbers) not in _LENGTHS:
            raise ValueError(f"a partition state has 18, 24 or 25 integers, found {len(numbers)}")
        files, size, shortfall, small, dv_files, deleted = numbers[:_SCALARS]
        counts, sizes, settled = (tuple(numbers[at : at + SMALL_LEVELS]) or _NO_LEVELS for at in _ROWS)
        newest = tuple(
            (int(at), PartitionStats.decode(one)) for at, _, one in (window.partition(":") for window in windows)
        )
        cubes = sum(numbers[_ROWS.stop :])
        depths = tuple(
            (int(level), KeyDepth.decode(depth))
            for level, _, depth in (part.removeprefix(_DEPTH).partition(":") for part in parts[len(windows) :])
        )
        return PartitionStats(
            files, size, shortfall, small, dv_files, deleted, counts, sizes, settled, newest, cubes, depths
        )


EMPTY_STATS = PartitionStats()


def _bounded_count(count: int, files: int) -> int:
    return max(0, min(count, files))


def _non_negative(state: PartitionStats) -> PartitionStats:
    """Return the state with nothing negative; levels without files have no bytes."""
    counts = tuple(max(0, count) for count in state.counts)
    return PartitionStats(
        max(0, state.files),
        max(0, state.bytes),
        max(0, state.shortfall),
        max(0, state.small_shortfall),
        max(0, state.dv_files),
        max(0, state.deleted_rows),
        counts,
        tuple(max(0, size) if count else 0 for count, size in zip(counts, state.sizes, strict=True)),
        tuple(max(0, count) for count in state.idle_compacted),
        cube_files=_bounded_count(state.cube_files, state.files),
    )


def file_stats(
    size_levels: SizeLevels,
    size_bytes: int,
    *,
    has_dv: bool = False,
    deleted_rows: int = 0,
    is_idle_compacted: bool = False,
    is_cube: bool = False,
) -> PartitionStats:
    """Return the state of a partition that holds just one file of this size."""
    missing = size_levels.target_bytes - min(size_bytes, size_levels.target_bytes)
    shortfall = missing * missing
    level = size_levels.level(size_bytes)
    cubes = int(is_cube)
    if level == FULL:
        return PartitionStats(1, size_bytes, shortfall, 0, int(has_dv), deleted_rows, cube_files=cubes)
    one = _at(level, 1)
    return PartitionStats(
        1,
        size_bytes,
        shortfall,
        shortfall,
        int(has_dv),
        deleted_rows,
        one,
        _at(level, size_bytes),
        one if is_idle_compacted else _NO_LEVELS,
        cube_files=cubes,
    )


def _at(level: int, value: int) -> tuple[int, ...]:
    return (*_NO_LEVELS[:level], value, *_NO_LEVELS[level + 1 :])


def stats_of_file(file: DataFile, size_levels: SizeLevels) -> PartitionStats:
    """Return what one live file adds to the state of its partition; deciders and actors must count alike."""
    stats = file_stats(
        size_levels,
        file.size_bytes,
        has_dv=file.dv_id is not None,
        deleted_rows=file.deleted_rows,
        is_idle_compacted=IDLE_COMPACTED_TAG in file.tags,
        is_cube=CUBE_TAG in file.tags,
    )
    depths = file_depths(size_levels, file.size_bytes, file.key_range, file.tags)
    return replace(stats, depths=depths) if depths else stats


def sort_level(tags: Mapping[str, str]) -> int:
    """Return the sort level that tags name, at most `SORT_LEVELS`; 0 where they name none."""
    return min(whole_number(tags.get(SORT_LEVEL_TAG, "")) or 0, SORT_LEVELS)


def file_depths(
    size_levels: SizeLevels, size_bytes: int, key_range: KeyRange | None, tags: Mapping[str, str]
) -> tuple[tuple[int, KeyDepth], ...]:
    """Return what a file adds to the depths: nothing below the full size, where compaction has not ended."""
    if key_range is None or key_range[0] == key_range[1] or size_levels.level(size_bytes) < FULL:
        return ()
    return ((sort_level(tags), depth_of([key_range])),)


def stats_of_delete(delete: DeleteFile) -> PartitionStats:
    """Return what one delete file adds to the state of its partition."""
    return PartitionStats(dv_files=1, deleted_rows=delete.deleted_rows)


def stats_of_files(files: Iterable[DataFile], size_levels: SizeLevels) -> PartitionStats:
    """Count a partition from its live files."""
    state = EMPTY_STATS
    for file in files:
        state += stats_of_file(file, size_levels)
    return state


def stats_of_sizes(size_levels: SizeLevels, sizes_bytes: Iterable[int]) -> PartitionStats:
    """Return the state of files of these sizes without deletion vectors."""
    state = EMPTY_STATS
    for size in sizes_bytes:
        state += file_stats(size_levels, size)
    return state
