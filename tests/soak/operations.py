"""What a writer asks of a table: one record that is journaled before it is tried, and that the model replays.

Every operation names a nonce, which its commit carries in the table's own log. So an operation whose answer was lost
is found there, and one that was answered but is not there is a lost commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import Any

from tests.soak.tables import ADDED_COLUMNS, EDGES, Partition, TableSpec
from tests.soak.values import Row, Value


class Action(StrEnum):
    """Kinds of operations."""

    CREATE = "create"
    APPEND = "append"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    OVERWRITE = "overwrite"
    ADD_COLUMN = "add_column"
    RESTORE = "restore"
    OPTIMIZE = "optimize"
    VACUUM = "vacuum"


WEIGHTS = {
    Action.APPEND: 56.0,
    Action.DELETE: 11.0,
    Action.UPDATE: 11.0,
    Action.MERGE: 11.0,
    Action.OVERWRITE: 4.0,
    Action.OPTIMIZE: 3.0,
    Action.VACUUM: 2.0,
    Action.RESTORE: 1.0,
    Action.ADD_COLUMN: 1.0,
}
"""Shares of the operations of a writer."""


@dataclass(frozen=True, slots=True)
class Where:
    """Rows of one partition (None: of the table), by their ids or by `value < below`."""

    partition: Mapping[str, Value] | None = None
    ids: tuple[int, ...] | None = None
    below: str | None = None

    def matches(self, row: Row) -> bool:
        """Whether an operation with this predicate touches the row."""
        if self.partition is not None and any(row[name] != value for name, value in self.partition.items()):
            return False
        if self.ids is not None and row["id"] not in self.ids:
            return False
        return self.below is None or (row["value"] is not None and str(row["value"]) < self.below)

    def text(self, of_partition: Sequence[str]) -> str:
        """Return it as SQL, with the conditions on the partition as an engine spells them."""
        ids = [] if self.ids is None else [f"id in ({', '.join(map(str, self.ids))})"]
        below = [] if self.below is None else [f"value < '{self.below}'"]
        return " and ".join([*of_partition, *ids, *below])


@dataclass(frozen=True, slots=True)
class Operation:
    """One request. `read`: version of the snapshot that it was planned on; `target`: version to restore.

    `rows`: appended, written over the partition of `where`, or merged: those with ids of `where` update what they match
    there and are dropped where they match nothing, the others are inserted.
    `assign`: what UPDATE sets. `spelling`: how the partition's values are written, where null has two spellings.
    """

    nonce: str
    table: str
    action: Action
    read: int
    rows: tuple[Row, ...] = ()
    where: Where = field(default_factory=Where)
    assign: Mapping[str, Value] = field(default_factory=dict)
    column: str = ""
    target: int = -1
    spelling: Mapping[str, Value] = field(default_factory=dict)

    def encode(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @staticmethod
    def decode(raw: Mapping[str, Any]) -> "Operation":
        """Read what `encode` wrote."""
        where = raw["where"]
        ids = None if where["ids"] is None else tuple(where["ids"])
        return Operation(
            **{
                **raw,
                "action": Action(raw["action"]),
                "rows": tuple(raw["rows"]),
                "where": Where(where["partition"], ids, where["below"]),
            }
        )


@dataclass(frozen=True, slots=True)
class View:
    """What a writer sees of a table before it chooses: version, columns, and the ids of each partition."""

    version: int
    columns: Sequence[str]
    ids: Mapping[Partition, Sequence[int]]
    restorable: Sequence[int] = ()


class Chooser:
    """Makes up operations from a seed; ids are never used twice, so `first_id` belongs to one writer alone."""

    def __init__(self, rng: Random, name: str, first_id: int, leave_out: Sequence[Action] = ()) -> None:
        self._rng = rng
        self._weights = {action: weight for action, weight in WEIGHTS.items() if action not in leave_out}
        self._name = name
        self._next_id = first_id
        self._made = 0

    def action(self) -> Action:
        """Choose what to do next."""
        return self._rng.choices(list(self._weights), list(self._weights.values()))[0]

    def table(self, among: Sequence[TableSpec]) -> TableSpec:
        """Choose where."""
        return self._rng.choice(among)

    def choose(self, spec: TableSpec, action: Action, view: View, writable: Sequence[Partition]) -> Operation | None:
        """Make up one operation on partitions that this writer may write; None if the table has nothing to do it to."""
        partition = self._rng.choice(writable)
        values = spec.values(partition)
        # Null has two spellings, and a predicate of one engine need not find both.
        is_named = bool(spec.by) and None not in values.values()
        self._made += 1
        request = Operation(f"{self._name}-{self._made}", spec.name, action, view.version)
        chosen: Operation | None = request
        match action:
            case Action.APPEND:
                spelling = dict(zip(spec.by, partition, strict=True))
                chosen = replace(request, rows=self._some_rows(spec, partition, view), spelling=spelling)
            case Action.DELETE | Action.UPDATE | Action.MERGE:
                chosen = self._change(request, spec, view, writable)
            case Action.OVERWRITE:
                rows = self._some_rows(spec, partition, view)
                chosen = replace(request, rows=rows, where=Where(values)) if is_named else None
            case Action.ADD_COLUMN:
                left = [column for column in ADDED_COLUMNS if column not in view.columns]
                chosen = replace(request, column=left[0]) if left else None
            case Action.RESTORE:
                chosen = replace(request, target=self._rng.choice(view.restorable)) if view.restorable else None
            case Action.OPTIMIZE:
                chosen = replace(request, where=Where(values)) if is_named or not spec.by else None
        return chosen

    def _change(
        self, request: Operation, spec: TableSpec, view: View, writable: Sequence[Partition]
    ) -> Operation | None:
        filled = [partition for partition in writable if len(view.ids.get(_null(partition), ())) >= 10]
        if not filled:
            return None
        partition = self._rng.choice(filled)
        ids = sorted(view.ids[_null(partition)])
        values = spec.values(partition)
        # A partition of null values is addressed by ids alone: see `choose`.
        named = None if None in values.values() or not spec.by else values
        chosen = tuple(self._rng.sample(ids, min(len(ids), self._rng.randrange(1, 8))))
        if request.action is Action.MERGE:
            merged = self._rows(spec, partition, view, 2 * len(chosen))
            rows = tuple({**row, "id": key} for row, key in zip(merged, chosen, strict=False))
            return replace(request, rows=(*rows, *merged[len(chosen) :]), where=Where(named, chosen))
        where = Where(named, chosen)
        if named is not None and self._rng.random() < 0.2:
            where = Where(named, below=f"{self._rng.randrange(48):02x}")
        if request.action is Action.DELETE:
            return replace(request, where=where)
        assign: Row = {"value": self._text()}
        if spec.by and self._rng.random() < 0.2:
            target = self._rng.choice([one for one in writable if None not in spec.values(one).values()] or [partition])
            assign |= spec.values(target)
        return replace(request, where=where, assign=assign)

    def _some_rows(self, spec: TableSpec, partition: Partition, view: View) -> tuple[Row, ...]:
        return tuple(self._rows(spec, partition, view, self._rng.randrange(5, 30)))

    def _rows(self, spec: TableSpec, partition: Partition, view: View, number: int) -> list[Row]:
        return [self._row(spec, partition, view) for _ in range(number)]

    def _row(self, spec: TableSpec, partition: Partition, view: View) -> Row:
        self._next_id += 1
        row: Row = {"id": self._next_id, "value": self._text(), "at": self._rng.choice(EDGES), **spec.values(partition)}
        return row | {column: self._rng.choice([None, "", "x y"]) for column in view.columns if column in ADDED_COLUMNS}

    def _text(self) -> str:
        return self._rng.randbytes(12).hex()


def _null(partition: Partition) -> Partition:
    return tuple(None if value == "" else value for value in partition)
