"""Deletes by value as positions: which of them can be converted, and what is written and compared.

Readers must agree on every key: only columns of the table that still exist, of types whose values have one form and one
equality, found by their ids, stored as all readers take them. Everything else is refused by name, and stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from actor.formats.iceberg import proof_request
from actor.formats.iceberg.copy_choice import PARQUET
from actor.formats.iceberg.delete_keys import read_otherwise, why_unusable
from actor.formats.iceberg.group_footers import ColumnSource, read_group
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import NewDeletes
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.value_groups import LiveValues
from actor.proofread.model import Proof, Rewritten
from shared.errors import RefusedFiles
from shared.formats.iceberg.metadata import TableHead
from shared.refusals import RefusalReason


class ValueDeletes(Protocol):
    """The delete files by value of a table; methods raise what Iceberg raises."""

    def by_value(self, head: TableHead) -> LiveValues | None:
        """Return the deletes of the newest snapshot, which has one, with their data files; None: too many to hold."""

    def converted(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> Sequence[NewDeletes | None]:
        """Write the rows that delete files of one look and place hide in each data file; None: they hide none there."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of one table's deletes by value.

    columns: the table's by these properties; source: reads footers of its files. `prove` compares which rows are
    deleted before and after; it raises Difference, and RefusedFiles where it cannot.
    """

    deletes: ValueDeletes
    columns: Callable[[Mapping[str, str]], TableColumns]
    source: ColumnSource
    prove: Callable[[Rewritten], Proof]

    def unusable(self, found: LiveValues, head: TableHead) -> dict[str, str]:
        """Return why delete files cannot be converted, by their names."""
        columns = {one.id: one for one in self.columns(head.metadata.configuration).columns if one.id is not None}
        return {one.path: why for one in found.deletes if (why := why_unusable(one, columns))}

    def require_clear(self, group: InputGroup, found: LiveValues, head: TableHead) -> None:
        """Raise RefusedFiles for files that are not what their manifest says, or whose keys are not clear.

        And for a group that lacks a data file, of which readers would see rows again.
        """
        if (missing := found.uncovered(group)) is not None:
            raise _refused(head, missing, "is read with one of them, which does not apply to it by the numbers of both")
        columns = self.columns(head.metadata.configuration)
        for one in group.inputs:
            if one.entry.format.lower() != PARQUET or one.entry.is_encrypted:
                raise _refused(head, one.path, "is no Parquet file, or encrypted")
        footers = read_group(self.source, columns, group, head.location)
        ids = {number for one in group.inputs for delete in one.deletes for number in delete.key_ids}
        keys = [one for one in columns.columns if one.id in ids]
        for key, stored in read_otherwise(keys, footers):
            how = " ".join(filter(None, (stored.physical, stored.logical)))
            raise _refused(head, f"the column {key.name}", f"is a {key.kind}, and files store it as {how}")

    def check(self, group: InputGroup, written: Sequence[NewDeletes | None], head: TableHead) -> Proof:
        """Compare the rows that the deletes of a group hide, by the format's rule, with those that new ones name."""
        columns = self.columns(head.metadata.configuration)
        return self.prove(proof_request.converted(columns, head, [*zip(group.inputs, written, strict=True)]))


def _refused(head: TableHead, what: str, why: str) -> RefusedFiles:
    return RefusedFiles(
        f"{head.location}: deletes by value are not converted: {what} {why}; a full rewrite removes them",
        reason=RefusalReason.TYPES,
    )
