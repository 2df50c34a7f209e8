"""Manifest lists and manifests, decoded into the few fields that decisions need.

An entry inherits what it leaves out from its manifest: the snapshot that added it, and its sequence number.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from shared.errors import Corrupt
from shared.formats.iceberg.avro_records import decoded
from shared.formats.iceberg.partitions import Spec
from shared.layout.upkeep import UpkeepFound
from shared.table import DeleteKind, PartitionKey
from shared.whole_numbers import whole_number

DEFAULT_TARGET_BYTES = 8 << 20
"""Iceberg's default of the size of a manifest."""

TARGET_PROPERTY = "commit.manifest.target-size-bytes"
"""Iceberg's property of the size of a manifest, in bytes."""

_PLACE = ("data_file.file_path", "data_file.file_size_in_bytes")
_LIVE_FILE = ("status", *_PLACE)
_FILE = (*_PLACE, *(f"data_file.{name}" for name in ("content", "file_format", "partition", "record_count")))
_ENTRY = ("status", "snapshot_id", "sequence_number", "file_sequence_number", *_FILE)
_BOUNDS = ("data_file.lower_bounds", "data_file.upper_bounds")
_DELETES = ("data_file.referenced_data_file", "data_file.content_offset", *_BOUNDS)
_LINE = (
    *("manifest_path", "partition_spec_id", "added_snapshot_id", "sequence_number", "manifest_length", "content"),
    *("added_files_count", "added_data_files_count"),
)
"""Fields that are needed of a line of a manifest list, and above of an entry; `_DELETES` only of delete files,
`_BOUNDS` where a column has to have its bounds."""

_PATH_FIELD = 2147483546
"""Id of the column of paths in files of positions, by the specification."""


class EntryStatus(IntEnum):
    """Change of a file by a snapshot."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class _Content(IntEnum):
    """Content of a file; format version 1 has data alone."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


Bounds = tuple[bytes | None, bytes | None]

_STATUSES, _CONTENTS = {one.value: one for one in EntryStatus}, {one.value: one for one in _Content}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One line of a manifest list; `added_by` is the snapshot that wrote the manifest, None where it is not named.

    added_files: how many files that snapshot added by it, None where the list does not say.
    """

    path: str
    spec: int
    added_by: int | None
    sequence_number: int
    size_bytes: int = 0
    has_deletes: bool = False
    added_files: int | None = None


def vector_name(path: str, offset: int | None) -> str:
    """Return what a vector at an offset of a file is called, which may hold several."""
    return f"{path}#{offset}"


class Entry(NamedTuple):
    """One file of a manifest: `kind` is None for a data file.

    `snapshot` added the file, or deleted it if the status is DELETED; `file_sequence` is the sequence number of the
    snapshot that added it, `sequence` that by which deletes apply, 0 where there are none. `referenced`: the one data
    file that a delete file names rows of, empty if there may be several; `offset`: where its vector begins. `bounds`:
    the least and the greatest value of the column that was asked for, serialized; None where one is not known.
    """

    status: EntryStatus
    snapshot: int | None
    file_sequence: int
    path: str
    partition: PartitionKey
    size_bytes: int
    rows: int
    kind: DeleteKind | None
    spec: int = 0
    sequence: int = 0
    referenced: str = ""
    offset: int | None = None
    bounds: Bounds = (None, None)

    @property
    def delete_id(self) -> str:
        """Identity of a delete file: several vectors may be in one file."""
        return vector_name(self.path, self.offset) if self.kind is DeleteKind.VECTOR else self.path


def count_manifests(manifests: Iterable[Manifest], configuration: Mapping[str, str]) -> UpkeepFound:
    """Count manifests, with the size that the table's properties want; one spec's of one content can be merged."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for one in manifests:
        groups.setdefault((one.spec, one.has_deletes), []).append(one.size_bytes)
    return count_groups(groups.values(), target_bytes(configuration.get(TARGET_PROPERTY, "")))


