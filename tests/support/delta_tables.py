"""Delta tables written by hand, file by file: fast, and with every oddity that the protocol allows.

Nothing here uses Delta's code, so these tables and this reader of the log are an independent witness.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from decider.formats.delta.log import DeltaLog
from decider.formats.delta.rewrites import DeltaRewrites
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.stores import ObjectStores
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location

COLUMNS = {"id": "long", "v": "string", "x": "integer"}
DAY_1, DAY_2 = "2026-01-01", "2026-01-02"

ARROW_TYPES = {"long": pa.int64(), "string": pa.string(), "integer": pa.int32()}
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}
"""The protocol of a table without any feature."""


def metadata_of(
    columns: Mapping[str, str | Mapping[str, Any]], partitions: Sequence[str] = (), **changes: Any
) -> dict[str, Any]:
    """Return a table's metadata as its log has it; columns by name are Delta types, or whole fields."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} if isinstance(kind, str) else kind
        for name, kind in columns.items()
    ]
    return {
        "id": "5f6fcd10-5d3c-4be9-a4c3-9d3f3b8f0a11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partitions),
        "configuration": {},
        "createdTime": 0,
    } | changes


@dataclass(slots=True)
class HandTable:
    """A table of the columns id, v and x, and of the partition columns given with their Delta types."""

    path: Path
    partitions: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    version: int = -1
    rows: int = 0

    def __post_init__(self) -> None:
        (self.path / "_delta_log").mkdir(parents=True)
        self.commit([{"protocol": dict(self.protocol)}, {"metaData": self.metadata()}])

    @property
    def location(self) -> str:
        return f"file://{self.path}"

    def metadata(self, **changes: Any) -> dict[str, Any]:
        given = {"configuration": dict(self.configuration), **changes}
        return metadata_of({**COLUMNS, **self.partitions}, list(self.partitions), **given)

    def commit(self, actions: Sequence[Mapping[str, Any]], **info: str) -> int:
        """Write the next commit as a foreign writer would, ending in a removal or an append of its own."""
        self.version = newest(self.path) + 1
        lines = [{"commitInfo": {"timestamp": self.version, "operation": "WRITE", **info}}, *actions]
        file = self.path / "_delta_log" / f"{self.version:020d}.json"
        with file.open("x") as out:
            out.write("\n".join(map(json.dumps, lines)))
        return self.version

    def append(
        self, files: int = 1, *, rows: int = 20, values: Mapping[str, str | None] | None = None, **add: Any
    ) -> int:
        """Commit new files of `rows` rows each; further keywords replace fields of the add actions."""
        return self.commit([{"add": self.new_file(rows, values or {}) | add} for _ in range(files)])

    def new_file(self, rows: int, values: Mapping[str, str | None]) -> dict[str, Any]:
        """Write one data file and return the fields of its add action."""
        ids = range(self.rows, self.rows + rows)
        self.rows += rows
        name = f"part-{uuid.uuid4()}.parquet"
        data = {"id": list(ids), "v": [f"v{i}" for i in ids], "x": [i * 7919 % 1000 for i in ids]}
        schema = pa.schema([(column, ARROW_TYPES[type_name]) for column, type_name in COLUMNS.items()])
        pq.write_table(pa.table(data, schema=schema), self.path / name)
        stats = {"numRecords": rows, "minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}, "nullCount": {"id": 0}}
        return {
            "path": name,
            "partitionValues": {column: values.get(column) for column in self.partitions},
            "size": (self.path / name).stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps(stats),
        }

    def remove(self, path: str) -> int:
        """Commit the removal of a live file, as a DELETE of all its rows does."""
        add = next(add for key, add in live(self.path).items() if key[0] == path)
        kept = {name: add[name] for name in ("path", "partitionValues", "size")}
        return self.commit(
            [{"remove": kept | {"dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True}}]
        )


def table(path: Path, *, days: bool = False, files: int = 12, deletion_vectors: bool = False) -> HandTable:
    """A table of 20 rows per file; with days its files lie in two partitions in turn."""
    made = HandTable(
        path,
        partitions={"dt": "date"} if days else {},
        configuration={"delta.enableDeletionVectors": "true"} if deletion_vectors else {},
        protocol={
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "appendOnly", "invariants"],
        }
        if deletion_vectors
        else PLAIN,
    )
    adds = [made.new_file(20, {"dt": (DAY_1, DAY_2)[i % 2]} if days else {}) for i in range(files)]
    made.commit([{"add": add} for add in adds])
    return made


def newest(path: Path) -> int:
    return max((int(file.stem) for file in (path / "_delta_log").glob("*.json") if file.stem.isdigit()), default=-1)


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    """All actions of one commit."""
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.split("\n") if line]


def removed(path: Path, version: int) -> set[str]:
    return {action["remove"]["path"] for action in actions(path, version) if "remove" in action}


def added(path: Path, version: int) -> list[dict[str, Any]]:
    return [action["add"] for action in actions(path, version) if "add" in action]


def commit_info(path: Path, version: int) -> dict[str, Any]:
    return next(action["commitInfo"] for action in actions(path, version) if "commitInfo" in action)


def live(path: Path) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Replay the JSON commits in plain Python: the live files by path and deletion vector."""
    files: dict[tuple[str, str | None], dict[str, Any]] = {}
    for version in range(newest(path) + 1):
        for action in actions(path, version):
            if body := action.get("remove"):
                files.pop((body["path"], _vector(body)), None)
        for action in actions(path, version):
            if body := action.get("add"):
                files[body["path"], _vector(body)] = body
    return files


def rows(path: Path) -> list[tuple[Any, ...]]:
    """All live rows with their partition values, sorted; for tables without deletion vectors and column mapping."""
    found: list[tuple[Any, ...]] = []
    for (name, vector), add in live(path).items():
        assert vector is None
        data = pq.ParquetFile(path / unquote(name)).read()
        values = tuple(add["partitionValues"].items())
        found += [(row["id"], row["v"], row["x"], values) for row in data.select(list(COLUMNS)).to_pylist()]
    return sorted(found)


def parquet_files(path: Path) -> set[str]:
    """All data files on disk, whether the log knows them or not."""
    return {str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def _vector(body: Mapping[str, Any]) -> str | None:
    vector = body.get("deletionVector")
    if not vector:
        return None
    offset = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return vector["storageType"] + vector["pathOrInlineDv"] + offset


def open_log(
    location: str, *, meter: ReadMeter, stores: ObjectStores | None = None, boundary: Boundary | None = None
) -> DeltaLog:
    """Open the log of the table at a location; raises InvalidInput if there can be none or an option is unknown."""
    canonical = canonical_location(location)
    return DeltaLog(ObjectReader((stores or ObjectStores()).open(canonical), location=canonical, meter=meter), boundary)


def open_own_commits(location: str, *, meter: ReadMeter, stores: ObjectStores | None = None) -> DeltaRewrites:
    """Open the history of the table at a location; raises InvalidInput if there can be none."""
    canonical = canonical_location(location)
    return DeltaRewrites(ObjectReader((stores or ObjectStores()).open(canonical), location=canonical, meter=meter))
