"""Rows that deletion vectors hide of a group's inputs, hidden in its output by a vector as well.

A statement that deletes rows of a table with deletion vectors gives an input a new vector, and the group would be lost.
Which rows it deleted, the log of the very version says that the commit is made upon. In the same way, rows that were
hidden before the read are carried into an output whose row groups are copied: decoding the inputs to leave out a few
rows costs many times as much.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from actor.formats.delta.actions import LoggedFile, encode, json_array, vector_id
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup, newest_inputs
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.written_group import WrittenGroup
from actor.proofread.model import Reading
from actor.rewrite.late_rows import MOST_ROWS, Comparisons, LateRows, Positions, RowMap
from shared.layout.planner import RewriteMode
from shared.typed_json import json_object

_MAY_DIFFER = frozenset({"deletionVector", "stats", "dataChange"})
"""Fields of an entry that a new deletion vector changes; statistics become bounds that are not tight."""

_CARRYING_MODES = frozenset({RewriteMode.MINOR, RewriteMode.MAJOR})
"""Rewrites that were not requested to remove deleted rows from files."""

HiddenRows = LateRows[WrittenGroup, LiveGroup]


class RowHider:
    """Finds and hides the rows of the groups of one rewrite that vectors hide; `comparisons` of them.

    carry_below: share of hidden rows in an output from which they are left out; None: always.
    """

    def __init__(
        self,
        scala: DeltaScala,
        log: TableLog,
        shape: TableShape,
        proofs: Proofs,
        carry_below: Fraction | None = None,
    ) -> None:
        self._scala = scala
        self._log = log
        self._columns = shape.metadata.partition_columns
        self._may_hide = _may_hide(shape)
        self._carry_below = carry_below
        self.proofs = proofs
        self.comparisons: Comparisons[WrittenGroup] = Comparisons(
            lambda group, chosen, places: proofs.check_places(group.live, chosen, group.outputs[0], places)
        )

    def may_carry(self, live: LiveGroup) -> bool:
        """Return whether an output may hold the rows that vectors of the inputs hide: not where they are too many."""
        files = [logged.file for logged in live.inputs]
        hidden, rows = sum(file.deleted_rows for file in files), sum(file.rows or 0 for file in files)
        return self._are_few(hidden, rows) and self._may_hide and live.group.mode in _CARRYING_MODES

    def carried(self, group: WrittenGroup) -> WrittenGroup | None:
        """Return a group whose output holds all rows of its inputs, with what a commit has to hide there.

        None if no reader can compare these rows. Raises Difference if the output holds others at their places.
        """
        hidden = self._hidden(group, group.live.inputs)
        if hidden is None:
            return None
        rows = _of(group, group.live, hidden, hidden)
        is_in_order = not group.by_column and group.proof is not None and group.proof.reading is Reading.BYTES
        if is_in_order:
            self.comparisons.spare(rows)
        elif not self.comparisons.make(rows):
            return None
        return replace(group, rows=group.rows - len(rows.places), carried=hidden)

    def known(self, group: WrittenGroup) -> HiddenRows:
        """Return what the output of a group whose inputs are as they were has to hide."""
        return _of(group, group.live, (), group.carried)

    def find(self, group: WrittenGroup, version: int) -> HiddenRows | None:
        """Return the hidden rows of a group as of a version; None if the group cannot be committed with them.

        All rows of an input that is gone are hidden. They are dead only because of this rewrite, so the output may not
        have to be rewritten for them.
        """
        if not self._may_hide or not _is_concatenation(group):
            return None
        newest = newest_inputs(self._log, group.live, self._columns, at_version=version)
        if newest is None or not all(map(_has_only_a_new_vector, group.live.inputs, newest)):
            return None
        hidden = self._hidden(group, newest)
        if hidden is None:
            return None
        before = group.carried or [()] * len(hidden)
        if any(not set(then) <= set(now) for then, now in zip(before, hidden, strict=True)):
            return None  # Rows are visible again, which statistics of the output need not cover.
        late = [sorted(set(now) - set(then)) for then, now in zip(before, hidden, strict=True)]
        left = tuple(logged for logged in newest if logged is not None)
        rows = _of(group, replace(group.live, inputs=left), late, hidden)
        hidden_rows, stored_rows = len(rows.places), rows.row_map.output_rows
        if len(left) < len(newest) and not self._are_few(hidden_rows, stored_rows):
            return None
        return rows if 0 < hidden_rows < stored_rows else None  # A file without a visible row is not worth its commit.

    def _are_few(self, hidden: int, rows: int) -> bool:
        return self._carry_below is not None and 0 < hidden <= MOST_ROWS and hidden < self._carry_below * rows

    def _hidden(self, group: WrittenGroup, inputs: Sequence[LoggedFile | None]) -> Positions | None:
        """Return positions by input, all of one that is gone; None if they are too many, or beyond a file."""
        known = self._log.hidden_rows(
            self._scala.adds(json_array([logged for logged in inputs if logged is not None])), MOST_ROWS
        )
        if known is None:
            return None
        of_next = iter(json.loads(known.text()))
        hidden: Positions = [
            range(rows) if logged is None else next(of_next)
            for logged, rows in zip(inputs, group.input_rows, strict=True)
        ]
        is_beyond = any(rows and rows[-1] >= stored for rows, stored in zip(hidden, group.input_rows, strict=True))
        return None if is_beyond else hidden

    def hide(self, rows: HiddenRows) -> WrittenGroup:
        """Write the output's deletion vector; return the group as it is committed, with its newest inputs."""
        (output,) = rows.group.outputs
        vector = self._log.write_vector(rows.places)
        add = json.loads(output.json)
        stats = {**json_object(add["stats"]), "tightBounds": False}
        text = encode({**add, "stats": encode(stats), "deletionVector": vector})
        file = replace(output.file, dv_id=vector_id(vector), deleted_rows=len(rows.places))
        visible = rows.row_map.output_rows - len(rows.places)
        outputs = (LoggedFile(file, text),)
        return replace(rows.group, live=rows.now, outputs=outputs, rows=visible, late_rows=rows.count)


def _of(group: WrittenGroup, now: LiveGroup, late: Positions, hidden: Positions) -> HiddenRows:
    row_map = RowMap(group.input_rows)
    return LateRows(group, now, row_map, late, tuple(row_map.places(hidden)))


def _may_hide(shape: TableShape) -> bool:
    """Return whether the table itself lets rows be hidden by vectors now; nothing is ever switched on for it."""
    features = shape.protocol.reader_features & shape.protocol.writer_features
    return (
        shape.allows_vectors
        and "deletionVectors" in features
        and not any(is_on for name, is_on in shape.is_on.items() if name.startswith("delta.enableicebergcompat"))
        and "rowTracking" not in shape.protocol.writer_features
    )


def _is_concatenation(group: WrittenGroup) -> bool:
    """Return whether each row of the inputs has a place in the output that is known."""
    had_vectors = any(logged.file.dv_id is not None for logged in group.live.inputs)
    if len(group.outputs) != 1 or not group.input_rows or had_vectors != bool(group.carried):
        return False
    return sum(group.input_rows) == group.outputs[0].file.rows == group.rows + sum(map(len, group.carried))


def _has_only_a_new_vector(then: LoggedFile, now: LoggedFile | None) -> bool:
    """Return whether nothing else of an entry changed, if it is there: other changes outdate what was written."""
    if now is None:
        return True
    before, after = (
        {name: value for name, value in json.loads(one.json).items() if value and name not in _MAY_DIFFER}
        for one in (then, now)
    )
    return before == after
