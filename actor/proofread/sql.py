"""Text of SQL for DuckDB: names and literals are quoted in one place."""

from collections.abc import Iterable

DEAD = "lakewright_deleted"
"""The table (place, row) of deleted rows."""


def quoted(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def read_parquet(paths: Iterable[str], *, with_positions: bool = False) -> str:
    """Return the call that reads files, which takes nothing from their folders; with the position of each row."""
    listed = ", ".join(map(literal, paths))
    positions = ", filename = true, file_row_number = true" if with_positions else ""
    return f"read_parquet([{listed}], hive_partitioning = false{positions})"


def live_rows(paths: Iterable[str]) -> str:
    """Return the rows of files, with their positions, but those that are noted as deleted."""
    rows = read_parquet(paths, with_positions=True)
    on = "live.filename = dead.place AND live.file_row_number = dead.row"
    return f"(SELECT * FROM {rows} live ANTI JOIN {DEAD} dead ON {on})"
