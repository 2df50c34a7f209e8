"""Readers of a table at one snapshot: Spark, pyiceberg and DuckDB; and the files that its metadata refer to."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tests.iceberg_stress.operations import Row, Rows
from tests.support.duckdb_extensions import iceberg_connection

EQUALITY_UNKNOWN = "PyIceberg does not yet support equality deletes"
"""What pyiceberg answers for a table that has delete files by value."""


def readers(spark: SparkSession) -> Mapping[str, Callable[[Table, int], Rows | None]]:
    """Return each reader by its name: it takes a table and a snapshot, and returns None for what it cannot read."""
    return {
        "spark": lambda table, snapshot: spark_rows(spark, table.name()[-1], snapshot),
        "pyiceberg": pyiceberg_rows,
        "duckdb": _DuckDb().rows,
    }


def spark_rows(spark: SparkSession, name: str, snapshot: int) -> Rows:
    """Return the rows of a snapshot."""
    found = spark.sql(f"SELECT id, g, v FROM lake.db.{name} VERSION AS OF {snapshot}")
    return Counter(Row(*row) for row in found.collect())


def pyiceberg_rows(table: Table, snapshot: int) -> Rows | None:
    """Return the rows of a snapshot, None where it has deletes by value."""
    try:
        found = table.scan(snapshot_id=snapshot, selected_fields=("id", "g", "v")).to_arrow()
    except ValueError as error:
        if EQUALITY_UNKNOWN in str(error):
            return None
        raise
    return Counter(Row(*row) for row in zip(*(found[name].to_pylist() for name in Row._fields), strict=True))


class _DuckDb:
    """DuckDB with its extension for Iceberg, whose package brings it."""

    def __init__(self) -> None:
        self._connection = iceberg_connection()

    def rows(self, table: Table, snapshot: int) -> Rows | None:
        """Return the rows of a snapshot, None for version 3.

        Where one Puffin file holds the deletion vectors of several data files, this release of the extension applies
        the vector of one to another.
        """
        if table.format_version > 2:
            return None
        scan = f"iceberg_scan('{_local(table.metadata_location)}', snapshot_from_id => {snapshot})"
        return Counter(Row(*row) for row in self._connection.execute(f"SELECT id, g, v FROM {scan}").fetchall())


def referenced_files(table: Table) -> set[Path]:
    """Return every manifest list, manifest, data and delete file of every snapshot that the metadata keep."""
    found: set[Path] = set()
    for snapshot in table.metadata.snapshots:
        found.add(_local(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            path = _local(manifest.manifest_path)
            if path not in found:
                found.add(path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                found.update(_local(entry.data_file.file_path) for entry in entries)
    return found


def files_on_disk(table: Table) -> set[Path]:
    """Return the data and delete files in the table's folder, referred to or not."""
    folder: Any = _local(table.location()) / "data"
    return {path for path in folder.rglob("[!.]*") if path.is_file()}


def _local(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
