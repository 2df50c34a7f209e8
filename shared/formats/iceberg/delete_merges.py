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

MOST_SHARED_ROWS = 1_000_000
"""Rows of a delete file of several data files that is merged: it is held in memory, for each of them."""

MOST_SHARED_ROWS_TOGETHER = 10_000_000
"""Rows of all these of a partition: a row takes a few bytes."""


class LiveDelete(NamedTuple):
    """A live delete file; `of`: the one data file that it names rows of, empty if there may be several."""

    name: str
    kind: DeleteKind
    of: str
    partition: PartitionKey
    rows: int


class Superfluous(NamedTuple):
    """The names of delete files to be merged, and how many there are and would be."""

    names: frozenset[str]
    files: DeleteFileCount


def superfluous(deletes: Iterable[LiveDelete], format_version: int) -> Superfluous:
    """Return which of the live delete files of a snapshot are to be merged."""
    found = [one for one in deletes if one.kind is not DeleteKind.EQUALITY]
    groups: dict[tuple[PartitionKey, str], list[LiveDelete]] = defaultdict(list)
    for one in found:
        if one.kind is DeleteKind.POSITION and (one.of or one.rows <= MOST_SHARED_ROWS):
            groups[one.partition, one.of].append(one)
    stays = 0 if format_version >= FIRST_WITH_VECTORS else 1
    many = [some for some in groups.values() if len(some) > stays and _fits(some)]
    excess = sum(len(some) - stays for some in many)
    return Superfluous(frozenset(one.name for some in many for one in some), DeleteFileCount(len(found), excess))


def _fits(group: list[LiveDelete]) -> bool:
    """Return whether the delete files of a group can be held in memory; a data file has only so many rows."""
    return bool(group[0].of) or sum(one.rows for one in group) <= MOST_SHARED_ROWS_TOGETHER
