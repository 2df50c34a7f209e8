"""A Delta table whose schema and files do not agree as engines expect: what writers leave that enforce nothing."""

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import delta_tables as tables


class StoredTable:
    """A table of these fields, each as the log's schema has it; rows are read from the files by pyarrow alone."""

    def __init__(
        self, path: Path, fields: Sequence[Mapping[str, Any]], configuration: Mapping[str, str] | None = None
    ) -> None:
        self.path = path
        self.location = f"file://{path}"
        (path / "_delta_log").mkdir(parents=True)
        columns = {str(field["name"]): field for field in fields}
        metadata = tables.metadata_of(columns, id=str(uuid.uuid4()), configuration=dict(configuration or {}))
        features = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults"]
        features += ["changeDataFeed", "identityColumns", "deletionVectors", "timestampNtz"]
        readers = ["deletionVectors", "timestampNtz"]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": features}
        self._commit([{"protocol": protocol}, {"metaData": metadata}])

    def append(self, rows: pa.Table, **options: Any) -> str:
        """Commit one file with these rows, without statistics but their number; returns its path."""
        name = f"part-{uuid.uuid4()}.parquet"
        pq.write_table(rows, self.path / name, **options)
        return self.add(name, rows.num_rows)

    def add(self, name: str, rows: int, **changes: Any) -> str:
        """Commit a file that is there."""
        size = (self.path / name).stat().st_size
        add = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
        self._commit([{"add": {**add, "stats": json.dumps({"numRecords": rows}), **changes}}])
        return name

    def rows(self) -> list[dict[str, Any]]:
        """All rows as the files store them, by `id`; a column that a file lacks is missing from its rows."""
        return sorted(self.stored(), key=lambda row: row["id"])

    def stored(self) -> list[dict[str, Any]]:
        """The same in the order of the files."""
        files = (pq.ParquetFile(self.path / path) for path, _ in tables.live(self.path))
        return [row for file in files for row in file.read().to_pylist()]

    def _commit(self, actions: Sequence[Mapping[str, Any]]) -> None:
        version = tables.newest(self.path) + 1
        lines = [{"commitInfo": {"timestamp": version, "operation": "WRITE"}}, *actions]
        (self.path / "_delta_log" / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


def field(name: str, type_: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """A field of the log's schema."""
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def garble(file: Path) -> None:
    """Change bytes in the middle of a Parquet file's pages; its size and footer stay.

    Of zstd the heads of frames are changed, too: elsewhere it may not notice.
    """
    data = bytearray(file.read_bytes().replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"))
    middle = (4 + len(data) - 8 - int.from_bytes(data[-8:-4], "little")) // 2
    data[middle : middle + 40] = bytes(one ^ 0xA5 for one in data[middle : middle + 40])
    file.write_bytes(data)
