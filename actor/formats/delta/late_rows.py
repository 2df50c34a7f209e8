"""Rows that others deleted while a group was rewritten: the commit hides the same rows of the output.

A statement that deletes rows of a table with deletion vectors gives an input a new vector, and the group would be lost.
Where the output holds its inputs one after the other, each late row has one place there. Which rows it is, the log of
the very version says that the commit is made upon; and before anything is hidden, the rows at these places are read
and compared with the deleted ones.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from actor.formats.delta.actions import LoggedFile, decode_statistics, encode, json_array, vector_id
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup, newest_inputs
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.write import WrittenGroup
from shared.layout.planner import FileGroup

MOST_ROWS = 1_000_000
"""Rows that are hidden in an output at most: as text, they travel twice between Python and the JVM, 8 MB each way."""

ROWS_COMPARED = 1_000
"""Late rows of a group that are compared at most; of more, as many are drawn."""

ONCE_FROM_BYTES = 64 << 20
"""Bytes of inputs from which a comparison takes longer than others need to delete again. It is made once, with as many
drawn rows besides, which lie where they should only if all do."""

_MAY_DIFFER = frozenset({"deletionVector", "stats", "dataChange"})
"""Fields of an entry that a new deletion vector changes; statistics become bounds that are not tight."""


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows of a written group that others deleted since; `live` has the inputs as they are now.

    hidden: positions by input; places: where the output holds these rows; both ascending.
    """

    group: WrittenGroup
    live: LiveGroup
    hidden: Sequence[Sequence[int]]
    places: tuple[int, ...]


def places_of(input_rows: Sequence[int], hidden: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield where an output that holds its inputs one after the other has the rows at these positions of each."""
    for start, positions in zip(accumulate(input_rows, initial=0), hidden, strict=False):
        yield from (start + position for position in positions)


class RowHider:
    """Finds, proves and hides the late rows of the groups of one rewrite."""

    def __init__(self, scala: DeltaScala, log: TableLog, shape: TableShape, proofs: Proofs) -> None:
        self._scala = scala
        self._log = log
        self._columns = shape.metadata.partition_columns
        self._may_hide = _may_hide(shape)
        self._proofs = proofs
        self._proven: dict[FileGroup, tuple[int, ...]] = {}

    def find(self, group: WrittenGroup, version: int) -> LateRows | None:
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
        places = tuple(places_of(group.input_rows, hidden))
        if not 0 < len(places) < sum(group.input_rows):
            return None  # A file without a visible row is not worth its commit.
        return LateRows(group, replace(group.live, inputs=newest), hidden, places)

    def is_proven(self, late: LateRows) -> bool:
        """Return whether these rows were compared, or this large group was."""
        proven = self._proven.get(late.group.live.group)
        return proven is not None and (proven == late.places or late.group.live.group.bytes >= ONCE_FROM_BYTES)

    def prove(self, late: LateRows) -> None:
        """Compare late rows with those at their places in the output; what no reader reads is not proven.

        Raises Difference if the output holds other rows there.
        """
        drawn = random.Random(late.group.outputs[0].file.path)  # noqa: S311 - a sample, the same each time
        share = max(1, ROWS_COMPARED // len(late.hidden))
        samples = [[_drawn(drawn, positions, share) for positions in late.hidden]]
        if late.group.live.group.bytes >= ONCE_FROM_BYTES:
            samples.append([_drawn(drawn, range(rows), min(share, rows // 2)) for rows in late.group.input_rows])
        if all(self._are_same(late.group, chosen) for chosen in samples):
            self._proven[late.group.live.group] = late.places

    def _are_same(self, group: WrittenGroup, chosen: Sequence[Sequence[int]]) -> bool:
        places = list(places_of(group.input_rows, chosen))
        return self._proofs.check_places(group.live, chosen, group.outputs[0], places)

    def hide(self, late: LateRows) -> WrittenGroup:
        """Write the output's deletion vector; return the group as it is committed, with its newest inputs."""
        (output,) = late.group.outputs
        vector = self._log.write_vector(late.places)
        add = json.loads(output.json)
        stats = {**decode_statistics(add["stats"]), "tightBounds": False}
        text = encode({**add, "stats": encode(stats), "deletionVector": vector})
        file = replace(output.file, dv_id=vector_id(vector), deleted_rows=len(late.places))
        return replace(
            late.group,
            live=late.live,
            outputs=(LoggedFile(file, text),),
            rows=late.group.rows - len(late.places),
        )


def _drawn(drawn: random.Random, positions: Sequence[int], at_most: int) -> Sequence[int]:
    return positions if len(positions) <= at_most else sorted(drawn.sample(positions, at_most))


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
