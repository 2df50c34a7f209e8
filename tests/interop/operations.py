"""What writers do to a table after our rewrite, as values: each says what it does to the plain model of the rows.

The model is a mapping from key to row. It is the only source of what a table must hold.
"""

from dataclasses import dataclass
from typing import Any

from tests.interop.table_case import NOTE, Case, Row
from tests.interop.values import plain

Model = dict[int, Row]
NEW_KEY = 1000
"""Keys from here on are those of rows that an operation adds."""
MARK = " changed"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `name` is how the matrix calls it."""

    name = "operation"

    def apply(self, case: Case, model: Model) -> None:
        """Change the model as the operation changes the table."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Append(Operation):
    """New rows, one for each row of a batch, so that each partition gets one."""

    name = "append"

    def keys(self, case: Case) -> range:
        """Return the keys of the new rows: they repeat the places of a batch."""
        first = -(-NEW_KEY // case.batch_rows) * case.batch_rows
        return range(first, first + case.batch_rows)

    def apply(self, case: Case, model: Model) -> None:
        model.update({key: case.row(key) for key in self.keys(case)})


@dataclass(frozen=True, slots=True)
class Delete(Operation):
    """Every third row goes, by its key."""

    name = "DELETE"

    def keys(self, case: Case) -> tuple[int, ...]:
        """Return the keys to delete."""
        return tuple(key for number in range(case.batches) for key in case.batch(number))[::3]

    def apply(self, case: Case, model: Model) -> None:
        for key in self.keys(case):
            model.pop(key, None)


@dataclass(frozen=True, slots=True)
class Update(Operation):
    """The note of every second row changes."""

    name = "UPDATE"

    def keys(self, case: Case) -> tuple[int, ...]:
        """Return the keys to change."""
        return tuple(key for number in range(case.batches) for key in case.batch(number))[1::2]

    def apply(self, case: Case, model: Model) -> None:
        for key in self.keys(case):
            if key in model:
                model[key] = model[key] | {NOTE: model[key][NOTE] + MARK}


@dataclass(frozen=True, slots=True)
class Merge(Operation):
    """The notes of the last batch change, and a batch of new rows comes in."""

    name = "MERGE"

    def matched(self, case: Case) -> range:
        """Return the keys whose rows are there before."""
        return case.batch(case.batches - 1)

    def inserted(self, case: Case) -> range:
        """Return the keys of new rows."""
        return Append().keys(case)

    def apply(self, case: Case, model: Model) -> None:
        for key in self.matched(case):
            if key in model:
                model[key] = model[key] | {NOTE: f"note {key}{MARK}"}
            else:  # It was deleted while the table was made.
                model[key] = case.row(key) | {NOTE: f"note {key}{MARK}"}
        model.update({key: case.row(key) | {NOTE: f"note {key}{MARK}"} for key in self.inserted(case)})


@dataclass(frozen=True, slots=True)
class Overwrite(Operation):
    """All rows of one partition are replaced by one new row; of an unpartitioned table, all rows."""

    name = "overwrite"

    def key(self, case: Case) -> int:
        """Return the key of the row that stays alone in its partition: that of the first."""
        return Append().keys(case)[0]

    def values(self, case: Case) -> tuple[tuple[str, Any], ...]:
        """Return the partition in Python's values."""
        return tuple((name, case.python_row(self.key(case))[name]) for name in case.partition_by)

    def apply(self, case: Case, model: Model) -> None:
        partition = {name: plain(case.column(name).arrow, value) for name, value in self.values(case)}
        for key in [key for key, row in model.items() if partition.items() <= row.items()]:
            del model[key]
        model[self.key(case)] = case.row(self.key(case))


@dataclass(frozen=True, slots=True)
class AddColumn(Operation):
    """A new column of strings, null in all rows."""

    name = "ADD COLUMN"
    column = "added"

    def apply(self, case: Case, model: Model) -> None:
        for key in model:
            model[key] = model[key] | {self.column: None}


@dataclass(frozen=True, slots=True)
class Restore(Operation):
    """The table goes back to the version before its last step was made, with the rows of then."""

    name = "RESTORE"
    version: int = -1
    rows: tuple[tuple[int, Row], ...] = ()

    def apply(self, case: Case, model: Model) -> None:
        model.clear()
        model.update(dict(self.rows))


@dataclass(frozen=True, slots=True)
class Vacuum(Operation):
    """Every file that the newest version does not name is deleted."""

    name = "VACUUM"

    def apply(self, case: Case, model: Model) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Optimize(Operation):
    """The writer's own compaction."""

    name = "OPTIMIZE"

    def apply(self, case: Case, model: Model) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Checkpoint(Operation):
    """A checkpoint of the log; readers then take the live files from it."""

    name = "checkpoint"

    def apply(self, case: Case, model: Model) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Rewrite(Operation):
    """Our rewrite, once more, between the operations of a chain."""

    name = "our rewrite"

    def apply(self, case: Case, model: Model) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Chain(Operation):
    """Several operations, one after another, on the same table."""

    name = "chain"
    parts: tuple[Operation, ...] = ()

    def apply(self, case: Case, model: Model) -> None:
        for part in self.parts:
            part.apply(case, model)


SINGLE: tuple[Operation, ...] = (
    Append(), Delete(), Update(), Merge(), Overwrite(), AddColumn(), Restore(), Vacuum(), Optimize(), Checkpoint(),
)  # fmt: skip
CHAIN = Chain(parts=(Append(), Rewrite(), Delete(), Rewrite(), Merge(), Update(), Rewrite(), Vacuum(), Overwrite()))
EVERYTHING = frozenset(operation.name for operation in SINGLE)
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in (*SINGLE, CHAIN)}
