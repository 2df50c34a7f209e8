"""Folding: one commit becomes a change of each cell it touches, at the cost of the commit and never of the table.

A commit that the rolling state cannot take exactly is not guessed at: the fold says why, and the table is recounted
from its log instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.cells import EMPTY_CELL, SETTLED_TAG, CellState, contribution, file_state
from shared.levels import Ladder
from shared.table import CellKey, Commit, DataFile, RemovedFile, TableMetadata

REPLACING = frozenset(
    {
        "RESTORE",
        "CLONE",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
    }
)
"""Operations after which the table is another one: the state is recounted rather than carried over."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What one commit does to the cells; `rescan` says why it cannot be folded (None: it could).

    `with_deletes` keeps, per cell, the added files that have deletion vectors: what a purge is decided from.
    """

    version: int
    changes: dict[CellKey, CellState] = field(default_factory=dict)
    rescan: str | None = None
    with_deletes: dict[CellKey, list[DataFile]] = field(default_factory=dict)


def fold(commit: Commit, metadata: TableMetadata, rungs: Ladder) -> Fold:
    """Fold a commit into changes per cell, as states to be added to those of the cells.

    `metadata` is what was in force before the commit.
    """
    reason = _rescan_reason(commit, metadata)
    if reason:
        return Fold(commit.version, rescan=reason)
    changes: dict[CellKey, CellState] = {}
    with_deletes: dict[CellKey, list[DataFile]] = {}
    for file in commit.added:
        if file.dv_id is not None:
            with_deletes.setdefault(file.cell, []).append(file)
        changes[file.cell] = changes.get(file.cell, EMPTY_CELL) + contribution(file, rungs)
    added_by_path = {file.path: file for file in commit.added} if any(map(_is_partial, commit.removed)) else {}
    for removed in commit.removed:
        twin = added_by_path.get(removed.path)
        size = removed.size_bytes if removed.size_bytes is not None or twin is None else twin.size_bytes
        cell = removed.cell if removed.cell is not None or twin is None else twin.cell
        if size is None or cell is None:
            return Fold(commit.version, rescan=f"removal of {removed.path} names no size or no partition")
        tags = removed.tags if removed.tags is not None or twin is None else twin.tags
        # Without tags it may have been a settled file, see `CellState.plausible`.
        is_settled = tags is None or SETTLED_TAG in tags
        gone = file_state(
            rungs, size, has_dv=removed.dv_id is not None, deleted_rows=removed.deleted_rows, is_settled=is_settled
        )
        changes[cell] = changes.get(cell, EMPTY_CELL) - gone
    return Fold(commit.version, changes, with_deletes=with_deletes)


def recount(files: Iterable[DataFile], rungs: Ladder) -> dict[CellKey, CellState]:
    """Count all live files of a table into the states of its cells."""
    cells: dict[CellKey, CellState] = {}
    for file in files:
        cells[file.cell] = cells.get(file.cell, EMPTY_CELL) + contribution(file, rungs)
    return cells


def _rescan_reason(commit: Commit, metadata: TableMetadata) -> str | None:
    if commit.operation in REPLACING:
        return f"{commit.operation} replaced the table"
    if commit.metadata is not None and commit.metadata.table_uuid != metadata.table_uuid:
        return "the table was replaced by another one"
    if commit.metadata is not None and commit.metadata.partition_columns != metadata.partition_columns:
        return "the partition columns changed"
    if commit.added and not commit.data_change and not commit.removed:
        # Recomputed statistics and row-tracking backfills add files that are live already; they must not count twice.
        return "files were added again without a change of data"
    return None


def _is_partial(removed: RemovedFile) -> bool:
    return removed.size_bytes is None or removed.cell is None or removed.tags is None
