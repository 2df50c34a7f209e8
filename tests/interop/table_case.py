"""A case is a table as a value: its columns with their values, its partitions, its features, and how it comes to be.

Every row is a function of its number, so that a writer in another process needs no more than the case's name and the
numbers; and the model of a table is no more than the rows that the writers were asked to write.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.interop.values import plain

KEY = "id"
NOTE = "note"
Row = dict[str, Any]
"""A row of plain values by column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `value` gives the Python value of a row's number in its batch, `sql` its type in Spark's DDL.

    `clause` follows the type in the DDL. A column that is not `written` gets its value from the engine, by the clause.
    """

    name: str
    arrow: pa.DataType
    sql: str
    value: Callable[[int], Any]
    clause: str = ""
    written: bool = True


def cycle(*values: Any) -> Callable[[int], Any]:
    """Give row j the value j, starting again after the last."""
    return lambda j: values[j % len(values)]


@dataclass(frozen=True, slots=True)
class Batch:
    """One append of a whole batch while the table is made."""

    number: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement for Spark while the table is made, `{table}` being its name; it `deletes` rows of these keys."""

    text: str
    deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A table; `creators` name the writers that can make it, `steps` how (empty: create, then all batches)."""

    name: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    creators: tuple[str, ...] = ("spark", "deltalake")
    batches: int = 3
    batch_rows: int = 4
    steps: tuple[Batch | Statement, ...] = ()
    columns_at_start: dict[str, str] = field(default_factory=dict)
    """DDL types of columns that a statement widens later; the empty text for those that it adds."""
    may_be_refused: bool = False
    """We may refuse to rewrite it; of any other table that is a defect."""
    folder: str = "table"
    """The name of the table's own folder."""
    cloned: bool = False
    """Made at another place, and cloned from there without its files once it is complete."""

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The key, the note, and the case's own columns."""
        return (
            Column(KEY, pa.int64(), "BIGINT", lambda j: j),
            Column(NOTE, pa.string(), "STRING", lambda j: f"note {j}"),
            *self.columns,
        )

    @property
    def all_steps(self) -> tuple[Batch | Statement, ...]:
        """What is done after the table was created."""
        return self.steps or tuple(Batch(number) for number in range(self.batches))

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        return next(column for column in self.all_columns if column.name == name)

    def batch(self, number: int) -> range:
        """Return the keys of a batch."""
        return range(number * self.batch_rows, (number + 1) * self.batch_rows)

    def python_row(self, key: int) -> Row:
        """Return the row of a key in Python's values: those of its place in its batch, the key and note its own."""
        place = key % self.batch_rows
        return {column.name: column.value(place) for column in self.all_columns} | {
            KEY: key,
            NOTE: f"note {key}",
            **{column.name: column.value(key) for column in self.all_columns if not column.written},
        }

    def row(self, key: int) -> Row:
        """Return the row of a key in plain values."""
        return {name: plain(self.column(name).arrow, value) for name, value in self.python_row(key).items()}

    def arrow(self, keys: range | tuple[int, ...], **changes: Callable[[int], Any]) -> pa.Table:
        """Return the written columns of these rows, some columns by a function of the key."""
        rows = [self.python_row(key) | {name: value(key) for name, value in changes.items()} for key in keys]
        return pa.table(
            {
                column.name: pa.array([row[column.name] for row in rows], column.arrow)
                for column in self.all_columns
                if column.written
            }
        )
