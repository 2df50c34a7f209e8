"""Order of the files of a partition in time, where the table keeps it: only true neighbors are merged, and in order.

All files of the partition stand in one row, full ones included; what may be merged are runs of neighbors in it, and no
file from between is left out. The output takes the place of its inputs, because its tags name the first and the last of
their times, and its rows are the first input's, then the next one's.

Which files are neighbors is not in the rolling state, so a decision overestimates: a job may find that nothing can be
merged. It never underestimates, as a run that may be merged is part of what the levels alone permit.

Breaking a row of files into outputs, as Knuth and Plass break a paragraph into lines: the best of all ways.

The files of a row keep their order, so an output is a run of neighbors. A way to break a row is worth the sum of the
squared distances of its files from the target, files that stay alone included; among equal ones the fewest bytes are
rewritten. Dynamic programming over the last break finds the best (Knuth and Plass, "Breaking Paragraphs into Lines",
1981); first fit and other rules that look at one line leave a remainder that fits nowhere.

Merging two outputs is a way to break the row, too, and obeys the promotion rule if each of them did. So a row that was
broken is not broken again: where merging its outputs were better, the first plan would have done it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.layout.file_selection import GENERATED_TAG, generated_ms, window_start_ms
from shared.policy.levels import SizeLevels
from shared.policy.policy import Policy
from shared.table import DataFile
from shared.whole_numbers import whole_number

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


GENERATED_UNTIL_TAG = "lakewright.generated-until-ms"
"""AddFile tag of a file that was merged in order: the last time of its inputs, as `GENERATED_TAG` names the first."""


def time_span_ms(file: DataFile) -> tuple[int, int]:
    """Return the first and the last event time in ms of a file's rows."""
    first_ms, last_ms = generated_ms(file), whole_number(file.tags.get(GENERATED_UNTIL_TAG, ""))
    return first_ms, first_ms if last_ms is None else max(first_ms, last_ms)


def in_order(files: Sequence[DataFile]) -> list[DataFile]:
    """Return the files as a row.

    Spans of rows that were merged in order touch at most in their ends, so comparing first ends first keeps a file
    between the two outputs that its time separates.
    """
    return sorted(files, key=lambda file: (*time_span_ms(file), file.path))


def time_tags(inputs: Sequence[DataFile]) -> dict[str, str]:
    """Return the tags that give an output the place of its inputs."""
    spans = [time_span_ms(file) for file in inputs]
    first_ms, last_ms = min(first for first, _ in spans), max(last for _, last in spans)
    return {GENERATED_TAG: str(first_ms), GENERATED_UNTIL_TAG: str(last_ms)}


def promoted_runs(files: Sequence[DataFile], policy: Policy) -> list[list[DataFile]]:
    """Return the runs of neighbors to merge, each promoted; `files` are all of the partition."""
    levels, min_inputs = policy.size_levels, policy.min_input_files

    def permits(level: int, total_bytes: int, inputs: int) -> bool:
        return levels.permits_rewrite(level, total_bytes, inputs, min_inputs)

    top = policy.automatic_levels
    runs = _neighbors(in_order(files), policy.time_window_s, lambda file: levels.level(file.size_bytes) < top)
    return _runs_to_merge(runs, levels, permits)


def runs_to_pack(
    files: Sequence[DataFile], levels: SizeLevels, window_s: int | None, may_merge: Callable[[DataFile], bool]
) -> list[list[DataFile]]:
    """Return the runs of neighbors to merge, promoted or not, of the files that may be merged."""
    runs = _neighbors(in_order(files), window_s, may_merge)
    return _runs_to_merge(runs, levels, lambda _level, _bytes, _inputs: True)


def _runs_to_merge(runs: Iterable[list[DataFile]], levels: SizeLevels, permits: Permits) -> list[list[DataFile]]:
    return [
        run[found.start : found.stop]
        for run in runs
        for found in break_row([file.size_bytes for file in run], levels, permits)
    ]


def _neighbors(
    row: Sequence[DataFile], window_s: int | None, may_merge: Callable[[DataFile], bool]
) -> Iterator[list[DataFile]]:
    """Yield the longest runs without a file that must not be merged, each inside one time window."""
    run: list[DataFile] = []
    for file in row:
        is_input = may_merge(file)
        if run and not (is_input and window_start_ms(file, window_s) == window_start_ms(run[0], window_s)):
            yield run
            run = []
        if is_input:
            run.append(file)
    if run:
        yield run
