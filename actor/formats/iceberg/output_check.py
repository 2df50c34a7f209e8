"""Compares outputs with their inputs before the commit: by their footers, then by a reader of rows or bytes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from actor.formats.iceberg.column_search import find_columns
from actor.formats.iceberg.encode_limits import is_read_rightly
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.iceberg.proof_request import partition_constants, rewritten
from actor.formats.iceberg.staged import IcebergFile, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.file_columns import ParquetField
from actor.formats.parquet.leaf_check import Footing, require_agreement
from actor.proofread.locations import is_parquet
from actor.proofread.model import Deletes, Proof, Reading, Rewritten
from actor.proofread.proofreader import Proofreader
from actor.rewrite.late_rows import Positions
from shared.errors import Corrupt, Difference
from shared.formats.iceberg.metadata import TableHead
from shared.policy.policy import Proofread
from shared.table import DataFile

_FIRST_WITH_ROW_IDS = 3  # Version of the format.


class PathTaken(StrEnum):
    """How an output was made of its inputs."""

    COPIED = "copied"
    BY_COLUMN = "by column"
    ENCODED = "encoded"
    DIVIDED = "divided"
    DIVIDED_BY_COLUMN = "divided by column"


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """Checks outputs of one rewrite; `tag` is the job whose end ends the reading."""

    table: JavaTable
    head: TableHead
    tasks: IcebergTasks
    columns: TableColumns
    proofreader: Proofreader
    mode: Proofread
    tag: str

    def check(
        self,
        live: InputGroup,
        footers: GroupFooters,
        outputs: Sequence[IcebergFile],
        *,
        path_taken: PathTaken,
        over: Deletes | None = None,
    ) -> Proof:
        """Return what the outputs were compared by; raises Difference, and Corrupt, having deleted nothing.

        over: names rows of the inputs that were left out.
        """
        if not outputs:
            return self.check_over(live, over)
        files = [one.file for one in outputs]
        if all(is_parquet(file.path) for file in files):
            self._check_footers(live, footers, outputs, path_taken, has_removal=over is not None)
        group = replace(self._group(live, files, over), copied=path_taken is PathTaken.COPIED)
        return self.proofreader.check(group, self.mode, fingerprint=f"iceberg {path_taken}", tag=self.tag)

    def check_over(self, live: InputGroup, over: Deletes | None) -> Proof:
        """Have all rows of a group's inputs read, and found to be over or deleted; raises Difference if one is not.

        No other column is read than the one of their time, and the keys of deletes by value; one where there are none.
        """
        name = "" if over is None else json.loads(over.text)[0]
        keys = {key for one in live.inputs for delete in one.deletes for key in delete.key_ids}
        group = self._group(live, (), over)
        columns = tuple(one for one in group.columns if one.name == name or one.id in keys) or group.columns[:1]
        return self.proofreader.check(replace(group, columns=columns), self.mode, tag=self.tag)

    def check_places(self, group: StagedGroup, chosen: Positions, places: Sequence[int]) -> bool:
        """Compare the rows at chosen positions of each input with those at these places of the output.

        Returns False if no reader can; raises Difference.
        """
        asked = self._group(group.live, [output.file for output in group.outputs]).at_places(chosen, places)
        return self.proofreader.check(asked, Proofread.ALWAYS, tag=self.tag).reading is Reading.ROWS

    def _group(self, live: InputGroup, outputs: Sequence[DataFile], over: Deletes | None = None) -> Rewritten:
        has_row_ids = self.head.protocol.min_writer >= _FIRST_WITH_ROW_IDS
        lineage = self.table.lineage(live.inputs) if has_row_ids else [(None, None)] * len(live.inputs)
        group = rewritten(self.columns, self.head, live, outputs, lineage)
        if over is None:
            return group
        return replace(group, inputs=tuple(replace(one, deletes=(*one.deletes, over)) for one in group.inputs))

    def _check_footers(
        self,
        live: InputGroup,
        footers: GroupFooters,
        outputs: Sequence[IcebergFile],
        path_taken: PathTaken,
        *,
        has_removal: bool,
    ) -> None:
        files = [one.file for one in outputs]
        described = self.tasks.output_columns(live.inputs, files)
        unread = [file.path for file, one in zip(files, described.files, strict=True) if one.obstacle == "no_footer"]
        if unread:
            raise Corrupt(f"the output {unread[0]} has no footer; nothing was committed")
        where = f"{live.group.partition} of {self.head.location}"
        stored = [find_columns(self.columns, schema).fields for schema in described.schemas.values()]
        if hidden := _hidden_nulls(self.table.null_counts(one.raw for one in outputs), stored):
            names = ", ".join(".".join(self.columns.path(column) or ()) for column in hidden)
            raise Corrupt(
                f"{where}: the metrics of the output claim fewer nulls than its footer has, so that readers would pass "
                f"over rows; nothing was committed: {names}"
            )
        if footers.has_other_formats:
            return
        has_same_schema = {one.schema for one in described.files} == {one.schema for one in footers.files}
        if path_taken is PathTaken.COPIED and not has_same_schema:
            raise Difference(f"{where}: a copy has another schema than its inputs; nothing was committed")
        constants = partition_constants(footers.table, self.head, live)
        footing = Footing(
            tuple(found.fields for found in footers.found.values()),
            tuple(stored),
            sum(one.rows or 0 for one in files),
            is_read_rightly,
            has_deletes=has_removal or any(one.deletes for one in live.inputs),
            filled=frozenset(constants),
        )
        columns = ((one.id, one, above) for one, above in footers.table.each() if one.id is not None)
        require_agreement(columns, footing, where, (one.path for one in live.inputs))


def _hidden_nulls(claimed: Sequence[Mapping[int, int]], stored: Sequence[Mapping[int, ParquetField]]) -> list[int]:
    """Return the columns, by their ids, of which outputs that all count their nulls claim fewer than footers have."""
    counted = set[int].intersection(*map(set, claimed))
    footers = {
        column: sum(leaf.nulls or 0 for fields in stored if column in fields and (leaf := fields[column].leaf))
        for column in counted
    }
    return sorted(column for column in counted if sum(one[column] for one in claimed) < footers[column])
