"""Index data of the files on one side of a rewrite, as its commit and the history show them."""

from collections.abc import Sequence
from dataclasses import dataclass

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NO_LEVEL = "-"


@dataclass(frozen=True, slots=True)
class IndexSideStats:
    """Rows, distinct cubes and blocks of some files; mean_block_rows: mean over the files of their rows per block.

    file_levels: power of ten of the largest block of each file, in the order of their paths; -1 for one without rows.
    """

    rows: int
    cubes: int
    blocks: int
    mean_block_rows: float
    file_levels: tuple[int, ...]

    def encode(self) -> list[int | float | str]:
        """Write as JSON values, a letter for each file."""
        levels = "".join(_NO_LEVEL if level < 0 else _DIGITS[level] for level in self.file_levels)
        return [self.rows, self.cubes, self.blocks, self.mean_block_rows, levels]

    @staticmethod
    def decode(raw: object) -> "IndexSideStats | None":
        """Read what `encode` wrote, None for anything else."""
        if not isinstance(raw, list) or [type(one) for one in raw] != [int, int, int, float, str]:
            return None
        rows, cubes, blocks, mean, text = raw
        if any(letter != _NO_LEVEL and letter not in _DIGITS for letter in text):
            return None
        return IndexSideStats(rows, cubes, blocks, mean, tuple(_DIGITS.find(letter) for letter in text))


def index_stats(files: Sequence[Sequence[tuple[str, int]]]) -> IndexSideStats:
    """Return the figures of files; of each, cube and rows of its blocks."""
    rows = [sum(count for _, count in blocks) for blocks in files]
    means = [total / len(blocks) if blocks else 0.0 for total, blocks in zip(rows, files, strict=True)]
    return IndexSideStats(
        sum(rows),
        len({cube for blocks in files for cube, _ in blocks}),
        sum(map(len, files)),
        sum(means) / len(files) if files else 0.0,
        tuple(_level(max((count for _, count in blocks), default=0)) for blocks in files),
    )


def _level(largest: int) -> int:
    return len(str(largest)) - 1 if largest > 0 else -1
