"""A foreign writer with deltalake: small appends, DELETE, UPDATE, MERGE, overwrites, and its own housekeeping."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from tests.soak.log import restorable_versions
from tests.soak.operations import Action, Operation, View, Where
from tests.soak.tables import ADDED_COLUMNS, TABLES, Partition, TableSpec
from tests.soak.values import ARROW, Row, Value, from_arrow, literal_for_datafusion, to_arrow
from tests.soak.writer import parse_options, write

OPTIMIZE_BYTES = 16_384
"""Small, so that others' OPTIMIZE and ours do not take the same files each time."""


class DeltalakeEngine:
    """Works on the snapshot that `view` has loaded, which others may overtake.

    Tables are named by URI, as events name them.
    """

    def __init__(self, tables: Path) -> None:
        self._folder = tables
        self._open: dict[str, DeltaTable] = {}

    def tables(self) -> Sequence[TableSpec]:
        """Return the tables without features that deltalake cannot write."""
        return [spec for spec in TABLES if spec.deltalake]

    def partitions(self, spec: TableSpec) -> Sequence[Partition]:
        """Return all partitions: what deltalake alone writes is sound."""
        return spec.partitions

    def view(self, spec: TableSpec, action: Action) -> View:
        """Load the newest snapshot, and the ids for actions that name some."""
        table = DeltaTable((self._folder / spec.place).as_uri())
        self._open[spec.name] = table
        columns = [field.name for field in table.schema().fields]
        ids: dict[Partition, list[int]] = {}
        if action in (Action.DELETE, Action.UPDATE, Action.MERGE):
            ids = _ids(spec, table)
        restorable = (
            restorable_versions(self._folder / spec.place, table.version(), time.time())
            if action is Action.RESTORE
            else []
        )
        return View(table.version(), columns, ids, restorable)

    def run(self, spec: TableSpec, operation: Operation) -> int:
        """Carry an operation out; see `Engine`."""
        table = self._open[spec.name]
        properties = CommitProperties(custom_metadata={"soak": operation.nonce})
        where = predicate(spec, operation.where)
        match operation.action:
            case Action.APPEND:
                data = arrow(spec, operation.rows, operation.spelling)
                write_deltalake(table, data, mode="append", schema_mode="merge", commit_properties=properties)
            case Action.OVERWRITE:
                data = arrow(spec, operation.rows)
                write_deltalake(table, data, mode="overwrite", predicate=where, commit_properties=properties)
            case Action.DELETE:
                table.delete(where, commit_properties=properties)
            case Action.UPDATE:
                updates = {name: literal(spec, name, value) for name, value in operation.assign.items()}
                table.update(updates=updates, predicate=where, commit_properties=properties)
            case Action.MERGE:
                self._merge(spec, table, operation, properties)
            case Action.ADD_COLUMN:
                table.alter.add_columns(
                    [Field(operation.column, PrimitiveType("string"))], commit_properties=properties
                )
            case Action.RESTORE:
                table.restore(operation.target, commit_properties=properties)
            case Action.OPTIMIZE:
                filters = [(name, "=", value) for name, value in (operation.where.partition or {}).items()]
                table.optimize.compact(
                    partition_filters=filters if _is_text(filters) else None,
                    target_size=OPTIMIZE_BYTES,
                    commit_properties=properties,
                )
            case Action.VACUUM:
                table.vacuum(dry_run=False, enforce_retention_duration=False, commit_properties=properties)
        return int(table.version())

    def _merge(self, spec: TableSpec, table: DeltaTable, operation: Operation, properties: CommitProperties) -> None:
        named = operation.where.partition or {}
        condition = " and ".join(["t.id = s.id", *(f"t.{name} = {literal(spec, name, named[name])}" for name in named)])
        updating = ", ".join(map(str, operation.where.ids or ()))
        merger = table.merge(
            arrow(spec, operation.rows), condition, source_alias="s", target_alias="t", commit_properties=properties
        )
        merger.when_matched_update_all().when_not_matched_insert_all(f"s.id not in ({updating})").execute()


def literal(spec: TableSpec, column: str, value: Value) -> str:
    """Return a value of a column as SQL."""
    return literal_for_datafusion(spec.kind(column), value)


def predicate(spec: TableSpec, where: Where) -> str:
    """Return a predicate as SQL."""
    return where.text([f"{name} = {literal(spec, name, value)}" for name, value in (where.partition or {}).items()])


def arrow(spec: TableSpec, rows: Sequence[Row], spelling: Mapping[str, Value] | None = None) -> pa.Table:
    """Return rows as Arrow has them; `spelling` replaces the values of partition columns."""
    names = [*spec.columns, *(name for name in ADDED_COLUMNS if rows and name in rows[0])]
    written = [{**row, **(spelling or {})} for row in rows]
    columns = [to_arrow(spec.kind(name), (row.get(name) for row in written)) for name in names]
    return pa.table(columns, schema=pa.schema([(name, ARROW[spec.kind(name)]) for name in names]))


def _ids(spec: TableSpec, table: DeltaTable) -> dict[Partition, list[int]]:
    found = table.to_pyarrow_table(columns=["id", *spec.by])
    keys = zip(*(from_arrow(kind, found.column(name)) for name, kind in spec.by.items()), strict=True)
    ids: dict[Partition, list[int]] = {}
    for number, key in zip(found.column("id").to_pylist(), keys if spec.by else [()] * found.num_rows, strict=True):
        ids.setdefault(tuple(None if value == "" else value for value in key), []).append(number)
    return ids


def _is_text(filters: Sequence[tuple[str, str, Value]]) -> bool:
    return bool(filters) and all(isinstance(value, str) for _, _, value in filters)


def main() -> None:
    options = parse_options()
    write(DeltalakeEngine(options.tables), options)


if __name__ == "__main__":
    main()
