"""The inputs of a rewrite: live files with the delete files that apply to them, and the rows that readers see."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from actor.formats.iceberg.copy_choice import PLAIN_ENTRY, ManifestEntry
from shared.formats.iceberg.deletes import has_same_places
from shared.formats.iceberg.metadata import TableHead
from shared.layout.planner import FileGroup
from shared.table import DataFile, DeleteKind, PartitionKey

MAX_FILES_READ_FOR_DELETES = 10_000
"""Data files of the largest table whose scan tasks are all read, to find delete files that no data file needs any more.

In larger tables these delete files stay."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of Java's by its number in a list: to get each would take a round trip."""

    objects: Any
    number: int

    def get(self) -> Any:
        """Return the object."""
        return self.objects.get(self.number)


@dataclass(frozen=True, slots=True)
class AppliedDelete:
    """A delete file that applies to a data file; `is_exact`: its rows are rows of that file alone, each once.

    `is_of_one_file`: they are rows of that file alone, though one may be named twice. `partition` is its own, None
    where it is not known; `key_ids` are the columns of a delete by value. `is_parquet`: it is a Parquet file. A vector
    is `size_bytes` at an `offset` of its file. `sequence` is its sequence number, `spec` its partition spec. `listed`
    is Iceberg's object. Not `may_name_rows`: the data file was added after it, so it names none of its rows.
    `is_of_earlier`: so it is, and the data file is an output of ours, never added before.
    """

    path: str
    kind: DeleteKind
    rows: int
    is_exact: bool
    is_of_one_file: bool = False
    partition: PartitionKey | None = None
    may_name_rows: bool = True
    is_of_earlier: bool = False
    key_ids: tuple[int, ...] = ()
    is_parquet: bool = False
    offset: int = 0
    size_bytes: int = 0
    sequence: int = 0
    spec: int = 0
    listed: Listed | None = field(default=None, compare=False)

    @property
    def raw(self) -> Any:
        """Iceberg's object; one round trip."""
        return None if self.listed is None else self.listed.get()

    @property
    def file_path(self) -> str:
        """Path of the file that holds it, which may hold several vectors."""
        return self.path.rpartition("#")[0] if self.kind is DeleteKind.VECTOR else self.path

    @property
    def is_positional(self) -> bool:
        """True if it names rows by their place in a file, so that it means nothing for a rewritten one."""
        return self.kind is not DeleteKind.EQUALITY


@dataclass(frozen=True, slots=True)
class LiveInput:
    """One live data file: `file` as it is planned with, and `spec` its partition spec.

    `entry` is what its manifest says of how it is stored; `scanned` is Iceberg's scan task of it.
    """

    path: str
    size_bytes: int
    rows: int
    spec: int
    deletes: tuple[AppliedDelete, ...]
    file: DataFile
    entry: ManifestEntry = PLAIN_ENTRY
    scanned: Listed | None = field(default=None, compare=False)

    @property
    def task(self) -> Any:
        """Iceberg's scan task of the file; one round trip."""
        return None if self.scanned is None else self.scanned.get()

    @property
    def by_position(self) -> tuple[AppliedDelete, ...]:
        """The delete files that name rows by their position."""
        return tuple(one for one in self.deletes if one.is_positional)

    @property
    def positional(self) -> frozenset[str]:
        """The names of these."""
        return frozenset(one.path for one in self.by_position)


@dataclass(frozen=True, slots=True)
class InputGroup:
    """A planned group, with its inputs as they were when it was read."""

    group: FileGroup
    inputs: tuple[LiveInput, ...]

    @property
    def delete_files(self) -> tuple[str, ...]:
        """Paths of the delete files that apply to its inputs."""
        return tuple(sorted({delete.file_path for one in self.inputs for delete in one.deletes}))


def exact_deleted_rows(deletes: Iterable[AppliedDelete]) -> int:
    """Return the deleted rows of a file that are known to be its own; others may be there."""
    return sum(one.rows for one in deletes if one.is_exact)


