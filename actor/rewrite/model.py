"""The nouns of a rewrite, whatever the format of its table: groups before and after writing, attempts, and failures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from actor.proofread.model import Proof
from shared.layout.planner import FileGroup
from shared.table import DataFile


class PlacedFile(Protocol):
    """An input or an output in the terms of its format."""

    @property
    def file(self) -> DataFile:
        """The file as it is planned with."""


class ResolvedGroup(Protocol):
    """A planned group whose files were live as planned, with what its format knows of them."""

    @property
    def group(self) -> FileGroup:
        """The group of the plan."""

    @property
    def inputs(self) -> Sequence[PlacedFile]:
        """Its files, in the plan's order."""

    @property
    def delete_files(self) -> Sequence[str]:
        """Paths of the files that name deleted rows of its inputs, and are read with them."""


L = TypeVar("L", bound=ResolvedGroup)
F = TypeVar("F", bound=PlacedFile)


@dataclass(frozen=True, slots=True)
class Staged(Generic[L, F]):
    """A group whose output files exist and have the right number of rows; no commit refers to them yet.

    encoded_because: why its row groups were not copied; None: they were. by_column: encoded, but not by Spark.
    proof: what the outputs were compared by with their inputs. late_rows: rows of it that others deleted meanwhile.
    """

    live: L
    outputs: tuple[F, ...]
    rows: int
    encoded_because: str | None = None
    by_column: bool = False
    proof: Proof | None = None
    late_rows: int = 0

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size in bytes of each file that was written for the commit, by its path."""
        return {output.file.path: output.file.size_bytes for output in self.outputs}

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written for the commit."""
        return tuple(self.sizes)


S = TypeVar("S", bound=Staged[Any, Any])


@dataclass(frozen=True, slots=True)
class Attempt(Generic[S]):
    """One attempt to commit: the groups that are live in the newest version, and what the format opened it with.

    made_good: groups with rows to hide, as they are committed all the same, by their group in the plan.
    set_aside: why groups that were offered are not among them, by their group in the plan, as far as the format says.
    """

    groups: tuple[S, ...]
    base: Any = None
    made_good: Mapping[FileGroup, S] = field(default_factory=dict)
    set_aside: Mapping[FileGroup, str] = field(default_factory=dict)

    @property
    def committed(self) -> tuple[S, ...]:
        """The groups as the attempt commits them."""
        return tuple(self.made_good.get(one.live.group, one) for one in self.groups)


class Verdict(StrEnum):
    """Meaning of a failed attempt to commit."""

    TAKEN = "taken"  # Others removed an input, or deleted rows of one: what is left may still be committed.
    CHANGED = "changed"  # Metadata or protocol changed: the table's shape decides whether the files still fit.
    BUSY = "busy"  # Refused because others kept committing first: the same commit may be tried again.
    REFUSED = "refused"  # Certainly not made, for another reason: the outputs are deleted.
    UNKNOWN = "unknown"  # It may or may not have been made: search, then leave the outputs.


class Blame(StrEnum):
    """Meaning of a group that could not be written for the other groups."""

    FILES = "files"  # Nothing: its own files cannot be read, or not be rewritten as they are.
    STORE = "store"  # That no further one should be begun, while what is written may land: a full disk, a lost file.
    ALL = "all"  # That what was written may be as wrong.


class NotAsked(Exception):  # noqa: N818
    """A commit ended before anything was asked of the log or the catalog: it was certainly not made.

    Its `__cause__` is what happened.
    """
