"""Request to the proofreader about a group: columns, inputs with their deletes, and outputs, as Iceberg has them."""

import json
from collections.abc import Iterable, Mapping, Sequence

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import NewDeletes
from actor.formats.iceberg.table_columns import TableColumns
from actor.proofread.model import DeleteForm, Deletes, FoundBy, ProofFile, Rewritten
from shared.formats.iceberg.metadata import TableHead
from shared.table import DataFile, DeleteKind, PartitionKey

_FORMS = {
    DeleteKind.VECTOR: DeleteForm.PUFFIN_VECTOR,
    DeleteKind.POSITION: DeleteForm.POSITIONS,
    DeleteKind.EQUALITY: DeleteForm.EQUALITY,
}

MergedFile = tuple[LiveInput, Sequence[AppliedDelete], NewDeletes | None]
"""A data file, what deletes rows of it by position, and what was written to do so instead (None: nothing)."""

Lineage = Sequence[tuple[int | None, int | None]]
"""For each input, the id of its first row and the sequence number that its rows inherit; None where there is none."""


def rewritten(
    table: TableColumns, head: TableHead, live: InputGroup, outputs: Sequence[DataFile], lineage: Lineage
) -> Rewritten:
    """Return the question whether outputs hold the rows of a group."""
    constants, known = partition_constants(table, head, live), _described(live.inputs)
    return Rewritten(
        table=head.location,
        partition=live.group.partition,
        columns=table.columns,
        found_by=FoundBy.ID,
        inputs=tuple(_stored(one, known, constants, *ids) for one, ids in zip(live.inputs, lineage, strict=True)),
        outputs=tuple(ProofFile(one.path, one.size_bytes, one.rows, constants=constants) for one in outputs),
    )


def merged(location: str, files: Sequence[MergedFile]) -> Rewritten:
    """Return the question whether what was written deletes the rows of data files that was deleted by other files."""
    return Rewritten(
        table=location,
        partition="",
        columns=(),
        found_by=FoundBy.ID,
        inputs=tuple(ProofFile(one.path, one.size_bytes, None, tuple(map(_deletes, old))) for one, old, _ in files),
        outputs=tuple(
            ProofFile(one.path, one.size_bytes, None, () if new is None else (_new_deletes(new),))
            for one, _, new in files
        ),
    )


def converted(table: TableColumns, head: TableHead, files: Sequence[tuple[LiveInput, NewDeletes | None]]) -> Rewritten:
    """Return the question whether what was written for data files deletes the rows that their deletes by value hide.

    A vector was written for all deletes of its data file; a file without a row that is hidden by value keeps its own.
    """
    ids = {number for one, _ in files for delete in one.deletes for number in delete.key_ids}
    known = _described(one for one, _ in files)

    def before(one: LiveInput, new: NewDeletes | None) -> ProofFile:
        replaced = one.deletes if new is not None else [delete for delete in one.deletes if not delete.is_positional]
        constants = _constants(table, head, one.spec, one.file.partition)
        old = tuple(known[delete.path] for delete in replaced)
        return ProofFile(one.path, one.size_bytes, one.rows, old, constants)

    return Rewritten(
        table=head.location,
        partition="",
        columns=tuple(one for one in table.columns if one.id in ids),
        found_by=FoundBy.ID,
        inputs=tuple(before(one, new) for one, new in files),
        outputs=tuple(
            ProofFile(one.path, one.size_bytes, None, () if new is None else (_new_deletes(new),)) for one, new in files
        ),
    )


def _new_deletes(new: NewDeletes) -> Deletes:
    if new.vector is None:
        return Deletes(DeleteForm.POSITIONS, new.path)
    offset, size = new.vector
    return Deletes(DeleteForm.PUFFIN_VECTOR, new.path, offset=offset, size_bytes=size, rows=new.rows)


def partition_constants(table: TableColumns, head: TableHead, live: InputGroup) -> Mapping[int, str | None]:
    """Return the values of identity partition fields by the ids of their columns, which files may lack."""
    return _constants(table, head, live.inputs[0].spec, live.group.partition)


def _constants(table: TableColumns, head: TableHead, spec: int, partition: PartitionKey) -> Mapping[int, str | None]:
    values = json.loads(partition)
    ids = {".".join((*(up.name for up in above), one.name)): one.id for one, above in table.each()}
    return {
        column: values[field.label]
        for field, source in zip(head.specs[spec].fields, head.sources[spec], strict=True)
        if field.transform == "identity" and source is not None and (column := ids.get(source)) is not None
    }


def _stored(
    one: LiveInput,
    known: Mapping[str, Deletes],
    constants: Mapping[int, str | None],
    first_row_id: int | None,
    sequence: int | None,
) -> ProofFile:
    deletes = tuple(known[delete.path] for delete in one.deletes)
    return ProofFile(one.path, one.size_bytes, one.rows, deletes, constants, first_row_id, sequence)


def _described(files: Iterable[LiveInput]) -> Mapping[str, Deletes]:
    """Return each delete once, by its name: one may apply to each of thousands of data files."""
    deletes = {delete.path: delete for file in files for delete in file.deletes}
    return {path: _deletes(delete) for path, delete in deletes.items()}


def _deletes(one: AppliedDelete) -> Deletes:
    path = one.file_path
    return Deletes(
        _FORMS[one.kind], path, offset=one.offset, size_bytes=one.size_bytes, rows=one.rows, key_ids=one.key_ids
    )
