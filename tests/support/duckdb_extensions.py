"""DuckDB's extensions from their packages: nothing is fetched or installed."""

from importlib import import_module
from pathlib import Path

import duckdb


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension whose package is installed."""
    folder = Path(next(iter(import_module(f"duckdb_extension_{name}").__path__)))
    connection.execute(f"LOAD '{folder / 'extensions' / f'v{duckdb.__version__}' / f'{name}.duckdb_extension'}'")
