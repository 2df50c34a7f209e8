"""A group of a Delta table in the terms of a proofreader: its columns, its inputs with their deletion vectors, outputs.

What is compared is what the log says of the inputs, not what Spark read of them.

The columns of a Delta table as its files store them: what proofreading compares.

Partition columns are not among them: files need not hold them, and a group has one value of each. What a file lacks is
null, whatever defaults the schema names: those are for rows that are written.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.parquet.file_columns import ParquetField
from actor.formats.parquet.leaf_check import Footing, LeafColumn, require_agreement
from actor.proofread.model import (
    OLDER,
    DeleteForm,
    Deletes,
    Field,
    FoundBy,
    NewestRows,
    Proof,
    ProofFile,
    Reading,
    Rewritten,
)
from actor.proofread.proofreader import Proofreader
from shared.policy.key_rule import KeyRule
from shared.policy.policy import Proofread

_TRACKS_ROWS = "delta.enableRowTracking"
_ROW_COLUMNS = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


@dataclass(frozen=True)
class Proofs:
    """Proofreads the groups of one rewrite; `tag` has its jobs. Safe to use from several threads.

    footers: reads footers of inputs and outputs, which are compared first.
    """

    proofreader: Proofreader
    log: TableLog
    shape: TableShape
    mode: Proofread
    tag: str
    footers: FooterReader

    def check(self, live: LiveGroup, outputs: Sequence[LoggedFile], *, path_taken: str) -> Proof:
        """Compare a group's outputs with its inputs; raises what `Proofreader.check` raises.

        path_taken: how it was written, empty where its row groups were copied.
        """
        deletes = any(logged.file.dv_id is not None for logged in live.inputs)
        self._compare_footers(live, live.inputs, outputs, has_deletes=deletes)
        group = replace(self._group(live, live.inputs, outputs), copied=not path_taken)
        return self.proofreader.check(group, self.mode, fingerprint=path_taken, tag=self.tag)

    def check_removal(
        self, live: LiveGroup, replaced: Sequence[LoggedFile], outputs: Sequence[LoggedFile], rule: KeyRule
    ) -> Proof:
        """Compare outputs with the rows of the replaced files that are the newest of their key among all live files."""
        self._compare_footers(live, replaced, outputs, has_deletes=True)
        group = self._group(live, replaced, outputs)
        names = {column.shown or column.name: column.name for column in group.columns}
        names = {shown.lower(): stored for shown, stored in names.items()}
        keys, sequence = (
            tuple(names[name.lower()] for name in listed if name.lower() in names)  # But the partition's columns.
            for listed in (rule.keys, rule.sequence)
        )
        marker = None if rule.delete_marker is None else names[rule.delete_marker.lower()]
        gone = frozenset(replaced)
        beside = tuple(self._stored(logged) for logged in live.inputs if logged not in gone)
        inputs = tuple(replace(file, deletes=(*file.deletes, OLDER)) for file in group.inputs)
        group = replace(group, inputs=inputs, newest=NewestRows(keys, sequence, marker, beside))
        return self.proofreader.check(group, self.mode, tag=self.tag)

    def check_over(self, live: LiveGroup, outputs: Sequence[LoggedFile], column: str, bound: str) -> Proof:
        """Compare outputs with the rows of a group's inputs whose value of a column is not less than a bound.

        column: its name in files. Without outputs no other column is read.
        """
        self._compare_footers(live, live.inputs, outputs, has_deletes=True)
        group = self._group(live, live.inputs, outputs)
        if not outputs:
            group = replace(group, columns=tuple(one for one in group.columns if one.name == column))
        over = Deletes(DeleteForm.OVER, text=json.dumps([column, bound]))
        inputs = tuple(replace(file, deletes=(*file.deletes, over)) for file in group.inputs)
        return self.proofreader.check(replace(group, inputs=inputs), self.mode, tag=self.tag)

    def check_changes(self, live: LiveGroup, replaced: Sequence[LoggedFile], written: Iterable[LoggedFile]) -> Proof:
        """Compare outputs and what was written for the change data feed, together, with the rows of replaced files."""
        return self.proofreader.check(self._group(live, replaced, written), self.mode, tag=self.tag)

    def check_places(
        self, live: LiveGroup, chosen: Sequence[Sequence[int]], output: LoggedFile, places: Sequence[int]
    ) -> bool:
        """Compare the rows at chosen positions of each input with those at these places of the output.

        Returns False if no reader can; raises Difference.
        """
        group = self._group(live, live.inputs, [output]).at_places(chosen, places)
        return self.proofreader.check(group, Proofread.ALWAYS, tag=self.tag).reading is Reading.ROWS

    def _compare_footers(
        self, live: LiveGroup, inputs: Sequence[LoggedFile], outputs: Sequence[LoggedFile], *, has_deletes: bool
    ) -> None:
        """Raise Difference if footers of outputs say what cannot be of the inputs' rows."""
        if not outputs:
            return
        read, written = self.footers.describe(inputs), self.footers.describe(outputs)
        if any(one.obstacle == EncodeReason.NO_FOOTER for one in read.files):
            return
        columns, found_by = self._columns
        given, made = (
            [dict(stored_fields(columns, schema.fields, found_by)) for schema in described.schemas.values()]
            for described in (read, written)
        )
        rows = sum(one.rows for one in written.files)
        # How types may be stored, `OutputFormat` decides.
        footing = Footing(given, made, rows, lambda _kind, _stored: True, has_deletes=has_deletes)
        where = f"{live.group.partition} of {self.log.location}"
        require_agreement(leaf_columns(columns), footing, where, (logged.file.path for logged in inputs))

    def _group(self, live: LiveGroup, inputs: Iterable[LoggedFile], outputs: Iterable[LoggedFile]) -> Rewritten:
        columns, found_by = self._columns
        return Rewritten(
            table=self.log.location,
            partition=live.group.partition,
            columns=columns,
            found_by=found_by,
            inputs=tuple(map(self._stored, inputs)),
            outputs=tuple(map(self._stored, outputs)),
        )

    @cached_property
    def _columns(self) -> tuple[tuple[Field, ...], FoundBy]:
        metadata = json.loads(self.shape.metadata_json)["metaData"]
        mode = self._configuration.get("delta.columnMapping.mode", "none")
        return proof_columns(metadata["schemaString"], metadata.get("partitionColumns") or (), mode, self._row_columns)

    @property
    def _configuration(self) -> Mapping[str, str]:
        return self.shape.metadata.configuration

    @property
    def _row_columns(self) -> tuple[str, str] | None:
        if self._configuration.get(_TRACKS_ROWS, "false").lower() != "true":
            return None
        row_id, row_version = (self._configuration[name] for name in _ROW_COLUMNS)
        return row_id, row_version

    def _stored(self, logged: LoggedFile) -> ProofFile:
        add: dict[str, Any] = json.loads(logged.json)
        vector = add.get("deletionVector")
        deletes = (Deletes(DeleteForm.DELTA_VECTOR, text=json.dumps(vector)),) if vector else ()
        is_tracked = self._row_columns is not None
        return ProofFile(
            self.log.data_location(logged.key),
            logged.file.size_bytes,
            # Some writers count the visible rows of a file with a vector.
            None if vector else logged.file.rows,
            deletes,
            first_row_id=add.get("baseRowId") if is_tracked else None,
            sequence=add.get("defaultRowCommitVersion") if is_tracked else None,
        )


