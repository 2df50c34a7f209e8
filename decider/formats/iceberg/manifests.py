"""Manifest lists and manifests, decoded into the few fields that decisions need.

An entry inherits what it leaves out from its manifest: the snapshot that added it, the sequence numbers, the spec.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from shared.errors import Corrupt
from shared.formats.iceberg.partitions import Spec
from shared.table import DeleteKind, PartitionKey

if TYPE_CHECKING:
    from pyiceberg.io import InputFile
    from pyiceberg.manifest import DataFile, ManifestFile


class EntryStatus(IntEnum):
    """What a snapshot did with a file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """One line of a manifest list; `added_by` is the snapshot that wrote the manifest, None where it is not named."""

    path: str
    added_by: int | None
    raw: "ManifestFile"


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


def decode_manifest_list(body: bytes, where: str) -> tuple[Manifest, ...]:
    """Decode a manifest list; raises Corrupt."""
    from pyiceberg.manifest import read_manifest_list  # noqa: PLC0415 - takes seconds

    try:
        return tuple(
            Manifest(one.manifest_path, one.added_snapshot_id, one) for one in read_manifest_list(_memory(where, body))
        )
    except Exception as problem:
        raise Corrupt(f"{where} is no manifest list that can be read: {_first_line(problem)}") from problem


def decode_manifest(body: bytes, manifest: Manifest, specs: Mapping[int, Spec]) -> tuple[Entry, ...]:
    """Decode a manifest, deleted entries included; raises Corrupt."""
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 - takes seconds

    class Memory(PyArrowFileIO):
        """Gives the bytes that were read, whatever the path."""

        def new_input(self, location: str) -> "InputFile":  # type: ignore[override]
            return _memory(location, body)

    try:
        spec = specs[manifest.raw.partition_spec_id]
        return tuple(
            Entry(
                EntryStatus(one.status.value),
                one.snapshot_id,
                one.file_sequence_number or 0,
                one.data_file.file_path,
                spec.key(tuple(one.data_file.partition)),  # type: ignore[arg-type]
                one.data_file.file_size_in_bytes,
                one.data_file.record_count,
                _kind(one.data_file),
            )
            for one in manifest.raw.fetch_manifest_entry(Memory(), discard_deleted=False)
        )
    except Exception as problem:
        raise Corrupt(f"{manifest.path} is no manifest that can be read: {_first_line(problem)}") from problem


def _kind(file: "DataFile") -> DeleteKind | None:
    from pyiceberg.manifest import DataFileContent, FileFormat  # noqa: PLC0415 - takes seconds

    match file.content:
        case DataFileContent.EQUALITY_DELETES:
            return DeleteKind.EQUALITY
        case DataFileContent.POSITION_DELETES:
            return DeleteKind.VECTOR if file.file_format is FileFormat.PUFFIN else DeleteKind.POSITION
        case _:
            return None


def _memory(location: str, body: bytes) -> "InputFile":
    from pyiceberg.io import InputFile  # noqa: PLC0415 - takes seconds

    class MemoryInput(InputFile):
        """Bytes that were read already."""

        def __len__(self) -> int:
            return len(body)

        def exists(self) -> bool:
            return True

        def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: ARG002, FBT001, FBT002
            return io.BytesIO(body)

    return MemoryInput(location)


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".split("\n", 1)[0][:300]
