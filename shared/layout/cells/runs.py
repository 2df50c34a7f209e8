"""Runs: the most urgent operations on a table in cells, as many as cost what a run may cost.

So runs cost about the same each, whatever the table's size: two targets, or eight times what a commit brings, if that
is more. A run starts once half of it is due, or many files are new.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import merge

from shared.layout.cells.operations import (
    WAITING_FILES,
    BoxedFile,
    CellOperation,
    CellSizes,
    by_urgency,
    find_operations,
)
from shared.layout.cells.tree import Node

MANY_FILES = 64
"""New files from which on a run starts, however small they are: a range may have to open all of them."""


@dataclass(frozen=True, slots=True)
class CellRun:
    """Operations of one run, and the bytes of all that is due, which are 0 exactly where there are none."""

    operations: tuple[CellOperation, ...]
    due_bytes: int


def sizes_of_run(target_bytes: int, commit_bytes: int, max_bytes: int) -> CellSizes:
    """Return the sizes for a table whose commits bring so many bytes each; no run rewrites more than `max_bytes`."""
    return CellSizes(target_bytes, min(max(2 * target_bytes, 8 * commit_bytes), max_bytes))


def is_run_due(new_files: int, new_bytes: int, left_bytes: int, sizes: CellSizes) -> bool:
    """Return whether a run starts: by the files that others wrote, and by what the last run reported as left."""
    is_counted = new_files > WAITING_FILES or new_bytes >= 2 * sizes.piece_bytes
    return new_files >= MANY_FILES or left_bytes + (new_bytes if is_counted else 0) >= sizes.run_bytes / 2


def plan_run(trees: Iterable[tuple[Node, Sequence[BoxedFile]]], sizes: CellSizes) -> CellRun:
    """Plan a run on the live files of a table: for each partition the tree of its cells, and its files."""
    due = list(merge(*(find_operations(tree, files, sizes) for tree, files in trees), key=by_urgency))
    taken: list[CellOperation] = []
    spent = 0
    for operation in due:
        if spent + operation.size_bytes <= sizes.run_bytes:
            taken.append(operation)
            spent += operation.size_bytes
    return CellRun(tuple(taken), sum(operation.size_bytes for operation in due))
