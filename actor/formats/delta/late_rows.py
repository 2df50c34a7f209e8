"""Rows that others deleted while a group was rewritten: the commit hides the same rows of the output by a vector.

A statement that deletes rows of a table with deletion vectors gives an input a new vector, and the group would be lost.
Which rows it deleted, the log of the very version says that the commit is made upon.
"""

import json
from dataclasses import replace

from actor.formats.delta.actions import LoggedFile, decode_statistics, encode, json_array, vector_id
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup, newest_inputs
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.write import WrittenGroup
from actor.rewrite.late_rows import MOST_ROWS, Comparisons, LateRows, RowMap

_MAY_DIFFER = frozenset({"deletionVector", "stats", "dataChange"})
"""Fields of an entry that a new deletion vector changes; statistics become bounds that are not tight."""


class RowHider:
    """Finds and hides the late rows of the groups of one rewrite; `comparisons` are those of these rows."""

    def __init__(self, scala: DeltaScala, log: TableLog, shape: TableShape, proofs: Proofs) -> None:
        self._scala = scala
        self._log = log
        self._columns = shape.metadata.partition_columns
        self._may_hide = _may_hide(shape)
        self.comparisons: Comparisons[WrittenGroup] = Comparisons(
            lambda group, chosen, places: proofs.check_places(group.live, chosen, group.outputs[0], places)
        )

    def find(self, group: WrittenGroup, version: int) -> LateRows[WrittenGroup, LiveGroup] | None:
        """Return the late rows of a group as of a version; None if the group cannot be committed with them hidden."""
        if not self._may_hide or not _is_concatenation(group):
            return None
        newest = newest_inputs(self._log, group.live, self._columns, at_version=version)
        if newest is None or not all(map(_has_only_a_new_vector, group.live.inputs, newest)):
            return None
        hidden = self._log.hidden_rows(self._scala.adds(json_array(newest)), MOST_ROWS)
        if hidden is None or any(
            rows and rows[-1] >= stored for rows, stored in zip(hidden, group.input_rows, strict=True)
        ):
            return None
        row_map = RowMap(group.input_rows)
        places = tuple(row_map.places(hidden))
        if not 0 < len(places) < row_map.output_rows:
            return None  # A file without a visible row is not worth its commit.
        return LateRows(group, replace(group.live, inputs=newest), row_map, hidden, places)

    def hide(self, late: LateRows[WrittenGroup, LiveGroup]) -> WrittenGroup:
        """Write the output's deletion vector; return the group as it is committed, with its newest inputs."""
        (output,) = late.group.outputs
        vector = self._log.write_vector(late.places)
        add = json.loads(output.json)
        stats = {**decode_statistics(add["stats"]), "tightBounds": False}
        text = encode({**add, "stats": encode(stats), "deletionVector": vector})
        file = replace(output.file, dv_id=vector_id(vector), deleted_rows=len(late.places))
        return replace(
            late.group,
            live=late.now,
            outputs=(LoggedFile(file, text),),
            rows=late.group.rows - len(late.places),
        )


def _may_hide(shape: TableShape) -> bool:
    """Return whether the table itself lets rows be hidden by vectors now; nothing is ever switched on for it."""
    on = {name.lower(): value.lower() == "true" for name, value in shape.metadata.configuration.items()}
    features = shape.protocol.reader_features & shape.protocol.writer_features
    return (
        on.get("delta.enabledeletionvectors", False)
        and "deletionVectors" in features
        and not any(is_on for name, is_on in on.items() if name.startswith("delta.enableicebergcompat"))
        and "rowTracking" not in shape.protocol.writer_features
    )


def _is_concatenation(group: WrittenGroup) -> bool:
    """Return whether each row of the inputs has a place in the output that is known."""
    if len(group.outputs) != 1 or not group.input_rows or any(one.file.dv_id is not None for one in group.live.inputs):
        return False
    return sum(group.input_rows) == group.outputs[0].file.rows == group.rows


def _has_only_a_new_vector(then: LoggedFile, now: LoggedFile) -> bool:
    """Return whether nothing else of an entry changed: other changes outdate what was written."""
    before, after = (
        {name: value for name, value in json.loads(one.json).items() if value and name not in _MAY_DIFFER}
        for one in (then, now)
    )
    return before == after
