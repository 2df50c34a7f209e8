"""Delta logs of recorded histories: commits with the times and sizes of a trace, without the data files."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from shared.table import Commit

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": n, "type": "string", "nullable": True, "metadata": {}} for n in ("day", "v")],
    }
)


@dataclass(slots=True)
class AdvisedLog:
    """A log below a folder; commits are written with their times moved by `shift_ms`."""

    path: Path
    shift_ms: int = 0
    version: int = -1

    def __post_init__(self) -> None:
        (self.path / "_delta_log").mkdir(parents=True)
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        self._write(0, "CREATE TABLE", [protocol, _metadata({})])

    def alter(self, properties: Mapping[str, str], at_ms: int) -> int:
        """Replace all properties, as `ALTER TABLE` on a table without any does; return the newest version."""
        self._write(at_ms, "SET TBLPROPERTIES", [_metadata(properties)])
        return self.version

    def write(self, commits: Iterable[Commit]) -> int:
        """Append commits; return the newest version."""
        for commit in commits:
            removed = [
                {
                    "remove": {
                        "path": _path(gone.path, gone.partition or "{}"),
                        "partitionValues": json.loads(gone.partition or "{}"),
                        "size": gone.size_bytes,
                        "deletionTimestamp": commit.timestamp_ms,
                        "extendedFileMetadata": True,
                        "dataChange": True,
                    }
                }
                for gone in commit.removed
            ]
            added = [
                {
                    "add": {
                        "path": _path(file.path, file.partition),
                        "partitionValues": json.loads(file.partition),
                        "size": file.size_bytes,
                        "modificationTime": commit.timestamp_ms,
                        "dataChange": commit.data_change,
                    }
                }
                for file in commit.added
            ]
            self._write(commit.timestamp_ms, commit.operation, [*removed, *added])
        return self.version

    def _write(self, at_ms: int, operation: str, actions: list[dict[str, object]]) -> None:
        self.version += 1
        lines = [{"commitInfo": {"timestamp": self.shift_ms + at_ms, "operation": operation}}, *actions]
        text = "\n".join(json.dumps(line) for line in lines)
        (self.path / "_delta_log" / f"{self.version:020d}.json").write_text(text)


def _metadata(properties: Mapping[str, str]) -> dict[str, object]:
    return {
        "metaData": {
            "id": "8c0b5e0e-5f21-4e7f-9c55-0d9e5ad2a001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": SCHEMA,
            "partitionColumns": ["day"],
            "configuration": dict(properties),
            "createdTime": 0,
        }
    }


def _path(name: str, partition: str) -> str:
    return f"day={quote(json.loads(partition)['day'])}/{name}.parquet"
