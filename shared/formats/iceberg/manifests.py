"""Manifest lists and manifests, decoded into the few fields that decisions need.

An entry inherits what it leaves out from its manifest: the snapshot that added it, and its sequence number. fastavro
decodes them: pyiceberg 0.12 takes nine times as long for ten entries, and cuts doubles to 32 bits.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import fastavro

from shared.errors import Corrupt
from shared.formats.iceberg.partitions import Spec
from shared.layout.manifest_files import DEFAULT_TARGET_BYTES, ManifestFiles
from shared.table import DeleteKind, PartitionKey

TARGET_PROPERTY = "commit.manifest.target-size-bytes"
"""Iceberg's property of the size of a manifest, in bytes."""


_LAST_WITHOUT_ROW_IDS = 2


class EntryStatus(IntEnum):
    """What a snapshot did with a file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class _Content(IntEnum):
    """What a file holds; format version 1 has data alone."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """One line of a manifest list; `added_by` is the snapshot that wrote the manifest, None where it is not named."""

    path: str
    spec: int
    added_by: int | None
    sequence_number: int
    size_bytes: int = 0
    has_deletes: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a manifest: `kind` is None for a data file.

    `snapshot` added the file, or deleted it if the status is DELETED; `file_sequence` is the sequence number of the
    snapshot that added it, 0 where there are none.
    """

    status: EntryStatus
    snapshot: int | None
    file_sequence: int
    path: str
    partition: PartitionKey
    size_bytes: int
    rows: int
    kind: DeleteKind | None


def manifest_files(manifests: Iterable[Manifest], configuration: Mapping[str, str]) -> ManifestFiles:
    """Count manifests, with the size that the table's properties want; those of one spec and content can be merged."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for one in manifests:
        groups.setdefault((one.spec, one.has_deletes), []).append(one.size_bytes)
    wanted = configuration.get(TARGET_PROPERTY, "")
    return ManifestFiles.of(groups.values(), int(wanted) if wanted.isdecimal() else DEFAULT_TARGET_BYTES)


def keeps_rows(format_version: int) -> bool:
    """Return whether Iceberg's rewrite of manifests leaves rows as they are.

    From version 3 on, an entry has the id of its file's first row, which Spark's action of Iceberg 1.11 loses.
    """
    return format_version <= _LAST_WITHOUT_ROW_IDS


def decode_manifest_list(body: bytes, where: str) -> tuple[Manifest, ...]:
    """Decode a manifest list; raises Corrupt."""
    try:
        return tuple(_manifest(raw) for raw in _records(body))
    except Exception as problem:
        raise Corrupt(f"{where} is no manifest list that can be read: {_first_line(problem)}") from problem


def decode_manifest(body: bytes, manifest: Manifest, specs: Mapping[int, Spec]) -> tuple[Entry, ...]:
    """Decode a manifest, deleted entries included; raises Corrupt."""
    try:
        spec = specs[manifest.spec]
        return tuple(_entry(raw, manifest, spec) for raw in _records(body))
    except Exception as problem:
        raise Corrupt(f"{manifest.path} is no manifest that can be read: {_first_line(problem)}") from problem


def decode_live_files(body: bytes, where: str) -> tuple[tuple[str, int], ...]:
    """Return path and size in bytes of each file that is live by a manifest, delete files too; raises Corrupt."""
    try:
        return tuple(
            (str(raw["data_file"]["file_path"]), int(raw["data_file"]["file_size_in_bytes"]))
            for raw in _records(body)
            if EntryStatus(raw["status"]) is not EntryStatus.DELETED
        )
    except Exception as problem:
        raise Corrupt(f"{where} is no manifest that can be read: {_first_line(problem)}") from problem


def _records(body: bytes) -> Any:
    return fastavro.reader(io.BytesIO(body))


def _manifest(raw: Mapping[str, Any]) -> Manifest:
    return Manifest(
        str(raw["manifest_path"]),
        raw["partition_spec_id"],
        raw.get("added_snapshot_id"),
        raw.get("sequence_number") or 0,
        raw.get("manifest_length") or 0,
        bool(raw.get("content")),
    )


def _entry(raw: Mapping[str, Any], manifest: Manifest, spec: Spec) -> Entry:
    status, file = EntryStatus(raw["status"]), raw["data_file"]
    snapshot, sequence = raw.get("snapshot_id"), raw.get("file_sequence_number")
    if sequence is None:
        sequence = manifest.sequence_number if status is EntryStatus.ADDED else 0
    return Entry(
        status,
        manifest.added_by if snapshot is None else snapshot,
        sequence,
        str(file["file_path"]),
        spec.key(tuple(file["partition"].values())),
        file["file_size_in_bytes"],
        file["record_count"],
        _kind(file),
    )


def _kind(file: Mapping[str, Any]) -> DeleteKind | None:
    content = _Content(file.get("content") or 0)
    if content is _Content.DATA:
        return None
    if content is _Content.EQUALITY_DELETES:
        return DeleteKind.EQUALITY
    return DeleteKind.VECTOR if str(file["file_format"]).upper() == "PUFFIN" else DeleteKind.POSITION


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".split("\n", 1)[0][:300]
