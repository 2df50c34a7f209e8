"""The request to the proofreader describes each delete once, so that it grows with files and not with their pairs."""

import pickle

from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.proof_request import rewritten
from actor.formats.iceberg.table_columns import TableColumns
from actor.proofread.model import DeleteForm, Deletes
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.partitions import Spec
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, TableMetadata, TableProtocol

FILES, DELETES = 40, 50
HEAD = TableHead("file:///t", TableMetadata("u"), TableProtocol(2, 2), 100, 1, {0: Spec(0, ())}, {}, {0: ()})


def request_of(deletes: tuple[AppliedDelete, ...]) -> tuple[tuple[Deletes, ...], ...]:
    """Return the deletes of each input of a group of data files to all of which the same ones apply."""
    files = tuple(DataFile(f"f-{number}", 10, WHOLE_TABLE, rows=9) for number in range(FILES))
    inputs = tuple(LiveInput(one.path, 10, 9, 0, deletes, one) for one in files)
    live = InputGroup(FileGroup(WHOLE_TABLE, files, RewriteMode.FULL), inputs)
    asked = rewritten(TableColumns(()), HEAD, live, (), [(None, None)] * FILES)
    return tuple(one.deletes for one in asked.inputs)


def test_a_delete_of_many_data_files_is_described_once() -> None:
    made = tuple(
        AppliedDelete(f"e-{number}", DeleteKind.EQUALITY, 5, is_exact=False, key_ids=(1,)) for number in range(DELETES)
    )
    found = request_of(made)
    assert found == (tuple(Deletes(DeleteForm.EQUALITY, one.path, rows=5, key_ids=(1,)) for one in made),) * FILES
    assert len({id(one) for of_file in found for one in of_file}) == DELETES
    assert len(pickle.dumps(found)) < 10 * len(pickle.dumps(found[0]))
