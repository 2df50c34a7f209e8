"""DuckDB with its extensions from their packages: nothing is fetched or installed."""

from importlib import import_module
from pathlib import Path

import duckdb
import pyarrow as pa


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension whose package is installed."""
    folder = Path(next(iter(import_module(f"duckdb_extension_{name}").__path__)))
    connection.execute(f"LOAD '{folder / 'extensions' / f'v{duckdb.__version__}' / f'{name}.duckdb_extension'}'")


def iceberg_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection that reads Iceberg tables."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "iceberg"):
        load_extension(connection, name)
    return connection


def scan(table: Path, where: str = "true", columns: str = "*") -> pa.Table:
    """Return columns of the rows of a Delta table that a condition leaves."""
    with duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1}) as connection:
        load_extension(connection, "delta")
        return connection.execute(f"SELECT {columns} FROM delta_scan('{table}') WHERE {where}").to_arrow_table()
