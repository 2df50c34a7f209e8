"""Groups of an Iceberg table that were written, with their delete files, and the change of one snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup
from actor.rewrite.model import Staged
from shared.table import DataFile


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """An output; `raw` is Iceberg's object."""

    file: DataFile
    raw: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NewDeletes:
    """A delete file, or a vector in one, that was written for a commit; `name` is what an `AppliedDelete` calls it.

    sequence: its sequence number, None: the one that the snapshot gives which adds it. raw: Iceberg's object. rows: how
    many it names. vector: where one begins in its file, and its size in bytes; None: it is none, or that is not known.
    """

    name: str
    path: str
    size_bytes: int
    sequence: int | None = None
    raw: Any = field(default=None, compare=False)
    rows: int = 0
    vector: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StagedGroup(Staged[InputGroup, IcebergFile]):
    """A group of an Iceberg table that no snapshot refers to yet.

    in_order: whether the output holds the inputs one after the other, in their order. deletes: delete files that were
    written for one attempt to commit it.
    """

    in_order: bool = False
    deletes: tuple[NewDeletes, ...] = ()

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size in bytes of each file that was written for the commit, by its path."""
        outputs = {output.file.path: output.file.size_bytes for output in self.outputs}
        return outputs | {one.path: one.size_bytes for one in self.deletes}


@dataclass(frozen=True, slots=True)
class Replacement:
    """Changes of one snapshot: groups whose inputs it replaces, and delete files that hide nothing after it.

    checked_until: the snapshot until which it is known which rows of the inputs are deleted by position.
    """

    groups: tuple[StagedGroup, ...]
    deletes: tuple[AppliedDelete, ...]
    checked_until: int
