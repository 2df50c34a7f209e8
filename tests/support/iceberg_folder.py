"""An Iceberg table without a catalog, written file by file: every size, partition and format version can be had.

Data files are never written, for the decider does not read them. Manifests are written by pyiceberg, of version 2 where
the table has version 3, which readers of version 3 accept.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestampType

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "dt", DateType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "country", StringType()),
)
SPECS: Mapping[str, PartitionSpec] = {
    "none": PartitionSpec(spec_id=0),
    "identity": PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "dt"),
        PartitionField(4, 1001, IdentityTransform(), "country"),
        spec_id=0,
    ),
    "bucket": PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"), spec_id=0),
    "day": PartitionSpec(PartitionField(3, 1000, DayTransform(), "ts_day"), spec_id=0),
}
VALUES: Mapping[str, Sequence[tuple[Any, ...]]] = {
    "none": [()],
    "identity": [(20_000, "de"), (20_000, ""), (None, None), (20_001, "fr")],
    "bucket": [(0,), (3,), (None,)],
    "day": [(20_000,), (20_001,), (None,)],
}
"""Partitions of each spec: files are put into one after the other."""


@dataclass(frozen=True)
class Written:
    """A live file: where it is, in which spec and partition, and who added it; bounds of columns by their ids."""

    path: str
    size: int
    spec: int
    values: tuple[Any, ...]
    content: DataFileContent = DataFileContent.DATA
    rows: int = 1
    snapshot: int = 0
    sequence: int = 0
    referenced: str = ""
    bounds: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)


@dataclass
class _State:
    """What a metadata file says, and the live files of each snapshot."""

    live: dict[int, dict[str, Written]] = field(default_factory=dict)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    current: int | None = None
    sequence: int = 0
    version: int = 0
    files: int = 0
    now_ms: int = 1_700_000_000_000


class IcebergFolder:
    """A table at a path."""

    def __init__(self, path: Path, *, format_version: int = 2, spec: str = "none") -> None:
        self.path = path
        self.format_version = format_version
        self.spec = spec
        self._first_spec = spec
        self.specs = [SPECS[spec]]
        self.io = PyArrowFileIO()
        self.uuid = ""
        self.properties: dict[str, str] = {}
        self._state = _State()

    @property
    def location(self) -> str:
        return self.path.as_uri()

    @property
    def live(self) -> dict[str, Written]:
        """The live files of the current snapshot, oldest first."""
        current = self._state.current
        return {} if current is None else self._state.live[current]

    @property
    def snapshot(self) -> int | None:
        """The current snapshot."""
        return self._state.current

    @property
    def commits(self) -> int:
        """Snapshots that were made."""
        return self._state.sequence

    @property
    def snapshots(self) -> list[int]:
        return [one["snapshot-id"] for one in self._state.snapshots]

    def create(self, uuid: str, properties: Mapping[str, str] | None = None) -> None:
        self.uuid, self.properties = uuid, dict(properties or {})
        self._write()

    def configure(self, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)
        self._tick()
        self._write()

    def evolve(self, spec: str) -> None:
        """Add a spec and make it the default."""
        fields = SPECS[spec].fields
        self.specs.append(PartitionSpec(*fields, spec_id=len(self.specs)))
        self.spec = spec
        self._write()

    def file(self, size: int, values: tuple[Any, ...] | None = None, *, of: int | None = None, **more: Any) -> Written:
        """Return a new file in the next partition of the newest spec, or in this one of the spec `of`."""
        state = self._state
        state.files += 1
        choices = VALUES[self.spec]
        where = choices[state.files % len(choices)] if values is None else values
        spec = len(self.specs) - 1 if of is None else of
        return Written(f"{self.location}/data/f-{state.files}.parquet", size, spec, where, **more)

    def commit(
        self,
        added: Sequence[Written] = (),
        removed: Sequence[str] = (),
        operation: str = "append",
        summary: Mapping[str, str] | None = None,
    ) -> int:
        """Make a snapshot and return its id."""
        state = self._state
        state.sequence += 1
        self._tick()
        snapshot = int(self.uuid[-6:], 16) * 1_000 + state.sequence
        sequence = state.sequence if self.format_version > 1 else 0
        new = [replace(one, snapshot=snapshot, sequence=sequence) for one in added]
        gone = [self.live[path] for path in removed]
        kept = {path: one for path, one in self.live.items() if path not in removed}
        manifests = self._manifests(snapshot, sequence, new, gone, list(kept.values()))
        listing = f"{self.location}/metadata/snap-{snapshot}.avro"
        with write_manifest_list(
            self._manifest_version, self.io.new_output(listing), snapshot, state.current, sequence, "deflate"
        ) as out:
            out.add_manifests(manifests)
        state.live[snapshot] = kept | {one.path: one for one in new}
        state.snapshots.append(
            {
                "snapshot-id": snapshot,
                **({"parent-snapshot-id": state.current} if state.current else {}),
                **({"sequence-number": sequence} if self.format_version > 1 else {}),
                "timestamp-ms": state.now_ms,
                "manifest-list": listing,
                "summary": {"operation": operation, **self._totals(state.live[snapshot]), **(summary or {})},
                "schema-id": 0,
            }
        )
        state.current = snapshot
        self._write()
        return snapshot

    def later(self, ms: int) -> None:
        """Let time pass before the next snapshot."""
        self._state.now_ms += ms

    def rollback(self, snapshot: int) -> None:
        self._state.current = snapshot
        self._tick()
        self._write()

    def expirable(self, most: int) -> int:
        """Return how many of the oldest snapshots can expire, at most `most`: those before the current one."""
        return min(
            most, next(n for n, one in enumerate(self._state.snapshots) if one["snapshot-id"] == self._state.current)
        )

    def expire(self, oldest: int) -> None:
        del self._state.snapshots[:oldest]
        self._tick()
        self._write()

    def drop(self) -> None:
        shutil.rmtree(self.path)
        self.spec, self.specs = self._first_spec, self.specs[:1]
        self._state = _State()

    @property
    def _manifest_version(self) -> Any:
        return min(self.format_version, 2)

    def _tick(self) -> None:
        self._state.now_ms += 1_000

    def _totals(self, live: Mapping[str, Written]) -> dict[str, str]:
        data = [one for one in live.values() if one.content is DataFileContent.DATA]
        return {
            "total-data-files": str(len(data)),
            "total-files-size": str(sum(one.size for one in live.values())),
            "total-delete-files": str(len(live) - len(data)),
        }

    def _manifests(
        self, snapshot: int, sequence: int, new: list[Written], gone: list[Written], kept: list[Written]
    ) -> list[ManifestFile]:
        """Write one manifest per spec and content with everything, as a writer does that merges manifests."""
        groups: dict[tuple[int, bool], list[tuple[str, Written]]] = {}
        for status, files in (("add", new), ("delete", gone), ("existing", kept)):
            for one in files:
                key = (one.spec, one.content is not DataFileContent.DATA)
                groups.setdefault(key, []).append((status, one))
        return [
            self._manifest(f"{snapshot}-{number}", snapshot, sequence, entries)
            for number, entries in enumerate(groups.values())
        ]

    def _manifest(self, name: str, snapshot: int, sequence: int, entries: list[tuple[str, Written]]) -> ManifestFile:
        spec = self.specs[entries[0][1].spec]
        out = self.io.new_output(f"{self.location}/metadata/m-{name}.avro")
        writer = write_manifest(self._manifest_version, spec, SCHEMA, out, snapshot, "deflate")
        has_deletes = entries[0][1].content is not DataFileContent.DATA
        if has_deletes:
            from pyiceberg.manifest import ManifestContent

            type(writer).content  # noqa: B018 - the property that is replaced
            writer.content = lambda: ManifestContent.DELETES  # type: ignore[method-assign]
        with writer:
            for status, one in entries:
                entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus[{"add": "ADDED", "delete": "DELETED", "existing": "EXISTING"}[status]],
                    snapshot_id=one.snapshot,
                    sequence_number=one.sequence or None,
                    file_sequence_number=one.sequence or None,
                    data_file=_data_file(one),
                )
                getattr(writer, status)(entry)
        made = writer.to_manifest_file()
        made.sequence_number = sequence
        return made

    def _write(self) -> None:
        """Write the next metadata file, then the hint."""
        state = self._state
        state.version += 1
        folder = self.path / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        body: dict[str, Any] = {
            "format-version": self.format_version,
            "table-uuid": self.uuid,
            "location": self.location,
            "last-updated-ms": state.now_ms,
            "last-column-id": 4,
            "schemas": [json.loads(SCHEMA.model_dump_json())],
            "current-schema-id": 0,
            "partition-specs": [json.loads(one.model_dump_json()) for one in self.specs],
            "default-spec-id": len(self.specs) - 1,
            "last-partition-id": 1001,
            "properties": self.properties,
            "current-snapshot-id": -1 if state.current is None else state.current,
            "snapshots": state.snapshots,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
        }
        if self.format_version == 1:
            body |= {"schema": body["schemas"][0], "partition-spec": body["partition-specs"][-1]["fields"]}
        else:
            body["last-sequence-number"] = state.sequence
        if self.format_version == 3:
            body["next-row-id"] = 0
        _put(folder / f"v{state.version}.metadata.json", json.dumps(body))
        _put(folder / "version-hint.text", str(state.version))


def _put(file: Path, content: str) -> None:
    """Write a file that readers see as a whole or not at all."""
    part = file.with_name(f".{file.name}")
    part.write_text(content)
    part.replace(file)


def _data_file(one: Written) -> DataFile:
    # What older writers leave of the one data file that a file of positions is of.
    paths = {2147483546: one.referenced.encode()} if one.referenced else {}
    return DataFile.from_args(
        content=one.content,
        file_path=one.path,
        file_format=FileFormat.PUFFIN if one.path.endswith(".puffin") else FileFormat.PARQUET,
        partition=Record(*one.values),
        record_count=one.rows,
        file_size_in_bytes=one.size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds=paths | {column: low for column, (low, _) in one.bounds.items()},
        upper_bounds=paths | {column: high for column, (_, high) in one.bounds.items()},
        key_metadata=None,
        split_offsets=None,
        equality_ids=[1] if one.content is DataFileContent.EQUALITY_DELETES else None,
        sort_order_id=None,
        spec_id=one.spec,
    )
