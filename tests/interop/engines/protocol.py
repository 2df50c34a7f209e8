"""What the laboratory asks of an engine: to read a table, to filter it, to make one, and to change one.

An engine that cannot do a thing raises whatever it raises: the laboratory records its words and does not judge them by
their type, but by whether the same engine says the same of a table that we have never touched.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.interop.operations import Operation
from tests.interop.table_case import Case
from tests.interop.values import Rows


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison of a column with a value: `op` is one of =, <, >, >= ; `value` is Python's, as a Case gives it.

    `is_impossible` says that no row of the table can satisfy it, so that statistics alone can tell.
    """

    column: str
    op: str
    value: Any
    is_impossible: bool = False

    def __str__(self) -> str:
        return f"{self.column} {self.op} {self.value!r}"


class NotOfferedError(Exception):
    """The engine has no such thing at all, so that nothing was tried; the text says what."""


class Reader(Protocol):
    """An engine that reads."""

    name: str

    def rows(self, location: Path, case: Case) -> Rows:
        """Return all rows of the newest version."""

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        """Return the sorted keys of the rows that satisfy the predicate, which the engine may use to skip files."""

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        """Return how many data files the engine would read for the predicate, by its own account."""


class Writer(Protocol):
    """An engine that writes; `offers` names the operations that the laboratory asks of it."""

    name: str
    offers: frozenset[str]

    def create(self, case: Case, location: Path) -> None:
        """Create the table without rows."""

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        """Append these rows in one commit."""

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        """Carry out an operation."""
