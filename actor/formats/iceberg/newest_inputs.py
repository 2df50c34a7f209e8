"""The inputs of a rewrite as the newest snapshot has them: only what changed since the last look is read.

A scan reads every manifest that may have files of a partition, and others commit again meanwhile.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from shared.formats.iceberg.metadata import TableHead
from shared.layout.planner import FileGroup
from shared.table import DeleteKind

MOST_SNAPSHOTS = 50
"""Snapshots since the last look that are read one after the other, a list of manifests each; of more, the newest is
scanned."""

Inputs = Mapping[str, LiveInput]
"""Live inputs by their paths."""


class SnapshotReader(Protocol):
    """A table whose snapshots are read; methods raise what Iceberg raises."""

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Inputs:
        """Return which files of these groups are live in a snapshot, with their deletes."""

    def followed(self, inputs: Inputs, since: int, until: int) -> Inputs | None:
        """Return what later snapshots left of inputs, and what they delete of these by position.

        None if another table's history lies between, or more than `MOST_SNAPSHOTS`.
        """


class NewestInputs:
    """Follows the inputs of groups from the snapshot that they were read at."""

    def __init__(self, table: SnapshotReader, snapshot: int, groups: Sequence[InputGroup]) -> None:
        self._table = table
        self._planned = [one.group for one in groups]
        self._read = snapshot, {one.path: one for group in groups for one in group.inputs}
        self._known: tuple[int, Inputs] = self._read

    def at(self, head: TableHead, newest: int) -> Inputs:
        """Return the inputs that are live in the newest snapshot, which the one of the read leads to."""
        main = {one.id for one in head.chain()}
        since, inputs = self._known if self._known[0] in main else self._read
        found = inputs if since == newest else self._table.followed(inputs, since, newest)
        self._known = newest, self._table.live(newest, self._planned) if found is None else found
        return self._known[1]


def after_changes(
    inputs: Sequence[LiveInput], added: Iterable[Sequence[AppliedDelete]], removed: frozenset[str]
) -> dict[str, LiveInput]:
    """Return the inputs that are left, by path, with those delete files of each that readers take into account.

    added: of each, those by position that are new. removed: paths of data files, and names of delete files.
    """
    pairs = zip(inputs, added, strict=True)
    return {one.path: _with(one, new, removed) for one, new in pairs if one.path not in removed}


def _with(one: LiveInput, new: Sequence[AppliedDelete], removed: frozenset[str]) -> LiveInput:
    deletes = tuple({delete.path: delete for delete in (*one.deletes, *new) if delete.path not in removed}.values())
    if any(delete.kind is DeleteKind.VECTOR for delete in deletes):  # It holds what files of positions name, too.
        deletes = tuple(delete for delete in deletes if delete.kind is not DeleteKind.POSITION)
    return replace(one, deletes=deletes)