def deleted_rows_to_plan_with(deletes: Iterable[AppliedDelete], rows: int) -> int:
    """Return about how many of a file's rows are deleted by position, to plan with and never to check a rewrite."""
    return min(rows, sum(one.rows for one in deletes if one.is_exact or one.is_of_one_file))


def known_rows(inputs: Sequence[LiveInput]) -> int | None:
    """Return the rows that readers see, None unless each delete counts exactly: then they have to be read."""
    if not all(one.is_exact for file in inputs for one in file.deletes):
        return None
    return sum(file.rows - exact_deleted_rows(file.deletes) for file in inputs)


def resolve(groups: Iterable[FileGroup], live: Mapping[str, LiveInput]) -> tuple[InputGroup, ...]:
    """Return the groups of one spec all of whose files are live as they were planned."""
    found: list[InputGroup] = []
    for group in groups:
        inputs = tuple(live[file.path] for file in group.files if _is_same(file, live.get(file.path)))
        if len(inputs) == len(group.files) and len({one.spec for one in inputs}) == 1:
            found.append(InputGroup(group, inputs))
    return tuple(found)


def still_live(group: InputGroup, live: Mapping[str, LiveInput]) -> bool:
    """Return whether all inputs are live with the same delete files by position.

    Later deletes by value apply to the output as well, for it keeps the sequence number of its inputs.
    """
    return all(one.path in live and one.positional == live[one.path].positional for one in group.inputs)


class FileReader(Protocol):
    """A table whose live files can be listed."""

    def inputs(
        self, head: TableHead, snapshot: int, *, partitions: Collection[PartitionKey] | None
    ) -> Mapping[str, LiveInput]:
        """Return the live files of partitions (None: all) in a snapshot, by path."""


def files_at_read(table: FileReader, head: TableHead, groups: Sequence[InputGroup]) -> Mapping[str, LiveInput]:
    """Return all files of the table in its newest snapshot, nothing where no delete file is to be removed.

    Of all partitions: a scan of some leaves out files whose bounds contradict their partition, and needs deletes.
    """
    if head.current is None or not any(one.deletes for group in groups for one in group.inputs):
        return {}
    files = head.snapshots[head.current].summary.get("total-data-files", "")
    if not files.isdigit() or int(files) > MAX_FILES_READ_FOR_DELETES:
        return {}
    return table.inputs(head, head.current, partitions=None)


def left_without_data(
    groups: Sequence[InputGroup], at_read: Mapping[str, LiveInput], newest: Mapping[str, LiveInput] | None = None
) -> tuple[AppliedDelete, ...]:
    """Return the delete files that hide nothing once these groups are rewritten, in the order of their paths.

    `at_read`: all files of the table in the snapshot of the read, none where no delete file is to be removed. Later
    data files do not count: they have other paths, and deletes by value of that snapshot do not apply to them. Delete
    files of other partitions are kept. Those that others have removed are not removed again: `newest` are the inputs
    in the newest snapshot, None if that is the snapshot of the read.
    """
    inputs = [one for group in groups for one in group.inputs]
    paths, partitions = {one.path for one in inputs}, {group.group.partition for group in groups}
    others = (one for path, one in at_read.items() if path not in paths)
    needed = {delete.path for one in others for delete in one.deletes if not delete.is_of_earlier}
    if newest is not None:
        present = {delete.path for one in inputs if one.path in newest for delete in newest[one.path].deletes}
        needed |= {delete.path for one in inputs for delete in one.deletes} - present
    found = {
        delete.path: delete
        for one in inputs
        if one.path in at_read
        for delete in one.deletes
        if delete.partition in partitions and delete.path not in needed
    }
    return tuple(found[path] for path in sorted(found))


def _is_same(planned: DataFile, found: LiveInput | None) -> bool:
    """Return whether a live file is the planned one, with its deletes; a plan that knew of none takes those it has."""
    if found is None or (found.path, found.file.partition) != (planned.path, planned.partition):
        return False
    return has_same_places(planned.dv_id, found.file.dv_id)