_KINDS: Mapping[str, str] = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_ID, _PHYSICAL_NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"


def proof_columns(
    schema: str, partition_columns: Collection[str], mapping_mode: str, row_columns: tuple[str, str] | None = None
) -> tuple[tuple[Field, ...], FoundBy]:
    """Return the columns of a `schemaString`, and how files name them.

    mapping_mode: `none`, `name` or `id`. row_columns: names of the materialized row id and row commit version, where
    the table tracks rows.
    """
    fields = [field for field in json.loads(schema)["fields"] if field["name"] not in partition_columns]
    columns = _struct(fields, is_mapped=mapping_mode != "none")
    if row_columns is not None:
        columns += (Field(row_columns[0], "row_id"), Field(row_columns[1], "row_version"))
    return columns, FoundBy.ID if mapping_mode == "id" else FoundBy.NAME


def _struct(fields: Collection[Mapping[str, Any]], *, is_mapped: bool) -> tuple[Field, ...]:
    return tuple(_field(field, is_mapped=is_mapped) for field in fields)


def _field(field: Mapping[str, Any], *, is_mapped: bool) -> Field:
    metadata = field.get("metadata") or {}
    if not is_mapped:
        return _column(field["name"], field["type"], is_mapped=False)
    physical, number = metadata.get(_PHYSICAL_NAME, field["name"]), metadata.get(_ID)
    return _column(physical, field["type"], is_mapped=True, id=number, shown=field["name"])


def _column(name: str, type_: Any, *, is_mapped: bool, **given: Any) -> Field:
    if isinstance(type_, str):
        return Field(name, "string" if type_.startswith(("char(", "varchar(")) else _KINDS.get(type_, type_), **given)
    match type_["type"]:
        case "struct":
            children, kind = _struct(type_["fields"], is_mapped=is_mapped), "struct"
        case "array":
            children, kind = (_column("element", type_["elementType"], is_mapped=is_mapped),), "list"
        case "map":
            sides = (("key", type_["keyType"]), ("value", type_["valueType"]))
            children, kind = tuple(_column(side, its, is_mapped=is_mapped) for side, its in sides), "map"
        case other:  # A type of the user's, which no reader reads.
            children, kind = (), str(other)
    return Field(name, kind, children=children, **given)


Path = tuple[str, ...]


def leaf_columns(columns: Sequence[Field], above: tuple[Field, ...] = ()) -> Iterator[LeafColumn]:
    """Yield the columns at every level with the paths by which `stored_fields` finds them."""
    for column in columns:
        if not column.kind.startswith("row_"):  # Rows without an id of their own inherit one.
            yield tuple(one.name for one in (*above, column)), column, above
            yield from leaf_columns(column.children, (*above, column))


def stored_fields(
    columns: Sequence[Field], fields: Sequence[ParquetField], found_by: FoundBy, above: Path = ()
) -> Iterator[tuple[Path, ParquetField]]:
    """Yield the fields of one schema of files with the paths of their columns."""
    by_key = {one.id if found_by is FoundBy.ID else one.name: one for one in fields}
    for column in columns:
        field = by_key.get(column.id if found_by is FoundBy.ID else column.name)
        if field is not None:
            yield from _below(column, field, found_by, (*above, column.name))


def _below(column: Field, field: ParquetField, found_by: FoundBy, path: Path) -> Iterator[tuple[Path, ParquetField]]:
    yield path, field
    if column.kind == "struct":
        yield from stored_fields(column.children, field.children, found_by, path)
    elif column.kind == "list" and field.element is not None:
        yield from _below(column.children[0], field.element, found_by, (*path, "element"))
    elif column.kind == "map" and field.entry is not None:
        for side, stored in zip(column.children, field.entry, strict=True):
            yield from _below(side, stored, found_by, (*path, side.name))
