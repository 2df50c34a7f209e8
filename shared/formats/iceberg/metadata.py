"""A table's metadata, decoded once from the JSON of a metadata file into values that the rest can trust."""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from shared.errors import Corrupt, Unsupported
from shared.formats.iceberg.names import (
    COMMIT_KEY,
    CONVERTED_KEY,
    FORMAT,
    FORMAT_VERSIONS,
    GENERATED_BY,
    MAIN,
    PAIMON_SCHEMA,
    REPLACE,
    UNKNOWN_TRANSFORM,
    UNKNOWN_TYPE,
)
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.table import PartitionColumn, TableMetadata, TableProtocol

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

MAX_METADATA_BYTES = 128 * 1024 * 1024
"""Largest metadata file once it is decompressed: a thousand times as many as a table with a long history has."""


_OF_DATA = frozenset({"added-data-files", "deleted-data-files"})
"""Entries of a summary of a snapshot that adds or removes data files."""


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

    @property
    def changes_no_row(self) -> bool:
        """True if readers see the same rows as before."""
        return self.operation == REPLACE or (CONVERTED_KEY in self.summary and _OF_DATA.isdisjoint(self.summary))

    @property
    def is_of_ours(self) -> bool:
        """True if it is ours: one that changes data has copied its mark."""
        return self.changes_no_row and COMMIT_KEY in self.summary


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
    is_of_columns: bool = False


