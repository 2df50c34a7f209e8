"""Groups of delete files that are merged with each other, and the data files whose rows they name.

A group is what has to change in one commit: a delete file goes only if all rows that it hides are hidden by what is
written instead. One that applies to no data file is a group of its own, and nothing is written for it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import IcebergFile, NewDeletes
from actor.rewrite.model import Staged
from shared.formats.iceberg.delete_merges import LiveDelete
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile


@dataclass(frozen=True, slots=True)
class LiveDeletes:
    """The delete files of a snapshot: data files that some apply to, all of them, and those that apply to none."""

    snapshot: int
    inputs: tuple[LiveInput, ...] = ()
    files: tuple[LiveDelete, ...] = ()
    unapplied: tuple[AppliedDelete, ...] = ()

    def applied(self, names: Collection[str]) -> dict[str, frozenset[str]]:
        """Return which of these delete files hide rows of each data file; one of which they hide none is left out."""
        found = {
            one.path: frozenset(
                delete.path for delete in one.deletes if delete.path in names and not delete.is_of_earlier
            )
            for one in self.inputs
        }
        return {path: applied for path, applied in found.items() if applied}


@dataclass(frozen=True, slots=True)
class DeleteGroup(InputGroup):
    """Delete files that are replaced together, and the data files whose rows they hide: its inputs, which stay."""

    sources: tuple[AppliedDelete, ...] = ()
    applied: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)

    def named_in(self, file: LiveInput) -> list[AppliedDelete]:
        """Return those that hide rows of a data file."""
        return [one for one in self.sources if one.path in self.applied[file.path]]

    def is_as_found(self, now: LiveDeletes) -> bool:
        """Return whether all are live in a snapshot, and hide rows of the same data files, each of the same ones."""
        names = {one.path for one in self.sources}
        return names <= {one.name for one in now.files} and now.applied(names) == self.applied


@dataclass(frozen=True, slots=True)
class MergedDeletes(Staged[DeleteGroup, IcebergFile]):
    """A group of which what replaces its delete files is written; no snapshot refers to that yet."""

    deletes: tuple[NewDeletes, ...] = ()

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size in bytes of each file that was written for the commit, by its path; several vectors may be in one."""
        return {one.path: one.size_bytes for one in self.deletes}


@dataclass(frozen=True, slots=True)
class DeletesChange:
    """Change of one snapshot, which holds upon the snapshot `upon` alone: delete files that go, and that come."""

    upon: int
    removed: tuple[AppliedDelete, ...]
    added: tuple[NewDeletes, ...]


def groups_of(found: LiveDeletes, wanted: Collection[str], *, has_vectors: bool) -> list[DeleteGroup]:
    """Return the groups of these delete files, with the others of their data files, and of what hides no row at all.

    has_vectors: what is written are vectors. A file of positions that stays as it is makes no group.
    """
    joined, sources = _Joined(), dict[str, AppliedDelete]()
    files: list[tuple[str, LiveInput]] = []
    for one in found.inputs:
        hiding = [delete for delete in one.by_position if not delete.is_of_earlier]
        if any(delete.path in wanted for delete in hiding):
            named = {one.path: one for one in hiding if one.path in wanted or one.is_of_one_file}
            files.append((joined.join([*named]), one))
            sources |= named
    hidden_by: dict[str, list[AppliedDelete]] = defaultdict(list)
    inputs_of: dict[str, list[LiveInput]] = defaultdict(list)
    for name, delete in sources.items():
        hidden_by[joined.root(name)].append(delete)
    for name, one in files:
        inputs_of[joined.root(name)].append(one)
    merged = [
        _group(found, some, inputs_of[root])
        for root, some in sorted(hidden_by.items())
        if has_vectors or len(some) > 1 or not some[0].is_of_one_file
    ]
    return [_group(found, [one], []) for one in _hiding_nothing(found)] + merged


def _hiding_nothing(found: LiveDeletes) -> Iterable[AppliedDelete]:
    """Return the delete files that hide no row, each once; by value, only those that apply to no data file."""
    applied = [delete for one in found.inputs for delete in one.deletes]
    needed = {one.path for one in applied if not one.is_of_earlier}
    return {one.path: one for one in (*found.unapplied, *applied) if one.path not in needed}.values()


def _group(found: LiveDeletes, sources: Sequence[AppliedDelete], inputs: Sequence[LiveInput]) -> DeleteGroup:
    named = tuple(DataFile(one.path, one.size_bytes, WHOLE_TABLE) for one in sources)
    names = {one.path for one in sources}
    planned = FileGroup(sources[0].partition or WHOLE_TABLE, named, RewriteMode.MINOR)
    return DeleteGroup(planned, tuple(inputs), tuple(sources), found.applied(names))


class _Joined:
    """Names that belong together, because one data file joins them."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def root(self, name: str) -> str:
        while (above := self._above.setdefault(name, name)) != name:
            self._above[name] = self._above[above]
            name = above
        return name

    def join(self, names: Sequence[str]) -> str:
        for name in names[1:]:
            self._above[self.root(name)] = self.root(names[0])
        return names[0]
