"""Groups of delete files that are merged with each other, and the data files whose rows they name.

A group is what has to change in one commit: a delete file goes only if all rows that it hides are hidden by what is
written instead. Its files are these delete files, and its inputs the data files that they apply to, which stay. A
delete file that applies to no data file is a group of its own, and nothing is written for it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import NewDeletes
from shared.formats.iceberg.delete_merges import MOST_ROWS, LiveDelete
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile

MOST_DATA_FILES = 5_000
"""Data files of a group: all are committed together, and a delete file is written for each whose rows are named."""


@dataclass(frozen=True, slots=True)
class LiveDeletes:
    """The deletes of a snapshot: data files that some apply to by position, all of these, and what applies to none."""

    snapshot: int
    inputs: tuple[LiveInput, ...] = ()
    files: tuple[LiveDelete, ...] = ()
    unapplied: tuple[AppliedDelete, ...] = ()

    @property
    def by_name(self) -> Mapping[str, AppliedDelete]:
        """All of them that may be merged or removed, by their names."""
        applied = {delete.path: delete for one in self.inputs for delete in one.by_position}
        return applied | {one.path: one for one in self.unapplied}

    def those_in(self, groups: Iterable[InputGroup]) -> frozenset[FileGroup]:
        """Return those groups that are in this snapshot as they were found: they apply to the same data files.

        What applies to one of these by position must be the same, too: readers ignore it beside a vector.
        """
        inputs = {one.path: one for one in self.inputs}
        applied: dict[str, set[str]] = defaultdict(set)
        for one in self.inputs:
            for delete in one.by_position:
                applied[delete.path].add(one.path)
        left = {one.path for one in self.unapplied}

        def is_in(group: InputGroup) -> bool:
            names = [one.path for one in group.group.files]
            if not group.inputs:
                return left.issuperset(names)
            paths = set[str]().union(*(applied[name] for name in names))
            is_same = all(_as_read(one) == _as_read(inputs[one.path]) for one in group.inputs if one.path in paths)
            return paths == {one.path for one in group.inputs} and is_same

        return frozenset(one.group for one in groups if is_in(one))


@dataclass(frozen=True, slots=True)
class DeletesChange:
    """Change of one snapshot, which holds upon the snapshot `upon` alone: delete files that go, and that come.

    is_new_to_others: rewrites that others began before must fail, for what is removed would apply to their outputs. The
    snapshot is then one that deletes rows, and gives what comes its own sequence number.
    """

    upon: int
    removed: tuple[AppliedDelete, ...]
    added: tuple[NewDeletes, ...]
    is_new_to_others: bool = False


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    """Groups to be merged or removed; `left`: names of what is too many, or names too many rows, for one commit."""

    groups: tuple[InputGroup, ...] = ()
    left: frozenset[str] = frozenset()


def named_in(group: InputGroup, file: LiveInput) -> list[AppliedDelete]:
    """Return the delete files of a group that apply to one of its inputs."""
    names = {one.path for one in group.group.files}
    return [one for one in file.by_position if one.path in names]


def groups_of(found: LiveDeletes, wanted: Collection[str], *, has_vectors: bool) -> DeleteGroups:
    """Return the groups of these delete files, with the others of their data files, and of what applies to none.

    has_vectors: what is written are vectors, for which readers ignore all files of positions of the data file. So all
    of these go into one, or none of those that are joined with them do. A file of positions that stays as it is makes
    no group.
    """
    joined, sources, blocked = _Joined(), dict[str, AppliedDelete](), set[str]()
    files: list[tuple[str, LiveInput]] = []
    for one in found.inputs:
        named = {
            delete.path: delete
            for delete in one.by_position
            if has_vectors or delete.path in wanted or delete.is_of_one_file
        }
        if named.keys().isdisjoint(wanted):
            continue
        files.append((joined.join([*named]), one))
        sources |= named
        if has_vectors:
            blocked |= named.keys() - wanted
    deletes_of: dict[str, list[AppliedDelete]] = defaultdict(list)
    inputs_of: dict[str, list[LiveInput]] = defaultdict(list)
    for name, delete in sources.items():
        deletes_of[joined.root(name)].append(delete)
    for name, one in files:
        inputs_of[joined.root(name)].append(one)
    merged = {
        root: some
        for root, some in sorted(deletes_of.items())
        if has_vectors or len(some) > 1 or not some[0].is_of_one_file
    }
    large = {root for root, some in merged.items() if _is_large(some, inputs_of[root])} | {*map(joined.root, blocked)}
    groups = [_group([one], []) for one in found.unapplied]
    groups += [_group(some, inputs_of[root]) for root, some in merged.items() if root not in large]
    return DeleteGroups(tuple(groups), frozenset(one.path for root in large for one in merged[root]))


def _is_large(deletes: Iterable[AppliedDelete], inputs: Sequence[LiveInput]) -> bool:
    return len(inputs) > MOST_DATA_FILES or sum(one.rows for one in deletes) > MOST_ROWS


def _group(deletes: Sequence[AppliedDelete], inputs: Sequence[LiveInput]) -> InputGroup:
    files = tuple(DataFile(one.path, one.size_bytes, WHOLE_TABLE, rows=one.rows) for one in deletes)
    planned = FileGroup(deletes[0].partition or WHOLE_TABLE, files, RewriteMode.MINOR)
    return InputGroup(planned, tuple(inputs))


def _as_read(one: LiveInput) -> tuple[object, ...]:
    return one.path, one.spec, one.file.partition, frozenset(one.by_position)


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
