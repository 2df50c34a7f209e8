"""Commits a removal of rows to an Iceberg table: all of its files, or none, upon the metadata that were read last.

The snapshot's operation is `delete`, or `overwrite` where files were written again. Nothing may have changed since:
whatever others do meanwhile, be it a commit, an ALTER or a rollback, they are read again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from actor.formats.iceberg.commit import SnapshotTarget, StoredTable
from actor.formats.iceberg.inputs import LiveInput
from actor.formats.iceberg.staged import StagedGroup
from actor.rewrite.model import Attempt
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import PROOFREAD_KEY
from shared.table import PartitionKey


class OverwrittenTable(StoredTable, Protocol):
    """The table that is committed to; every method raises what Iceberg raises."""

    def head(self) -> TableHead:
        """Return the metadata as they were last read, or as a commit of this process has left them."""

    def inputs(
        self, head: TableHead, snapshot: int, *, partitions: Collection[PartitionKey] | None, paths: Collection[str]
    ) -> Mapping[str, LiveInput]:
        """Return those live files of partitions in a snapshot that have these paths, by path."""

    def overwrite(self, groups: Iterable[StagedGroup], *, upon: TableHead, summary: Mapping[str, str]) -> None:
        """Replace the inputs of groups by their outputs in one snapshot, upon exactly these metadata."""


class IcebergRemovalTarget(SnapshotTarget):
    """`actor.rewrite.ports.CommitTarget` for removals of rows.

    `check` raises Conflict for metadata by which the rows would not have been chosen, and what `IcebergTarget` raises.
    """

    def __init__(
        self, table: OverwrittenTable, check: Callable[[TableHead], None], head: TableHead, user_metadata: str
    ) -> None:
        super().__init__(table, head, user_metadata)
        self._table = table
        self._check = check

    def begin(self, offered: tuple[StagedGroup, ...]) -> Attempt[StagedGroup]:
        """Read the newest metadata; no group is left if others changed an input of any."""
        self.base = self._table.refresh()
        self._check(self.base)
        return Attempt(offered if self._are_live(offered, self.base) else (), self.base)

    def _are_live(self, groups: Collection[StagedGroup], head: TableHead) -> bool:
        if head.current == self.since:
            return True
        if head.current is None or not self.leads_to(head):
            return False
        paths = {one.path for group in groups for one in group.live.inputs}
        partitions = {one.file.partition for group in groups for one in group.live.inputs}
        live = self._table.inputs(head, head.current, partitions=partitions, paths=paths)
        return all(_is_same(one, live.get(one.path)) for group in groups for one in group.live.inputs)

    def commit(self, attempt: Attempt[StagedGroup]) -> int | None:
        """Commit one snapshot, and return its version by the metadata that the commit has left."""
        summary = self.summary(attempt.groups)
        if all(one.proof is None for one in attempt.groups):
            del summary[PROOFREAD_KEY]  # Whole partitions, of which no row had to be read.
        self._table.overwrite(attempt.groups, upon=attempt.base, summary=summary)
        return self.version_in(self._table.head())


def _is_same(read: LiveInput, found: LiveInput | None) -> bool:
    """Return whether a file is live with the same deletes of any kind: rows may come back, and outputs lack others."""
    return found is not None and frozenset(read.deletes) == frozenset(found.deletes)
