"""Levels: how large a file is on the way to its target, and the promotion rule that bounds write amplification.

A file below `full_bytes` lies on one of six levels; the lower bound of level l is T / k^(6-l), of level 0 it is
nothing. Where the typical size s of a table's new files is known, the fan-in from s on is one near to k that leads to T
in whole, equal steps: k' = (T / s)^(1 / L) with L = log_k(T / s), rounded, and down up to 0.6: with many steps of few
files, each rewrite moves bytes by little.

A file group may be rewritten only if its output lies on a higher level than every input. Each byte then rises at least
one level with each rewrite, so no byte is rewritten more often than there are levels.

All bounds are integers, rounded up once, so that every comparison is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

SMALL_LEVELS = 6
"""Levels of small files, 0 to 5. At T = 128 MiB and k = 8 they begin at 0, 4 KiB, 32 KiB, 256 KiB, 2 MiB, 16 MiB."""

FULL = SMALL_LEVELS
"""The level of full files, which are never merged again."""


@dataclass(frozen=True, slots=True)
class SizeLevels:
    """The level bounds of one policy; `floors[l]` is the smallest size in bytes on level l, `floors[FULL]` is full.

    shrink, full_shrink: size of an output as a share of its inputs, as learned for the table's groups that total less
    than a full file and for the others. They differ: row groups are copied until a file is full, and then merged.
    The promotion rule is applied to the output that they predict, so inputs must total more where outputs come out
    smaller. `cover_bytes`: inputs in bytes from which an output of the target's size is predicted. typical_file_bytes:
    size that the levels are fitted to; 0: they are not.
    """

    target_bytes: int
    fan_in: int
    floors: tuple[int, ...]
    shrink: Fraction = Fraction(1)
    full_shrink: Fraction = Fraction(1)
    typical_file_bytes: int = 0
    cover_bytes: int = field(init=False)
    _required: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Computed once: every decision compares with them, and fractions are slow.
        cover = _ceil(self.target_bytes / self.full_shrink)
        rising = (self._total_for(floor) for floor in self.floors[1:SMALL_LEVELS])
        object.__setattr__(self, "cover_bytes", cover)
        object.__setattr__(self, "_required", (*rising, cover, cover))

    @property
    def full_bytes(self) -> int:
        """Smallest size in bytes that is left alone."""
        return self.floors[FULL]

    def level(self, size_bytes: int) -> int:
        """Return the level of a file of this size, FULL included."""
        for level in range(FULL, 0, -1):
            if size_bytes >= self.floors[level]:
                return level
        return 0

    def required_bytes(self, level: int) -> int:
        """Return the total of inputs that a group needs when its largest input lies on `level`.

        That is the lower bound of the next level, but the whole target for the top one: what comes out is really full.
        """
        return self._required[level]

    def predicted_bytes(self, total_bytes: int) -> int:
        """Return the predicted size in bytes, rounded up, of one output whose inputs have this total."""
        shrink = self.full_shrink if total_bytes >= self.full_bytes else self.shrink
        return total_bytes if shrink == 1 else _ceil(total_bytes * shrink)

    def _total_for(self, floor: int) -> int:
        """Return the total in bytes from which on every output is predicted to reach a level's lower bound."""
        total = _ceil(floor / self.shrink)
        if total <= self.full_bytes and _ceil(self.full_bytes * self.full_shrink) >= floor:
            return total
        return max(self.full_bytes, _ceil(floor / self.full_shrink))

    def levels_below_target(self, *, largest_bytes: int, output_bytes: int) -> int:
        """Return by how many levels an output misses the one above its largest input; 0 where it was promoted."""
        return max(0, self.level(largest_bytes) + 1 - self.level(output_bytes))

    def permits_rewrite(self, level: int, total_bytes: int, inputs: int, min_inputs: int) -> bool:
        """Return whether the promotion rule permits a group whose largest input lies on `level`, and it is worth a job.

        The one place that decides it. Arguments are positional, because every order of files asks it many times.
        """
        return total_bytes >= self._required[level] and (inputs >= min_inputs or total_bytes >= self.cover_bytes)

    def highest_promotable(
        self, counts: Sequence[int], sizes: Sequence[int], min_inputs: int, *, levels: int = SMALL_LEVELS
    ) -> int | None:
        """Return the highest level whose files, with all smaller ones, form a group that may be rewritten.

        `counts` and `sizes` (bytes) are per level, smallest first. Levels and prefix sums both grow along the files in
        ascending size, so a prefix that ends inside a level qualifies only if the one at the end of the level does:
        six comparisons decide exactly what a list of all files would. Only the first `levels` levels are read.
        """
        best: int | None = None
        inputs = total = 0
        for level in range(levels):
            inputs += counts[level]
            total += sizes[level]
            if counts[level] and self.permits_rewrite(level, total, inputs, min_inputs):
                best = level
        return best


@lru_cache(maxsize=1_024)
def build_size_levels(
    target_bytes: int,
    fan_in: int,
    full_file_threshold: Fraction,
    shrink: Fraction = Fraction(1),
    full_shrink: Fraction = Fraction(1),
    typical_file_bytes: int = 0,
) -> SizeLevels:
    """Build the size levels for a target in bytes, a fan-in and the share of the target from which a file is full.

    typical_file_bytes: size that the table's files typically arrive with, to which the levels are fitted; 0: not known.
    """
    full_bytes = _ceil(target_bytes * full_file_threshold)
    steps = fitted_steps(target_bytes, fan_in, typical_file_bytes)
    fitted = _fitted_floors(target_bytes, fan_in, typical_file_bytes, steps) if steps else ()
    if fitted and fitted[-1] < full_bytes:
        return SizeLevels(target_bytes, fan_in, (0, *fitted, full_bytes), shrink, full_shrink, typical_file_bytes)
    small = (_ceil(Fraction(target_bytes, fan_in ** (SMALL_LEVELS - level))) for level in range(1, SMALL_LEVELS))
    return SizeLevels(target_bytes, fan_in, (0, *small, full_bytes), shrink, full_shrink)


def fitted_steps(target_bytes: int, fan_in: int, typical_file_bytes: int) -> int:
    """Return in how many equal steps files climb from their typical size to the target; 0: levels are not fitted.

    It is log_k(T / s), rounded down up to 0.6: one step at least, and no more than there are levels.
    """
    if not 0 < typical_file_bytes < target_bytes:
        return 0
    steps = 1
    # log_k(T / s) >= n + 3/5 exactly where (T / s)^5 >= k^(5 n + 3).
    while steps < SMALL_LEVELS and target_bytes**5 >= fan_in ** (5 * steps + 3) * typical_file_bytes**5:
        steps += 1
    return steps


def _fitted_floors(target_bytes: int, fan_in: int, typical_bytes: int, steps: int) -> tuple[int, ...]:
    """Return the lower bounds in bytes of level 1 to 5: equal steps above the typical size, factors of k below it."""
    above = (_root(target_bytes**n * typical_bytes ** (steps - n), steps) for n in range(steps))
    below = (_ceil(Fraction(typical_bytes, fan_in**n)) for n in range(SMALL_LEVELS - steps, 0, -1))
    return (*below, *above)[1:]


def _root(value: int, degree: int) -> int:
    """Return the smallest integer whose power of this degree is at least `value`."""
    low, high = 0, 1 << -(-value.bit_length() // degree)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**degree >= value else (middle + 1, high)
    return low


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
