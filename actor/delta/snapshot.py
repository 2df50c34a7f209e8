"""The live files of one cell at the newest version, read by Delta itself: one Spark job and one string per read.

Delta filters the snapshot's state by the text of the partition values, so that only the cell's files cross into
Python. That filter may let too much through, never too little; `shared.partitions.cell_key` then decides, because
several spellings name one value.
"""

from dataclasses import dataclass

from actor.delta.actions import LoggedFile, decode_adds
from actor.delta.log import TableLog, TableShape
from actor.delta.preflight import check_files, check_table
from shared.partitions import cell_values
from shared.table import CellKey, PartitionColumn


@dataclass(frozen=True, slots=True)
class CellSnapshot:
    """One cell's live files at one version, and the shape of the table they belong to."""

    version: int
    shape: TableShape
    files: tuple[LoggedFile, ...]


def read_cell(log: TableLog, cell: CellKey) -> CellSnapshot:
    """Read a cell at the newest version; raises Unsupported for a table or files that must not be rewritten."""
    snapshot = log.snapshot()
    shape = log.shape(snapshot)
    metadata = shape.metadata
    check_table(log.location, metadata, shape.protocol)
    columns = metadata.partition_columns
    found = decode_adds(log.files(snapshot, cell_condition(columns, cell)), columns)
    files = tuple(logged for logged in found if logged.file.cell == cell)
    check_files(log.location, tuple(logged.file for logged in files))
    return CellSnapshot(int(snapshot.version()), shape, files)


def cell_condition(columns: tuple[PartitionColumn, ...], cell: CellKey) -> str:
    """Return an SQL condition on `add` fields that holds for every file of the cell, and for few others."""
    values = cell_values(cell)
    return " AND ".join(
        _value_condition(column, values[column.physical]) for column in columns if column.physical in values
    )


def _value_condition(column: PartitionColumn, value: str | None) -> str:
    logged = f"partitionValues[{sql_text(column.physical)}]"
    if value is None:
        return f"({logged} IS NULL OR {logged} = '')"
    if column.type in ("timestamp", "timestamp_ntz"):
        # One instant has several spellings. Those that cannot be cast are let through: the key decides.
        spelled = f"try_cast({logged} AS {column.type})"
        return f"coalesce({spelled} = try_cast({sql_text(value)} AS {column.type}), true)"
    return f"{logged} = {sql_text(value)}"


def paths_condition(paths: list[str]) -> str:
    """Return an SQL condition on `add` fields that holds for files of these paths."""
    return f"path IN ({', '.join(map(sql_text, paths))})"


def sql_text(value: str) -> str:
    """Write a string as an SQL literal of Spark's."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
