"""Choice of the delete files of a snapshot to be merged, by its manifests of delete files alone, for decider and actor.

From format version 3 on, every file of positions becomes a vector of each data file whose rows it names. Before, those
of one data file become one, if there are several; so do those that name rows of several data files, if a partition has
more than one: each of these data files gets one of its own. After a merge nothing is left to be merged.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from shared.layout.delete_files import DeleteFileCount
from shared.table import DeleteKind, PartitionKey

FIRST_WITH_VECTORS = 3
"""The format version from which on vectors delete rows by position, and files of positions are not written."""

MOST_ROWS = 5_000_000
"""Rows that delete files name which are merged with each other: they are held in memory, some bytes for each."""


class LiveDelete(NamedTuple):
    """A live delete file; `of`: the one data file that it names rows of, empty if there may be several."""

    name: str
    kind: DeleteKind
    of: str
    partition: PartitionKey
    rows: int


class Superfluous(NamedTuple):
    """The names of delete files to be merged, and how many these are of all.

    left: the names of those that are not, for they name too many rows together.
    """

    names: frozenset[str]
    files: DeleteFileCount
    left: frozenset[str] = frozenset()


def superfluous(deletes: Iterable[LiveDelete], format_version: int) -> Superfluous:
    """Return which of the live delete files of a snapshot are to be merged.

    Readers ignore all files of positions for a data file that has a vector. So where those that several data files of a
    partition share name too many rows, none of the partition becomes a vector.
    """
    listed = [*deletes]
    found = [one for one in listed if one.kind is not DeleteKind.EQUALITY]
    groups: dict[tuple[PartitionKey, str], list[LiveDelete]] = defaultdict(list)
    for one in found:
        if one.kind is DeleteKind.POSITION:
            groups[one.partition, one.of].append(one)
    has_vectors = format_version >= FIRST_WITH_VECTORS
    stays = 0 if has_vectors else 1
    many = {where: some for where, some in groups.items() if len(some) > stays}
    merged = [
        some
        for (partition, _), some in many.items()
        if _fits(some) and (not has_vectors or _fits(groups.get((partition, ""), [])))
    ]
    excess = sum(len(some) - stays for some in merged)
    names = frozenset(one.name for some in merged for one in some)
    left = frozenset(one.name for some in many.values() for one in some) - names
    return Superfluous(names, DeleteFileCount(len(found), excess, len(listed) - len(found)), left)


def _fits(group: Iterable[LiveDelete]) -> bool:
    return sum(one.rows for one in group) <= MOST_ROWS
