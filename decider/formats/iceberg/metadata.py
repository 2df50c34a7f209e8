"""A table's metadata, decoded once from pyiceberg's models into values that the rest of this package can trust."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.errors import Unsupported
from shared.formats import iceberg
from shared.formats.iceberg import Spec, SpecField
from shared.table import PartitionColumn, TableMetadata, TableProtocol

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table.metadata import TableMetadata as Raw


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
class TableHead:
    """A table as of one metadata file: `snapshots` are those of every branch, `current` is that of main.

    `location` is where its files lie, `updated_ms` when the metadata were written.
    """

    location: str
    metadata: TableMetadata
    protocol: TableProtocol
    updated_ms: int
    current: int | None
    specs: Mapping[int, Spec]
    snapshots: Mapping[int, SnapshotRecord]

    def chain(self) -> Iterator[SnapshotRecord]:
        """Yield the snapshots of main that are retained, the newest first."""
        seen: set[int] = set()
        snapshot = self.current
        while snapshot is not None and snapshot not in seen and (found := self.snapshots.get(snapshot)) is not None:
            seen.add(snapshot)
            yield found
            snapshot = found.parent


def decode_head(raw: "Raw", where: str) -> TableHead:
    """Decode pyiceberg's metadata; raises Unsupported where a snapshot keeps its manifests without a list."""
    specs = {spec.spec_id: _spec(spec, raw) for spec in raw.specs().values()}
    default = specs[raw.default_spec_id]
    columns = tuple(
        PartitionColumn(one.name, one.name, one.type if one.transform == "identity" else one.transform)
        for one in default.fields
        if not one.is_void
    )
    return TableHead(
        location=raw.location.rstrip("/"),
        metadata=TableMetadata(str(raw.table_uuid), columns, dict(raw.properties), iceberg.FORMAT),
        protocol=TableProtocol(raw.format_version, raw.format_version),
        updated_ms=raw.last_updated_ms,
        current=_current(raw),
        specs=specs,
        snapshots={one.snapshot_id: _snapshot(one, where) for one in raw.snapshots},
    )


def _current(raw: "Raw") -> int | None:
    current = raw.current_snapshot_id
    return None if current in (None, -1) else current  # Format version 1 spells none as -1, too.


def _spec(spec: "PartitionSpec", raw: "Raw") -> Spec:
    return Spec(spec.spec_id, tuple(_field(one, raw) for one in spec.fields))


def _field(one: Any, raw: "Raw") -> SpecField:
    return SpecField(one.name, str(one.transform), _result_type(one, raw))


def _result_type(one: Any, raw: "Raw") -> str:
    """Return the type of a field's values; the source of an old spec's field may be in an old schema only."""
    for schema in (raw.schema(), *reversed(raw.schemas)):
        try:
            return str(one.transform.result_type(schema.find_type(one.source_id)))
        except ValueError:
            continue
    return "unknown"


def _snapshot(one: Any, where: str) -> SnapshotRecord:
    if not one.manifest_list:
        raise Unsupported(
            f"{where}: snapshot {one.snapshot_id} has no manifest list, as only writers before 2019 leave it out",
            field="manifest-list",
        )
    summary = one.summary
    return SnapshotRecord(
        id=one.snapshot_id,
        parent=one.parent_snapshot_id,
        sequence_number=one.sequence_number or 0,
        timestamp_ms=one.timestamp_ms,
        manifest_list=one.manifest_list,
        operation=summary.operation.value if summary is not None else "overwrite",
        summary=dict(summary.additional_properties) if summary is not None else {},
    )
