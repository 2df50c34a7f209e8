"""Operations on a table in cells: down, split, merge and purge, each on files of one node of the tree.

Files *wait* at inner nodes, because their boxes straddle the cut there, and are *settled* in cells. T is the target
size, a piece T/16.

- down: where two pieces wait, their rows move along the cuts.
- split: a cell with more than 4/3 T of live rows becomes smaller cells.
- merge: where less than two pieces wait in more than eight files, and in a cell with more than three files, or three
  that are all below T/2, the smallest two and each next one that is at most twice what is taken so far become one.
- purge: a cell with a fifth of its bytes deleted is written again.

No operation makes itself due again: a down leaves less than two pieces at its node, a split adds a cut or bounds that
were not known, a merge leaves fewer files, a purge fewer deleted rows. A split of rows most of which turn out to be
deleted is a purge. A file larger than a run is left alone, whatever it holds.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, islice, takewhile

from shared.layout.cells.boxes import Box, has_one_key, hull
from shared.layout.cells.tree import Node
from shared.table import DataFile

FILES_PER_CELL = 3
"""Files that a cell may have."""

WAITING_FILES = 8
"""Files that may wait at an inner node, and are as urgent as two pieces there."""


@dataclass(frozen=True, slots=True)
class CellSizes:
    """Sizes of a table in cells, in bytes: T, and what one run may rewrite."""

    target_bytes: int
    run_bytes: int

    @property
    def piece_bytes(self) -> int:
        """The least part of an operation's rows that is worth a file of its own."""
        return max(1, self.target_bytes // 16)

    @property
    def cell_bytes(self) -> int:
        """Live bytes above which a cell is split."""
        return self.target_bytes * 4 // 3


@dataclass(frozen=True, slots=True)
class BoxedFile:
    """A live file with its box; `cell` is the cell for which it was written, None if it was written for none."""

    file: DataFile
    box: Box
    cell: Box | None = None

    @property
    def size_bytes(self) -> int:
        """Its size, with deleted rows."""
        return self.file.size_bytes

    @property
    def deleted_bytes(self) -> int:
        """The part of its size that is its deleted rows."""
        rows = self.file.rows
        return self.size_bytes * min(self.file.deleted_rows, rows) // rows if rows else 0

    @property
    def live_bytes(self) -> int:
        """The rest of its size."""
        return self.size_bytes - self.deleted_bytes


class CellWork(StrEnum):
    """Kinds of operations on files of one node."""

    DOWN = "down"
    SPLIT = "split"
    MERGE = "merge"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class CellOperation:
    """One operation: the files that it rewrites, and those whose rows decide where the rows go.

    These are the same, but for the split of a cell that is larger than a run: its cuts are the medians of all its rows.
    """

    work: CellWork
    node: Node
    files: tuple[BoxedFile, ...]
    known: tuple[BoxedFile, ...]
    urgency: float

    @property
    def size_bytes(self) -> int:
        """The bytes that it rewrites."""
        return _total(self.files)


def find_operations(tree: Node, files: Iterable[BoxedFile], sizes: CellSizes) -> list[CellOperation]:
    """Return what is due, the most urgent first."""
    at: defaultdict[Node, list[BoxedFile]] = defaultdict(list)
    for file in files:
        if file.size_bytes <= sizes.run_bytes:
            at[tree.place(file.box)].append(file)
    found = (
        _at_inner_node(node, there, sizes) if node.parts else _in_cell(node, there, sizes) for node, there in at.items()
    )
    due = (operation for operation in found if operation is not None)
    return sorted(due, key=by_urgency)


def by_urgency(operation: CellOperation) -> tuple[float, str]:
    """Return by what the most urgent of operations is first, and all of them are in one order."""
    return -operation.urgency, operation.files[0].file.path


def _at_inner_node(node: Node, files: Sequence[BoxedFile], sizes: CellSizes) -> CellOperation | None:
    least = 2 * sizes.piece_bytes
    urgency = _total(files) / least + len(files) / WAITING_FILES
    # The largest first: so there are two pieces at least, whatever fits into a run.
    taken = _fitting(sorted(files, key=_by_size, reverse=True), sizes.run_bytes)
    if _total(taken) >= least:
        return CellOperation(CellWork.DOWN, node, taken, taken, urgency)
    taken = _to_merge(files, sizes) if len(files) > WAITING_FILES else ()
    return CellOperation(CellWork.MERGE, node, taken, taken, urgency) if taken else None


def _in_cell(node: Node, files: Sequence[BoxedFile], sizes: CellSizes) -> CellOperation | None:
    live = tuple(file for file in files if file.live_bytes)
    live_bytes = _live(live)
    if live_bytes > sizes.cell_bytes and not has_one_key(hull(file.box for file in live)):
        urgency = live_bytes / sizes.target_bytes
        return CellOperation(CellWork.SPLIT, node, _to_split(live, sizes), live, urgency)
    # The files of a cell that cannot be split, as all of its rows are equal, are final once they have half of T.
    small = [file for file in files if file.live_bytes * 2 < sizes.target_bytes]
    merged = files if live_bytes <= sizes.cell_bytes else small
    is_many = len(merged) > FILES_PER_CELL or len(small) == len(merged) == FILES_PER_CELL
    if is_many and (taken := _to_merge(merged, sizes)):
        return CellOperation(CellWork.MERGE, node, taken, taken, len(merged) / 2)
    if sum(file.deleted_bytes for file in files) * 5 > _total(files):
        taken = _to_purge(files, sizes)
        return CellOperation(CellWork.PURGE, node, taken, taken, 1)
    return None


def _to_split(files: Iterable[BoxedFile], sizes: CellSizes) -> tuple[BoxedFile, ...]:
    """Return files of a cell, as many as fit into a run: evenly from all that it holds, in the order of their boxes.

    Files with several keys are first. Where deleted rows have widened their boxes, and there is no cut, at least the
    boxes of the outputs are tight.
    """
    row = sorted(files, key=lambda file: (file.box, file.file.path))
    wide, narrow = ([file for file in row if has_one_key(file.box) == is_narrow] for is_narrow in (False, True))
    return _fitting([*_evenly(wide, sizes.run_bytes), *_evenly(narrow, sizes.run_bytes)], sizes.run_bytes)


def _evenly(files: Sequence[BoxedFile], most_bytes: int) -> Iterable[BoxedFile]:
    """Yield all files, the first of them, up to so many bytes, from the whole row."""
    steps = _total(files) // most_bytes + 1
    return (file for step in range(steps) for file in files[step::steps])


def _to_merge(files: Iterable[BoxedFile], sizes: CellSizes) -> tuple[BoxedFile, ...]:
    """Return the smallest two, and each next one that is at most twice what is taken so far; none if two do not fit."""
    row = sorted(files, key=_by_size)
    so_far = accumulate(file.size_bytes for file in row)
    close = (file.size_bytes <= 2 * before for file, before in zip(row[2:], islice(so_far, 1, None), strict=False))
    taken = _as_one(row[: 2 + sum(1 for _ in takewhile(bool, close))], sizes)
    return taken if len(taken) > 1 else ()


def _to_purge(files: Iterable[BoxedFile], sizes: CellSizes) -> tuple[BoxedFile, ...]:
    """Return the files with the most deleted rows, as many as become one file."""
    return _as_one(sorted(files, key=lambda file: (file.live_bytes / max(1, file.size_bytes), file.file.path)), sizes)


def _as_one(files: Iterable[BoxedFile], sizes: CellSizes) -> tuple[BoxedFile, ...]:
    """Return the first files, as many as make one output in one run."""
    taken: list[BoxedFile] = []
    size_bytes = live_bytes = 0
    for file in files:
        size_bytes += file.size_bytes
        live_bytes += file.live_bytes
        if taken and (live_bytes > sizes.cell_bytes or size_bytes > sizes.run_bytes):
            break
        taken.append(file)
    return tuple(taken)


def _fitting(files: Iterable[BoxedFile], most_bytes: int) -> tuple[BoxedFile, ...]:
    """Return the files that fit, in their order; one that does not fit is left out."""
    taken: list[BoxedFile] = []
    for file in files:
        if file.size_bytes <= most_bytes:
            taken.append(file)
            most_bytes -= file.size_bytes
    return tuple(taken)


def _by_size(file: BoxedFile) -> tuple[int, str]:
    return file.size_bytes, file.file.path


def _total(files: Iterable[BoxedFile]) -> int:
    return sum(file.size_bytes for file in files)


def _live(files: Iterable[BoxedFile]) -> int:
    return sum(file.live_bytes for file in files)
