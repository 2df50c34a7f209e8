"""A table as what new delete files are committed to: only upon a snapshot in which they hide what others hid there.

Where deletes by value became positions, the commit is one that deletes rows. Iceberg compares such commits, and no
`replace`, with the rewrites that others began before. One that was begun before a delete by value leaves the rows in an
output that is old enough for it, and would make them visible once it is gone.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from actor.formats.iceberg.commit import SnapshotTarget, StoredTable
from actor.formats.iceberg.delete_groups import DeletesChange, LiveDeletes
from actor.formats.iceberg.late_rows import SetAside
from actor.formats.iceberg.staged import StagedGroup
from actor.formats.iceberg.value_groups import LiveValues
from actor.rewrite.model import Attempt, Verdict
from shared.errors import Conflict
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import CONVERTED_KEY, PROOFREAD_KEY

FoundDeletes = LiveDeletes | LiveValues


class MergedTable(StoredTable, Protocol):
    """A table whose delete files can be merged; methods raise what Iceberg raises."""

    def commit_deletes(self, change: DeletesChange, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, if the one that it holds upon is the newest one still.

        Raises NotAsked where it failed before the catalog was asked.
        """

    def head(self) -> TableHead:
        """Return the metadata as they were last read, or as a commit of this process has left them."""


class DeletesTarget(SnapshotTarget):
    """`actor.rewrite.ports.CommitTarget` of new delete files; `found`: all that the snapshot of `head` has.

    `check` raises for a table that must not be touched; `again` finds the same in other metadata.
    """

    def __init__(
        self,
        table: MergedTable,
        check: Callable[[TableHead], None],
        head: TableHead,
        user_metadata: str,
        *,
        found: FoundDeletes,
        again: Callable[[TableHead], FoundDeletes | None],
    ) -> None:
        super().__init__(table, head, user_metadata)
        self._table = table
        self._check = check
        self._found = found
        self._again = again
        self._is_by_value = isinstance(found, LiveValues)

    def begin(self, offered: tuple[StagedGroup, ...]) -> Attempt[StagedGroup]:
        """Read the newest metadata; groups of which others changed a delete file or a data file are left out."""
        head = self.base = self.refresh()
        self._check(head)
        if head.protocol.min_writer != self.head.protocol.min_writer:
            raise Conflict(f"the format version of {self.location} changed meanwhile", kind=Verdict.CHANGED)
        if head.current != self._found.snapshot:
            self._found = (self._again(head) if head.current is not None else None) or LiveDeletes(0)
        live = self._found.those_in(one.live for one in offered)
        kept = tuple(one for one in offered if one.live.group in live)
        named = self._found.by_name
        removed = tuple(named[file.path] for one in kept for file in one.live.group.files)
        added = tuple(new for one in kept for new in one.deletes)
        change = DeletesChange(self._found.snapshot, removed, added, is_new_to_others=self._is_by_value)
        left = {one.live.group: SetAside.INPUT_GONE for one in offered if one.live.group not in live}
        return Attempt(kept, change, set_aside=left)

    def commit(self, attempt: Attempt[StagedGroup]) -> int | None:
        """Commit one snapshot, and return its version by the metadata that the commit has left."""
        merged = [one for one in attempt.groups if one.live.inputs]
        summary = self.summary(merged)
        if not merged:
            del summary[PROOFREAD_KEY]  # What hides no row had not to be read.
        if self._is_by_value:
            summary[CONVERTED_KEY] = str(len(attempt.base.removed))
        self._table.commit_deletes(attempt.base, summary)
        return self.version_in(self._table.head())
