"""The rows of both sides of a group, read by DuckDB: equal, or what differs, without a value."""

from collections.abc import Sequence

import duckdb

from actor.proofread.model import CannotRead, DeleteForm, ProofFile, Rewritten
from actor.proofread.older_rows import older_rows_left
from actor.proofread.row_sums import RowQuery, RowSum, column_sums, portions_of, row_sum
from actor.proofread.task import Answer, ReadEnding
from actor.proofread.vectors import ReadBytes

_VECTORS = (DeleteForm.DELTA_VECTOR, DeleteForm.PUFFIN_VECTOR)


def compare_rows(connection: duckdb.DuckDBPyConnection, group: Rewritten, read: ReadBytes) -> Answer:
    """Compare by rows; raises CannotRead, ColumnsUnclear and what DuckDB raises."""
    written = row_sum(connection, portions_of(connection, group, group.outputs, read))
    inputs = portions_of(connection, group, group.inputs, read)
    stored = row_sum(connection, inputs)
    if stored != written:
        return _difference(connection, group, read, stored, written)
    return judge_counts(connection, group, stored.rows)


def judge_counts(connection: duckdb.DuckDBPyConnection, group: Rewritten, rows: int) -> Answer:
    """Compare rows that both sides hold with what the metadata say of each, and find older rows that were left."""
    if group.newest is not None and (left := older_rows_left(connection, group.newest)):
        return Answer(ReadEnding.DIFFERENT, f"{left:,} older rows are left in files that were not replaced", rows)
    expected_of_outputs, expected_of_inputs = _live_rows(group.outputs), _live_rows(group.inputs)
    if expected_of_outputs not in (None, rows):
        text = f"the metadata of the outputs say {expected_of_outputs:,} rows, and they hold {rows:,}"
        return Answer(ReadEnding.DIFFERENT, text, rows, files=tuple(file.path for file in group.outputs))
    if expected_of_inputs not in (None, rows):
        raise CannotRead(f"the metadata of the inputs say {expected_of_inputs:,} live rows, and they hold {rows:,}")
    return Answer(ReadEnding.SAME, rows=rows)


def _live_rows(files: Sequence[ProofFile]) -> int | None:
    """Return the live rows by the metadata, None where they do not say."""
    live = 0
    for file in files:
        deleted = [deletes.rows for deletes in file.deletes if deletes.form in _VECTORS]
        if file.rows is None or None in deleted or len(deleted) != len(file.deletes) or len(deleted) > 1:
            return None
        live += file.rows - sum(number or 0 for number in deleted)
    return live


def _difference(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, read: ReadBytes, stored: RowSum, written: RowSum
) -> Answer:
    """Name columns, files and numbers of rows that differ; the temporary tables hold the inputs' deletes."""
    inputs = portions_of(connection, group, group.inputs, read)
    of_inputs = column_sums(connection, inputs, len(group.columns))
    try:
        _keep_hashes(connection, "stored", inputs)
        outputs = portions_of(connection, group, group.outputs, read)
        _keep_hashes(connection, "written", outputs)
        strange = connection.execute(_STRANGE).fetchall()
        lost = (connection.execute(_LOST).fetchone() or (0,))[0]
    except duckdb.OutOfMemoryException:
        strange, lost = [], 0
    outputs = portions_of(connection, group, group.outputs, read)
    of_outputs = column_sums(connection, outputs, len(group.columns))
    pairs = zip(group.columns, of_inputs, of_outputs, strict=True)
    columns = tuple(column.shown or column.name for column, one, other in pairs if one != other)
    return _described(stored, written, columns, dict(strange), lost)


_STRANGE = "SELECT place, count(*) FROM written ANTI JOIN stored USING (hash) GROUP BY place ORDER BY place"
_LOST = "SELECT count(*) FROM stored ANTI JOIN written USING (hash)"


def _described(stored: RowSum, written: RowSum, columns: tuple[str, ...], strange: dict[str, int], lost: int) -> Answer:
    """Say what differs: numbers, names of columns and of files."""
    parts = []
    if stored.rows != written.rows:
        parts.append(f"the inputs hold {stored.rows:,} rows, the outputs {written.rows:,}")
    if columns:
        parts.append(f"values differ in the columns {', '.join(columns)}")
    parts += [f"{count:,} rows of {place or 'the outputs'} are in no input" for place, count in strange.items()]
    if lost:
        parts.append(f"{lost:,} rows of the inputs are in no output")
    if not strange and not lost and stored.rows == written.rows:
        parts.append("some rows are there more often than in the inputs, others less often")
    return Answer(ReadEnding.DIFFERENT, "; ".join(parts), stored.rows, columns, tuple(filter(None, strange)))


def _keep_hashes(connection: duckdb.DuckDBPyConnection, name: str, portions: Sequence[RowQuery]) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} (place VARCHAR, hash UBIGINT)")
    for portion in portions:
        connection.execute(f"INSERT INTO {name} SELECT {portion.place}, {portion.row_hash} FROM {portion.rows}")
