"""The inputs of a rewrite: live files with the delete files that apply to them, and the rows that readers see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from shared.layout.planner import FileGroup
from shared.table import DataFile, DeleteKind


@dataclass(frozen=True, slots=True)
class AppliedDelete:
    """A delete file that applies to a data file; `is_exact`: its rows are rows of that file alone, each once."""

    path: str
    kind: DeleteKind
    rows: int
    is_exact: bool

    @property
    def is_positional(self) -> bool:
        """Whether it names rows by their place in a file, so that it means nothing for a rewritten one."""
        return self.kind is not DeleteKind.EQUALITY


@dataclass(frozen=True, slots=True)
class LiveInput:
    """One live data file: `file` as it is planned with, `spec` its partition spec, `task` Iceberg's scan task of it."""

    path: str
    size_bytes: int
    rows: int
    spec: int
    deletes: tuple[AppliedDelete, ...]
    file: DataFile
    task: Any = None

    @property
    def positional(self) -> frozenset[str]:
        """The delete files that name rows by their place."""
        return frozenset(one.path for one in self.deletes if one.is_positional)


@dataclass(frozen=True, slots=True)
class InputGroup:
    """A planned group, with its inputs as they were when it was read."""

    group: FileGroup
    inputs: tuple[LiveInput, ...]


def delete_digest(deletes: Sequence[AppliedDelete]) -> str | None:
    """Return what identifies the deletes of a file, None where there are none."""
    if not deletes:
        return None
    return blake2b("\n".join(sorted(one.path for one in deletes)).encode(), digest_size=8).hexdigest()


def exact_deleted_rows(deletes: Iterable[AppliedDelete]) -> int:
    """Return the deleted rows of a file that are known to be its own; others may be there."""
    return sum(one.rows for one in deletes if one.is_exact)


def known_rows(inputs: Sequence[LiveInput]) -> int | None:
    """Return the rows that readers see, None unless each delete counts exactly: then they have to be read."""
    if not all(one.is_exact for file in inputs for one in file.deletes):
        return None
    return sum(file.rows - exact_deleted_rows(file.deletes) for file in inputs)


def resolve(groups: Iterable[FileGroup], live: Mapping[str, LiveInput]) -> tuple[InputGroup, ...]:
    """Return the groups all of whose files are live as they were planned, deletes included."""
    found: list[InputGroup] = []
    for group in groups:
        inputs = tuple(live[file.path] for file in group.files if _is_same(file, live.get(file.path)))
        if len(inputs) == len(group.files):
            found.append(InputGroup(group, inputs))
    return tuple(found)


def still_live(group: InputGroup, live: Mapping[str, LiveInput]) -> bool:
    """Whether no other writer has removed an input since, or deleted rows of one by their place.

    Later deletes by value apply to the output as well, for it keeps the sequence number of its inputs.
    """
    found = {path: one.positional for path, one in live.items()}
    return all(found.get(one.path) == one.positional for one in group.inputs)


def _is_same(planned: DataFile, found: LiveInput | None) -> bool:
    return found is not None and found.file.key == planned.key and found.file.partition == planned.partition
