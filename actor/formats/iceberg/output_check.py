"""Compares outputs with their inputs before the commit: by their footers, then by a reader of rows or bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from actor.formats.iceberg.column_search import find_columns
from actor.formats.iceberg.encode_limits import is_read_rightly
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.parquet_task import IcebergTasks
from actor.formats.iceberg.proof_request import partition_constants, rewritten
from actor.formats.iceberg.staged import StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.leaf_check import Footing, require_agreement
from actor.proofread.locations import is_parquet
from actor.proofread.model import Proof, Reading, Rewritten
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
        self, live: InputGroup, footers: GroupFooters, outputs: Sequence[DataFile], *, path_taken: PathTaken
    ) -> Proof:
        """Return what the outputs were compared by; raises Difference, having deleted nothing."""
        if not outputs:
            return Proof(Reading.ROWS, 0)  # No row was left, and none was written: counted before.
        if all(is_parquet(file.path) for file in outputs):
            self._check_footers(live, footers, outputs, path_taken)
        group = replace(self._group(live, outputs), copied=path_taken is PathTaken.COPIED)
        return self.proofreader.check(group, self.mode, fingerprint=f"iceberg {path_taken}", tag=self.tag)

    def check_places(self, group: StagedGroup, chosen: Positions, places: Sequence[int]) -> bool:
        """Compare the rows at chosen positions of each input with those at these places of the output.

        Returns False if no reader can; raises Difference.
        """
        asked = self._group(group.live, [output.file for output in group.outputs]).at_places(chosen, places)
        return self.proofreader.check(asked, Proofread.ALWAYS, tag=self.tag).reading is Reading.ROWS

    def _group(self, live: InputGroup, outputs: Sequence[DataFile]) -> Rewritten:
        has_row_ids = self.head.protocol.min_writer >= _FIRST_WITH_ROW_IDS
        lineage = self.table.lineage(live.inputs) if has_row_ids else [(None, None)] * len(live.inputs)
        return rewritten(self.columns, self.head, live, outputs, lineage)

    def _check_footers(
        self, live: InputGroup, footers: GroupFooters, outputs: Sequence[DataFile], path_taken: PathTaken
    ) -> None:
        described = self.tasks.output_columns(live.inputs, outputs)
        unread = [file.path for file, one in zip(outputs, described.files, strict=True) if one.obstacle == "no_footer"]
        if unread:
            raise Corrupt(f"the output {unread[0]} has no footer; nothing was committed")
        if footers.has_other_formats:
            return
        where = f"{live.group.partition} of {self.head.location}"
        has_same_schema = {one.schema for one in described.files} == {one.schema for one in footers.files}
        if path_taken is PathTaken.COPIED and not has_same_schema:
            raise Difference(f"{where}: a copy has another schema than its inputs; nothing was committed")
        constants = partition_constants(footers.table, self.head, live)
        footing = Footing(
            tuple(found.fields for found in footers.found.values()),
            tuple(find_columns(footers.table, schema).fields for schema in described.schemas.values()),
            sum(one.rows or 0 for one in outputs),
            is_read_rightly,
            has_deletes=any(one.deletes for one in live.inputs),
            filled=frozenset(constants),
        )
        columns = ((one.id, one, above) for one, above in footers.table.each() if one.id is not None)
        require_agreement(columns, footing, where, (one.path for one in live.inputs))
