"""DuckDB as a reader of Delta tables, with the extension that the environment has; nothing is fetched."""

from pathlib import Path

import duckdb
import duckdb_extension_delta
import pyarrow as pa


def scan(table: Path, where: str = "true") -> pa.Table:
    """The rows of a table that a condition leaves."""
    folder = Path(next(iter(duckdb_extension_delta.__path__)))
    with duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1}) as connection:
        connection.execute(f"LOAD '{folder / 'extensions' / f'v{duckdb.__version__}' / 'delta.duckdb_extension'}'")
        return connection.execute(f"SELECT * FROM delta_scan('{table}') WHERE {where}").to_arrow_table()