@dataclass(frozen=True, slots=True)
class MetadataRecords:
    """Records of metadata beside snapshots: the log of main, earlier metadata files, and files of statistics.

    `main_log`: when which snapshot became main's, and `previous`: oldest first. `path`: their own file, empty
    where that is not known. `columns`: id and type of each column of the current schema by name; in a struct, with the
    struct's name and a point before its own.
    """

    main_log: tuple[tuple[int, int], ...] = ()
    previous: tuple[str, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    path: str = ""
    columns: Mapping[str, tuple[int, str]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class TableHead:
    """A table as of one metadata file: `snapshots` are every branch's, `current` is main's.

    `location` is where its files lie, `updated_ms` when the metadata were written. `sources`: the columns that the
    fields of each spec are computed from, None for fields that the current schema lacks.
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

    @property
    def unpartitioned(self) -> frozenset[int]:
        """Ids of the specs without partitions, whose deletes by value apply to files of all specs."""
        return frozenset(one.id for one in self.specs.values() if all(part.is_void for part in one.fields))

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
        found = orjson.loads(_decompressed(body, where) if body.startswith(_GZIP) else body)
    except (ValueError, OSError, EOFError, zlib.error) as problem:
        raise Corrupt(f"{where}: the metadata are no JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise Corrupt(f"{where}: the metadata are no JSON object")
    return found


def _decompressed(body: bytes, where: str) -> bytes:
    stream = zlib.decompressobj(_GZIP_WINDOW)
    found = stream.decompress(body, MAX_METADATA_BYTES)
    if stream.unconsumed_tail:
        raise Corrupt(f"{where}: the metadata have more than {MAX_METADATA_BYTES} bytes once they are decompressed")
    if not stream.eof:
        raise EOFError("the compressed data end too early")
    return found


def decode_head(raw: Any, where: str, path: str = "", known: Mapping[int, SnapshotRecord] | None = None) -> TableHead:
    """Decode the JSON of a metadata file; `path` is the file's.

    known: snapshots that were decoded before; what is listed of them may be the id alone.

    Raises Unsupported for an unknown format version, or a snapshot that keeps its manifests without a list, and
    Corrupt where something is missing. `where` names the table in errors.
    """
    if not isinstance(raw, dict):
        raise Corrupt(f"{where}: the metadata are no JSON object")
    version = raw.get("format-version")
    if version not in FORMAT_VERSIONS:
        raise Unsupported(
            f"{where}: the table has format version {version}, which is unknown. Update Lakewright.",
            field="format-version",
            allowed=f"{FORMAT_VERSIONS.start} to {FORMAT_VERSIONS.stop - 1}",
        )
    try:
        return _decode(raw, where, path, known or {})
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise Corrupt(f"{where}: the metadata cannot be read: {type(problem).__name__}: {problem}") from problem


def _decode(raw: Mapping[str, Any], where: str, path: str, known: Mapping[int, SnapshotRecord]) -> TableHead:
    version = int(raw["format-version"])
    schemas = raw.get("schemas") or [raw["schema"]]
    current_schema = raw.get("current-schema-id", schemas[-1].get("schema-id"))
    newest = next((one for one in schemas if one.get("schema-id") == current_schema), schemas[-1])
    columns = _columns([*schemas, newest])
    current_columns = _columns([newest])
    names = {column: name for column, (name, _) in current_columns.items()}
    listed = raw.get("partition-specs") or [{"spec-id": 0, "fields": raw.get("partition-spec") or []}]
    specs = {int(spec["spec-id"]): _spec(spec, columns) for spec in listed}
    default = specs[int(raw.get("default-spec-id", max(specs)))]
    current = _snapshot_id(raw.get("current-snapshot-id"))
    snapshots = {one.id: one for one in (_snapshot(one, where, known) for one in raw.get("snapshots") or ())}
    return TableHead(
        location=str(raw["location"]).rstrip("/"),
        metadata=TableMetadata(
            *(str(raw["table-uuid"]), _partition_columns(default), _texts(raw, "properties"), FORMAT),
            # Schemas and specs never change; a change makes another one the current one.
            schema_digest=f"{current_schema}/{raw.get('default-spec-id')}",
        ),
        protocol=TableProtocol(version, version, writer_features=_features(newest, listed, snapshots.values())),
        updated_ms=int(raw["last-updated-ms"]),
        current=current,
        specs=specs,
        snapshots=snapshots,
        sources={int(spec["spec-id"]): tuple(names.get(_source(one)) for one in spec["fields"]) for spec in listed},
        refs=_refs(raw, current),
        records=_records(raw, path, {name: (column, kind) for column, (name, kind) in current_columns.items()}),
    )


_TYPE = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary"
    r"|variant|unknown|decimal\(.*\)|fixed\[.*\]|geometry(?:\(.*\))?|geography(?:\(.*\))?",
    re.DOTALL,
)
_TRANSFORM = re.compile(r"identity|year|month|day|hour|void|bucket\[\d+\]|truncate\[\d+\]", re.ASCII)
"""The types and transforms of the specification, up to version 3 of the format."""


def _features(
    schema: Mapping[str, Any], specs: Iterable[Mapping[str, Any]], snapshots: Iterable[SnapshotRecord]
) -> frozenset[str]:
    """Return what a rule of refusals has to know beyond the properties.

    These are marks that generators leave in summaries, and transforms and types that the specification does not know.
    """
    marks = (mark for mark in GENERATED_BY for one in snapshots if mark in one.summary)
    transforms = (str(one["transform"]) for spec in specs for one in spec["fields"])
    strange = (f"{UNKNOWN_TRANSFORM}{one}" for one in transforms if _TRANSFORM.fullmatch(one) is None)
    types = (f"{UNKNOWN_TYPE}{one}" for one in _types(schema) if _TYPE.fullmatch(one) is None)
    return frozenset((*marks, *strange, *types))


def _types(kind: Any) -> Iterator[str]:
    """Yield the primitive types of a type, however deep."""
    if not isinstance(kind, Mapping):
        yield str(kind)
        return
    for part in ("element", "key", "value"):
        if part in kind:
            yield from _types(kind[part])
    for one in kind.get("fields") or ():
        yield from _types(one["type"])


def may_be_of_paimon(head: TableHead) -> bool:
    """Return whether a snapshot is numbered as Apache Paimon numbers its own; other writers draw ids at random."""
    return any(one.id == one.sequence_number for one in head.snapshots.values())


def as_paimon(head: TableHead) -> TableHead:
    """Return metadata as a table of Apache Paimon has them, in whose folder `PAIMON_SCHEMA` was found."""
    return replace(
        head, protocol=replace(head.protocol, writer_features=head.protocol.writer_features | {PAIMON_SCHEMA})
    )


def _records(raw: Mapping[str, Any], path: str, columns: Mapping[str, tuple[int, str]]) -> MetadataRecords:
    kinds = ("statistics", True), ("partition-statistics", False)
    statistics = ((one, of_columns) for name, of_columns in kinds for one in raw.get(name) or ())
    return MetadataRecords(
        tuple((int(one["timestamp-ms"]), int(one["snapshot-id"])) for one in raw.get("snapshot-log") or ()),
        tuple(str(one["metadata-file"]) for one in raw.get("metadata-log") or ()),
        tuple(
            StatisticsFile(
                int(one["snapshot-id"]), str(one["statistics-path"]), int(one["file-size-in-bytes"]), of_columns
            )
            for one, of_columns in statistics
        ),
        path,
        columns,
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
        PartitionColumn(one.name, one.label, one.type if one.transform == "identity" else one.transform)
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
        SpecField(str(one["name"]), str(one["transform"]), columns.get(_source(one), ("", "unknown"))[1])
        for one in spec["fields"]
    )
    return Spec(int(spec["spec-id"]), fields)


def _source(field: Mapping[str, Any]) -> int:
    """Return the column that a field of a spec is computed from; of several the first one."""
    return int(field["source-id"] if "source-id" in field else field["source-ids"][0])


def _snapshot(one: Mapping[str, Any], where: str, known: Mapping[int, SnapshotRecord]) -> SnapshotRecord:
    before = known.get(int(one["snapshot-id"]))
    if before is not None and one.get("manifest-list", before.manifest_list) == before.manifest_list:
        return before
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
