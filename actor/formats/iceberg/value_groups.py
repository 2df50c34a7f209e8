"""Groups of delete files by value that become positions, with the data files in which they hide rows.

Such a file applies to each data file of its partition with a lesser sequence number, one of a spec without partitions
to each of the table. It goes only if its rows are hidden by position in all of these. So a group takes the oldest
first, with all data files that are older than the newest one taken: what is later stays as it is.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile

from actor.formats.iceberg.delete_groups import MOST_DATA_FILES, DeleteGroups
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, PartitionKey

MOST_KEYS = 500_000
"""Keys that are held at once: some 250 bytes each in the heap of the JVM, 125 MB together."""

MOST_KEY_BYTES = 32 << 20
"""Bytes of delete files whose keys are held at once: long keys are compressed there, and are not in memory."""

MOST_PAIRS = 1_000_000
"""Pairs of a data file and a delete file that applies to it, in one group: 8 bytes each, here and in the proof."""

MOST_TRIED = 100
"""Delete files refused alone in a run before the others of a refused group stay: each reads its data files."""


@dataclass(frozen=True)
class LiveValues:
    """The deletes by value of a snapshot, and the data files that are old enough for one of them, whatever bounds say.

    numbers: the sequence number of each of these files by its path. unpartitioned: ids of the specs without partitions.
    Of what applies to the files by position, they have what must be in a vector with what is hidden by value.
    uncovered: returns the path of a data file for which Iceberg's own scan found a delete file of a group that the
    group does not have for it; None: there is none.
    """

    snapshot: int
    inputs: tuple[LiveInput, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    deletes: tuple[AppliedDelete, ...] = ()
    unpartitioned: Collection[int] = ()
    uncovered: Callable[[InputGroup], str | None] = field(default=lambda _: None, compare=False)

    @property
    def by_name(self) -> Mapping[str, AppliedDelete]:
        """All that may be replaced, by their names."""
        return {one.path: one for file in self.inputs for one in file.deletes} | {one.path: one for one in self.deletes}

    def place(self, delete: AppliedDelete) -> PartitionKey | None:
        """Return the partition whose data files a delete by value applies to, None: to all data files."""
        return None if delete.spec in self.unpartitioned or delete.partition is None else delete.partition

    def older(self, delete: AppliedDelete) -> Sequence[LiveInput]:
        """Return the data files that a delete by value applies to, the oldest first."""
        numbers, files = self._sorted.get(self.place(delete), ([], []))
        return files[: bisect_left(numbers, delete.sequence)]

    @cached_property
    def _sorted(self) -> Mapping[PartitionKey | None, tuple[list[int], list[LiveInput]]]:
        found: dict[PartitionKey | None, tuple[list[int], list[LiveInput]]] = {}
        for one in sorted(self.inputs, key=lambda one: self.numbers[one.path]):
            for place in (None, one.file.partition):
                numbers, files = found.setdefault(place, ([], []))
                numbers.append(self.numbers[one.path])
                files.append(one)
        return found

    def group(self, deletes: Sequence[AppliedDelete]) -> InputGroup:
        """Return the group of delete files of one place; each of its inputs has the ones that apply to it."""
        rising = sorted(deletes, key=lambda one: (one.sequence, one.path))
        inputs = tuple(self._with(one, rising) for one in self.older(rising[-1]))
        files = tuple(DataFile(one.path, one.size_bytes, WHOLE_TABLE, rows=one.rows) for one in rising)
        return InputGroup(FileGroup(self.place(rising[0]) or WHOLE_TABLE, files, RewriteMode.MINOR), inputs)

    def _with(self, file: LiveInput, rising: Sequence[AppliedDelete]) -> LiveInput:
        number = self.numbers[file.path]
        later = tuple(one for one in rising if one.sequence > number)
        return replace(file, deletes=(*file.by_position, *later))

    def those_in(self, groups: Iterable[InputGroup]) -> frozenset[FileGroup]:
        """Return those groups that are in this snapshot as they were found: they hide rows of the same data files.

        What applies to one of these by position must be the same, too, where it went into a vector.
        """
        known = {one.path: one for one in self.deletes}

        def is_in(group: InputGroup) -> bool:
            names = {one.path for file in group.inputs for one in file.deletes if not one.is_positional}
            if not names <= known.keys():
                return False
            own = self.group([known[one] for one in names])
            is_same = {*map(_as_read, own.inputs)} == {*map(_as_read, group.inputs)}
            return is_same and self.uncovered(own) is None

        return frozenset(one.group for one in groups if is_in(one))


def with_vectors(group: InputGroup, written: Sequence[object | None]) -> InputGroup:
    """Return a group with the vectors of those data files for which something was written: it holds their rows."""
    old = [
        delete
        for one, new in zip(group.inputs, written, strict=True)
        if new is not None
        for delete in one.by_position
        if delete.kind is DeleteKind.VECTOR
    ]
    files = tuple(DataFile(one.path, one.size_bytes, WHOLE_TABLE, rows=one.rows) for one in old)
    return replace(group, group=replace(group.group, files=(*group.group.files, *files)))


def _as_read(one: LiveInput) -> tuple[object, ...]:
    return one.path, one.spec, one.file.partition, frozenset(delete.path for delete in one.deletes)


def value_groups(
    found: LiveValues, usable: Iterable[AppliedDelete], refused: Collection[frozenset[str]]
) -> DeleteGroups:
    """Return the next group of each place; one that applies to the files of all is alone, for it shares them.

    refused: names of the delete files of groups that were refused in this run. Those of several are tried alone.
    `left`: names of those that have too many keys, or apply to too many data files, for one commit.
    """
    places: dict[PartitionKey | None, list[AppliedDelete]] = {}
    for one in sorted(usable, key=lambda one: (one.sequence, one.path)):
        if found.older(one):
            places.setdefault(found.place(one), []).append(one)
    left = {one.path for some in places.values() for one in some if _is_large(one, found)}
    alone = frozenset[str]().union(*refused)
    singles = [names for names in refused if len(names) == 1]
    stay = left | (alone if len(singles) >= MOST_TRIED else frozenset[str]().union(*singles))
    taken = {
        place: _first_of([one for one in some if one.path not in stay], found, alone) for place, some in places.items()
    }
    chosen = [found.group(some) for place, some in taken.items() if some and (place is None or not taken.get(None))]
    return DeleteGroups(tuple(chosen), frozenset(left))


def _is_large(one: AppliedDelete, found: LiveValues) -> bool:
    return one.rows > MOST_KEYS or one.size_bytes > MOST_KEY_BYTES or len(found.older(one)) > MOST_DATA_FILES


def _first_of(rising: Sequence[AppliedDelete], found: LiveValues, alone: Collection[str]) -> Sequence[AppliedDelete]:
    """Return the oldest delete files that one commit replaces, as many as may be held with their data files."""
    if rising and rising[0].path in alone:
        return rising[:1]
    keys = size = count = 0

    def fits(one: AppliedDelete) -> bool:
        nonlocal keys, size, count
        keys, size, count = keys + one.rows, size + one.size_bytes, count + 1
        return keys <= MOST_KEYS and size <= MOST_KEY_BYTES and count * len(found.older(one)) <= MOST_PAIRS

    return [*takewhile(lambda one: one.path not in alone and fits(one), rising)]
