"""Manifests that cannot be read are damage, and only live files are needed."""

import io

import fastavro
import pytest

from shared.errors import Corrupt
from shared.formats.iceberg.manifests import (
    TARGET_PROPERTY,
    Manifest,
    decode_live_files,
    decode_manifest,
    decode_manifest_list,
    keeps_rows,
    manifest_files,
)
from shared.formats.iceberg.partitions import Spec
from shared.layout.manifest_files import ManifestFiles
from shared.table import DeleteKind

FILE = {
    "type": "record",
    "name": "file",
    "fields": [
        {"name": "content", "type": ["null", "int"]},
        {"name": "file_path", "type": "string"},
        {"name": "file_format", "type": "string"},
        {"name": "partition", "type": {"type": "record", "name": "partition", "fields": []}},
        {"name": "record_count", "type": "long"},
        {"name": "file_size_in_bytes", "type": "long"},
    ],
}
ENTRY = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "status", "type": "int"},
        {"name": "snapshot_id", "type": ["null", "long"]},
        {"name": "file_sequence_number", "type": ["null", "long"]},
        {"name": "data_file", "type": FILE},
    ],
}


def manifest(*entries: tuple[int, int | None, str, str], sequence: int | None = None) -> bytes:
    """Write entries of status, content, path and format."""
    rows = [
        {
            "status": status,
            "snapshot_id": None,
            "file_sequence_number": sequence,
            "data_file": {
                "content": content,
                "file_path": path,
                "file_format": written,
                "partition": {},
                "record_count": 5,
                "file_size_in_bytes": 7,
            },
        }
        for status, content, path, written in entries
    ]
    out = io.BytesIO()
    fastavro.writer(out, ENTRY, rows)
    return out.getvalue()


def test_removed_files_are_not_live() -> None:
    body = manifest((0, None, "a", "PARQUET"), (1, 0, "b", "PARQUET"), (2, 0, "c", "PARQUET"), (1, 1, "d", "PUFFIN"))
    assert decode_live_files(body, "m") == (("a", 7), ("b", 7), ("d", 7))


def test_entries_inherit_what_they_leave_out_and_tell_kinds_of_deletes() -> None:
    body = manifest((1, None, "a", "PARQUET"), (2, 1, "b", "parquet"), (1, 1, "c", "PUFFIN"), (1, 2, "d", "PARQUET"))
    found = decode_manifest(body, Manifest("m", 0, 3, 9), {0: Spec(0, ())})
    assert [one.kind for one in found] == [None, DeleteKind.POSITION, DeleteKind.VECTOR, DeleteKind.EQUALITY]
    assert [(one.snapshot, one.file_sequence) for one in found] == [(3, 9), (3, 0), (3, 9), (3, 9)]
    body = manifest((0, None, "a", "PARQUET"), sequence=5)
    assert [one.file_sequence for one in decode_manifest(body, Manifest("m", 0, 3, 9), {0: Spec(0, ())})] == [5]


def test_what_is_no_manifest_is_damage() -> None:
    for read in (
        lambda: decode_live_files(b"x", "m"),
        lambda: decode_manifest_list(b"x", "m"),
        lambda: decode_manifest(b"x", Manifest("m", 0, 3, 9), {0: Spec(0, ())}),
        lambda: decode_manifest(manifest(), Manifest("m", 1, 3, 9), {}),
    ):
        with pytest.raises(Corrupt, match="m is no manifest"):
            read()


def test_manifests_of_one_spec_and_content_can_be_merged_up_to_the_size_that_the_table_wants() -> None:
    found = [
        Manifest("a", 0, 1, 1, 60),
        Manifest("b", 0, 2, 2, 60),
        Manifest("c", 0, 3, 3, 10, has_deletes=True),
        Manifest("d", 1, 4, 4, 10),
    ]
    assert manifest_files(found, {}) == ManifestFiles(4, 140, 3)
    assert manifest_files(found, {TARGET_PROPERTY: "100"}) == ManifestFiles(4, 140, 4)
    assert manifest_files(found, {TARGET_PROPERTY: "large"}) == ManifestFiles(4, 140, 3)
    assert manifest_files([], {}) == ManifestFiles(0, 0, 0)


def test_rows_keep_what_they_are_before_version_3() -> None:
    assert [keeps_rows(version) for version in (1, 2, 3)] == [True, True, False]
