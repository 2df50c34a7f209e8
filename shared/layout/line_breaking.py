"""Breaking a row of files into outputs, as Knuth and Plass break a paragraph into lines: the best of all ways.

The files of a row keep their order, so an output is a run of neighbors. A way to break a row is worth the sum of the
squared distances of its files from the target, files that stay alone included; among equal ones the fewest bytes are
rewritten. Dynamic programming over the last break finds the best (Knuth and Plass, "Breaking Paragraphs into Lines",
1981); first fit and other rules that look at one line leave a remainder that fits nowhere.

Merging two outputs is a way to break the row, too, and obeys the promotion rule if each of them did. So a row that was
broken is not broken again: where merging its outputs were better, the first plan would have done it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shared.policy.levels import SizeLevels

EXACT_FILES = 256
"""Files up to which every break is considered. A longer row is first cut into pieces of a sixty-fourth of the target at
most, so that an output has few hundred pieces, and the time grows with the row and not with its square."""

_PIECES_PER_TARGET = 64
_MAX_TARGETS = 2
"""An output of more than twice the target is never nearer to it than one of its parts is."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Neighbors between which no break is considered: number, bytes, highest level, and what leaving them costs."""

    files: int
    bytes: int
    level: int
    demerits: int


Permits = Callable[[int, int, int], bool]
"""Rule for an output: of inputs of this highest level, this many bytes, and this number."""


def break_row(sizes: Sequence[int], size_levels: SizeLevels, permits: Permits) -> list[range]:
    """Return the runs of neighbors to merge, as ranges of indices; files outside of them stay as they are.

    `sizes` in bytes in the row's order, each below the full size. Every run has two files or more, at most twice the
    target in all, and is permitted.
    """
    pieces = _pieces(sizes, size_levels)
    # Per place in the row: the least demerits and bytes rewritten from there on, and the end of the piece or run there.
    best: list[tuple[int, int]] = [(0, 0)] * (len(pieces) + 1)
    ends = list(range(1, len(pieces) + 1))
    for start in range(len(pieces) - 1, -1, -1):
        after, rewritten = best[start + 1]
        best[start] = (after + pieces[start].demerits, rewritten)
        for end, total, demerits in _runs(pieces, start, size_levels, permits):
            after, rewritten = best[end]
            found = (after + demerits, rewritten + total)
            if found < best[start]:
                best[start], ends[start] = found, -end
    return list(_merged(pieces, ends))


def _runs(
    pieces: Sequence[_Piece], start: int, size_levels: SizeLevels, permits: Permits
) -> Iterator[tuple[int, int, int]]:
    """Yield the end, the bytes and the demerits of every permitted output that begins at a piece."""
    limit, target = _MAX_TARGETS * size_levels.cover_bytes, size_levels.target_bytes
    files = total = level = 0
    for end in range(start, len(pieces)):
        piece = pieces[end]
        files, total, level = files + piece.files, total + piece.bytes, max(level, piece.level)
        if total > limit:
            return
        if files > 1 and permits(level, total, files):
            yield end + 1, total, (target - size_levels.predicted_bytes(total)) ** 2


def _merged(pieces: Sequence[_Piece], ends: Sequence[int]) -> Iterator[range]:
    """Yield the runs of the best way; `ends` are negative where a run begins."""
    at = first = 0
    while at < len(pieces):
        end = abs(ends[at])
        files = sum(piece.files for piece in pieces[at:end])
        if ends[at] < 0:
            yield range(first, first + files)
        at, first = end, first + files


def _pieces(sizes: Sequence[int], size_levels: SizeLevels) -> list[_Piece]:
    target = size_levels.target_bytes
    single = [_Piece(1, size, size_levels.level(size), (target - size) ** 2) for size in sizes]
    if len(single) <= EXACT_FILES:
        return single
    joined = single[:1]
    for piece in single[1:]:
        last = joined[-1]
        if (last.bytes + piece.bytes) * _PIECES_PER_TARGET > target:
            joined.append(piece)
            continue
        joined[-1] = _Piece(
            last.files + 1,
            last.bytes + piece.bytes,
            max(last.level, piece.level),
            last.demerits + piece.demerits,
        )
    return joined
