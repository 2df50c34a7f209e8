"""A table's metadata, decoded once from the JSON of a metadata file into values that the rest can trust."""

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from shared.errors import Corrupt, Unsupported
from shared.formats.iceberg.names import FORMAT, FORMAT_VERSIONS, MAIN
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.table import PartitionColumn, TableMetadata, TableProtocol

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """One snapshot: `operation` is append, replace, overwrite or delete, `summary` the rest of its summary."""

    id: int
    parent: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str
    operation: str
    summary: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or a tag: the snapshot it names, and its own limits of expiry, None where the table's apply."""

    snapshot: int
    is_branch: bool
    min_snapshots: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A file of statistics, of columns or partitions, that belongs to one snapshot."""

    snapshot: int
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MetadataRecords:
    """What metadata list beside snapshots: the log of main, earlier metadata files, and files of statistics.

    `main_log`: when which snapshot became that of main, and `previous`: oldest first. `path`: their own file, empty
    where that is not known.
    """

    main_log: tuple[tuple[int, int], ...] = ()
    previous: tuple[str, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True)
class TableHead:
    """A table as of one metadata file: `snapshots` are those of every branch, `current` is that of main.

    `location` is where its files lie, `updated_ms` when the metadata were written. `sources`: the columns that the
    fields of each spec are computed from, None for those of the current schema no more.
    """

    location: str
    metadata: TableMetadata
    protocol: TableProtocol
    updated_ms: int
    current: int | None
    specs: Mapping[int, Spec]
    snapshots: Mapping[int, SnapshotRecord]
    sources: Mapping[int, tuple[str | None, ...]] = field(default_factory=dict)
    refs: Mapping[str, Ref] = field(default_factory=dict)
    records: MetadataRecords = field(default_factory=MetadataRecords)

    def chain(self) -> Iterator[SnapshotRecord]:
        """Yield the snapshots of main that are retained, the newest first."""
        return self.ancestors(self.current)

    def ancestors(self, snapshot: int | None) -> Iterator[SnapshotRecord]:
        """Yield a snapshot and those before it that are retained, the newest first."""
        seen: set[int] = set()
        while snapshot is not None and snapshot not in seen and (found := self.snapshots.get(snapshot)) is not None:
            seen.add(snapshot)
            yield found
            snapshot = found.parent


def parse_metadata(body: bytes, where: str) -> dict[str, Any]:
    """Return the JSON of a metadata file, compressed or not; raises Corrupt."""
    try:
        found = orjson.loads(gzip.decompress(body) if body.startswith(_GZIP) else body)
    except (ValueError, OSError, EOFError, zlib.error) as problem:
        raise Corrupt(f"{where}: the metadata are no JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise Corrupt(f"{where}: the metadata are no JSON object")
    return found


def decode_head(raw: Mapping[str, Any], where: str, path: str = "") -> TableHead:
    """Decode the JSON of a metadata file; `path` is that of the file.

    Raises Unsupported for an unknown format version, or a snapshot that keeps its manifests without a list, and
    Corrupt where something is missing. `where` names the table in errors.
    """
    version = raw.get("format-version")
    if version not in FORMAT_VERSIONS:
        raise Unsupported(
            f"{where}: the table has format version {version}, which is unknown",
            field="format-version",
            allowed=f"{FORMAT_VERSIONS.start} to {FORMAT_VERSIONS.stop - 1}",
        )
    try:
        return _decode(raw, int(raw["format-version"]), where, path)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise Corrupt(f"{where}: the metadata cannot be read: {type(problem).__name__}: {problem}") from problem


def _decode(raw: Mapping[str, Any], version: int, where: str, path: str) -> TableHead:
    schemas = raw.get("schemas") or [raw["schema"]]
    current_schema = raw.get("current-schema-id", schemas[-1].get("schema-id"))
    newest = next((one for one in schemas if one.get("schema-id") == current_schema), schemas[-1])
    columns = _columns([*schemas, newest])
    names = {column: name for column, (name, _) in _columns([newest]).items()}
    listed = raw.get("partition-specs") or [{"spec-id": 0, "fields": raw.get("partition-spec") or []}]
    specs = {int(spec["spec-id"]): _spec(spec, columns) for spec in listed}
    default = specs[int(raw.get("default-spec-id", max(specs)))]
    current = _snapshot_id(raw.get("current-snapshot-id"))
    return TableHead(
        location=str(raw["location"]).rstrip("/"),
        metadata=TableMetadata(str(raw["table-uuid"]), _partition_columns(default), _texts(raw, "properties"), FORMAT),
        protocol=TableProtocol(version, version),
        updated_ms=int(raw["last-updated-ms"]),
        current=current,
        specs=specs,
        snapshots={int(one["snapshot-id"]): _snapshot(one, where) for one in raw.get("snapshots") or ()},
        sources={
            int(spec["spec-id"]): tuple(names.get(int(one["source-id"])) for one in spec["fields"]) for spec in listed
        },
        refs=_refs(raw, current),
        records=_records(raw, path),
    )


def _records(raw: Mapping[str, Any], path: str) -> MetadataRecords:
    statistics = (*(raw.get("statistics") or ()), *(raw.get("partition-statistics") or ()))
    return MetadataRecords(
        tuple((int(one["timestamp-ms"]), int(one["snapshot-id"])) for one in raw.get("snapshot-log") or ()),
        tuple(str(one["metadata-file"]) for one in raw.get("metadata-log") or ()),
        tuple(
            StatisticsFile(int(one["snapshot-id"]), str(one["statistics-path"]), int(one["file-size-in-bytes"]))
            for one in statistics
        ),
        path,
    )


def _refs(raw: Mapping[str, Any], current: int | None) -> dict[str, Ref]:
    """Return branches and tags; older writers name main's snapshot alone."""
    found = {} if current is None else {MAIN: Ref(current, is_branch=True)}
    for name, one in (raw.get("refs") or {}).items():
        limits = (one.get(key) for key in ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"))
        own = (None if limit is None else int(limit) for limit in limits)
        found[str(name)] = Ref(int(one["snapshot-id"]), one["type"] == "branch", *own)
    return found


def _partition_columns(spec: Spec) -> tuple[PartitionColumn, ...]:
    return tuple(
        PartitionColumn(one.name, one.name, one.type if one.transform == "identity" else one.transform)
        for one in spec.fields
        if not one.is_void
    )


def _columns(schemas: Sequence[Mapping[str, Any]]) -> dict[int, tuple[str, str]]:
    """Return name and type of each column by its id, nested ones included; of several schemas the last one wins."""
    found: dict[int, tuple[str, str]] = {}

    def note(struct: Mapping[str, Any], prefix: str) -> None:
        for one in struct.get("fields") or ():
            name = f"{prefix}{one['name']}"
            if isinstance(one["type"], str):
                found[int(one["id"])] = (name, one["type"])
            else:
                note(one["type"], f"{name}.")

    for schema in schemas:
        note(schema, "")
    return found


def _spec(spec: Mapping[str, Any], columns: Mapping[int, tuple[str, str]]) -> Spec:
    fields = tuple(
        SpecField(str(one["name"]), str(one["transform"]), columns.get(int(one["source-id"]), ("", "unknown"))[1])
        for one in spec["fields"]
    )
    return Spec(int(spec["spec-id"]), fields)


def _snapshot(one: Mapping[str, Any], where: str) -> SnapshotRecord:
    if not one.get("manifest-list"):
        raise Unsupported(
            f"{where}: snapshot {one['snapshot-id']} has no manifest list, which only writers before 2019 left out",
            field="manifest-list",
        )
    summary = _texts(one, "summary")
    return SnapshotRecord(
        id=int(one["snapshot-id"]),
        parent=_snapshot_id(one.get("parent-snapshot-id")),
        sequence_number=int(one.get("sequence-number") or 0),
        timestamp_ms=int(one["timestamp-ms"]),
        manifest_list=str(one["manifest-list"]),
        operation=summary.pop("operation", "overwrite"),
        summary=summary,
    )


def _snapshot_id(value: Any) -> int | None:
    """Return a snapshot's id, None where there is none: format version 1 spells that as -1, too."""
    return None if value is None or int(value) < 0 else int(value)


def _texts(raw: Mapping[str, Any], name: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in (raw.get(name) or {}).items()}
