"""A group of a Delta table in the terms of a proofreader: its columns, its inputs with their deletion vectors, outputs.

What is compared is what the log says of the inputs, not what Spark read of them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.leaf_columns import leaf_columns, stored_fields
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.proof_columns import proof_columns
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.parquet.leaf_check import Footing, require_agreement
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