def count_groups(groups: Iterable[Iterable[int]], target: int) -> UpkeepFound:
    """Count manifests by their sizes in bytes; manifests of different groups cannot be merged into one."""
    sizes = [tuple(group) for group in groups]
    count = sum(map(len, sizes))
    needed = sum(max(1, -(-sum(one) // max(1, target))) for one in sizes if one)
    return UpkeepFound(count, max(0, count - needed), sum(map(sum, sizes)))


def target_bytes(text: str) -> int:
    """Return the size of a manifest that a property wants, Iceberg's default for what is no number."""
    wanted = whole_number(text)
    return DEFAULT_TARGET_BYTES if wanted is None else wanted


def decode_manifest_list(body: bytes, where: str) -> tuple[Manifest, ...]:
    """Decode a manifest list; raises Corrupt."""
    try:
        return decoded(body, _LINE, _manifest)
    except Exception as problem:
        raise Corrupt(f"{where} is no manifest list that can be read: {_first_line(problem)}") from problem


def decode_manifest(
    body: bytes, manifest: Manifest, specs: Mapping[int, Spec], column: int | None = None
) -> tuple[Entry, ...]:
    """Decode a manifest, deleted entries included, with the bounds of a column by its id; raises Corrupt."""
    try:
        key = specs[manifest.spec].remembered_key()
        if not manifest.has_deletes:
            fields = _ENTRY if column is None else _ENTRY + _BOUNDS
            found = decoded(body, fields, lambda raw: _entry(raw, manifest, key, column))
            if all(one.kind is None for one in found):
                return found
        return decoded(body, _ENTRY + _DELETES, lambda raw: _entry(raw, manifest, key, column))
    except Exception as problem:
        raise Corrupt(f"{manifest.path} is no manifest that can be read: {_first_line(problem)}") from problem


def decode_live_files(body: bytes, where: str) -> tuple[tuple[str, int], ...]:
    """Return path and size in bytes of each file that is live by a manifest, delete files too; raises Corrupt."""
    try:
        return tuple(one for one in decoded(body, _LIVE_FILE, _live_file) if one is not None)
    except Exception as problem:
        raise Corrupt(f"{where} is no manifest that can be read: {_first_line(problem)}") from problem


def _bounds(file: Mapping[str, Any], column: int) -> Bounds:
    return _value(file.get("lower_bounds"), column), _value(file.get("upper_bounds"), column)


def _value(pairs: Iterable[Mapping[str, Any]] | None, column: int) -> bytes | None:
    return next((bytes(one["value"]) for one in pairs or () if one["key"] == column), None)


def _live_file(raw: Mapping[str, Any]) -> tuple[str, int] | None:
    if _STATUSES[raw["status"]] is EntryStatus.DELETED:
        return None
    return str(raw["data_file"]["file_path"]), int(raw["data_file"]["file_size_in_bytes"])


def _manifest(raw: Mapping[str, Any]) -> Manifest:
    return Manifest(
        str(raw["manifest_path"]),
        raw["partition_spec_id"],
        raw.get("added_snapshot_id"),
        raw.get("sequence_number") or 0,
        raw.get("manifest_length") or 0,
        bool(raw.get("content")),
        raw.get("added_files_count", raw.get("added_data_files_count")),
    )


def _entry(
    raw: Mapping[str, Any],
    manifest: Manifest,
    key: Callable[[tuple[Any, ...]], PartitionKey],
    column: int | None,
) -> Entry:
    status, file = _STATUSES[raw["status"]], raw["data_file"]
    snapshot, kind = raw.get("snapshot_id"), _kind(file)
    inherited = manifest.sequence_number if status is EntryStatus.ADDED else 0
    file_sequence, sequence = raw.get("file_sequence_number"), raw.get("sequence_number")
    return Entry(
        status,
        manifest.added_by if snapshot is None else snapshot,
        inherited if file_sequence is None else file_sequence,
        str(file["file_path"]),
        key(tuple(file["partition"].values())),
        file["file_size_in_bytes"],
        file["record_count"],
        kind,
        manifest.spec,
        inherited if sequence is None else sequence,
        _referenced(file) if kind in (DeleteKind.POSITION, DeleteKind.VECTOR) else "",
        file.get("content_offset"),
        (None, None) if column is None else _bounds(file, column),
    )


def _referenced(file: Mapping[str, Any]) -> str:
    """Return the data file whose rows a delete file names: by its field, or by equal bounds of the paths in it."""
    if file.get("referenced_data_file"):
        return str(file["referenced_data_file"])
    low, high = _bounds(file, _PATH_FIELD)
    return low.decode() if low is not None and low == high else ""


def _kind(file: Mapping[str, Any]) -> DeleteKind | None:
    number = file.get("content")
    if not number:
        return None
    if _CONTENTS[number] is _Content.EQUALITY_DELETES:
        return DeleteKind.EQUALITY
    return DeleteKind.VECTOR if str(file["file_format"]).upper() == "PUFFIN" else DeleteKind.POSITION


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".split("\n", 1)[0][:300]
