"""Delete files and the data files that they apply to, by manifests alone: as Iceberg's own readers decide it.

A vector and a delete file of one data file (by its field, or by equal bounds of the paths in it) apply to that file;
other files of positions to each data file of their partition that is not newer, by sequence numbers; values to each
older one of their partition, or of the table if their spec has no partitions. Readers skip some deletes by value by
the bounds of columns, which are not compared here: values only say that there are some.

An output of a rewrite keeps the sequence number of its inputs, so files of positions that were written before it seem
to apply to it. They cannot: no position can be deleted in a file that is not there yet. Such delete files do not count,
or a rewrite would never be the last one.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from shared.formats.iceberg.manifests import Entry
from shared.table import DeleteKind, PartitionKey

_VALUES = "+values"
"""Ends the id of deletes with some by value: any later ones apply to the output of a rewrite, too."""


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The deletes that apply to one data file: its `id`, None without any, and rows that are known to be deleted."""

    id: str | None = None
    rows: int = 0


NO_DELETES = AppliedDeletes()


class DeleteIndex:
    """The live delete files of a snapshot; `unpartitioned`: ids of the specs without partitions."""

    def __init__(self, deletes: Iterable[Entry], unpartitioned: Collection[int]) -> None:
        self._of_file: dict[str, list[Entry]] = {}
        self._places: dict[PartitionKey, list[Entry]] = {}
        self._values: dict[PartitionKey | None, int] = {}
        for one in deletes:
            if one.kind is DeleteKind.EQUALITY:
                where = None if one.spec in unpartitioned else one.partition
                self._values[where] = max(self._values.get(where, 0), one.sequence)
            elif one.referenced:
                self._of_file.setdefault(one.referenced, []).append(one)
            else:
                self._places.setdefault(one.partition, []).append(one)

    def of(self, file: Entry) -> AppliedDeletes:
        """Return the deletes that apply to a data file."""
        own = [one for one in self._of_file.get(file.path, ()) if one.sequence >= file.sequence]
        vectors = [one for one in own if one.kind is DeleteKind.VECTOR]
        shared = [] if vectors else [one for one in self._places.get(file.partition, ()) if _may_name(one, file)]
        newest = max(self._values.get(where, 0) for where in (None, file.partition))
        places = [one.delete_id for one in (*(vectors or own), *shared)]
        rows = sum(one.rows for one in vectors or own)
        return AppliedDeletes(deletes_id(places, has_values=file.sequence < newest), min(file.rows, rows))


def _may_name(delete: Entry, file: Entry) -> bool:
    return delete.sequence >= file.sequence and can_name_rows(delete.sequence, file.file_sequence)


def can_name_rows(delete_sequence: int | None, file_sequence: int | None) -> bool:
    """Return whether a file of positions may name rows of a data file that a snapshot of this number added."""
    return delete_sequence is None or file_sequence is None or file_sequence <= delete_sequence


def deletes_id(places: Sequence[str], *, has_values: bool) -> str | None:
    """Return what identifies deletes: by the paths of those by position, and whether there are some by value."""
    if not places and not has_values:
        return None
    digest = blake2b("\n".join(sorted(places)).encode(), digest_size=8).hexdigest() if places else ""
    return f"{digest}{_VALUES if has_values else ''}"


def has_same_places(planned: str | None, found: str | None) -> bool:
    """Return whether deletes by position are those that a plan knew; one that knew of none takes those that are there.

    Which deletes by value apply does not matter: the rewrite applies them all.
    """
    known = (planned or "").removesuffix(_VALUES)
    return not known or known == (found or "").removesuffix(_VALUES)
