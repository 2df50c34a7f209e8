"""What only Iceberg's metadata say against copying; what holds for each format is tested on Delta's candidates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from actor.formats.iceberg.copy_choice import LINEAGE_IDS, ROW_ID, IcebergCandidate, ManifestEntry
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import CopyLimits, EncodeReason
from shared.layout.planner import RewriteMode
from tests.unit.actor.formats.delta.test_copy_choice import FILE as OF_DELTA
from tests.unit.actor.formats.delta.test_copy_choice import MIB

FILE = replace(OF_DELTA, keys=("iceberg.schema",), codecs=("zstd", "zstd"))
CANDIDATE = IcebergCandidate(
    mode=RewriteMode.MAJOR,
    bytes=100 * MIB,
    full_bytes=96 * MIB,
    format_version=2,
    properties={"write.parquet.compression-codec": "ZSTD"},
    inputs=(ManifestEntry(), ManifestEntry()),
    files=(FILE, FILE),
)
LIMITS = CopyLimits(max_column_chunks=1_000)

Change = Callable[[IcebergCandidate], IcebergCandidate]


def with_second(**changes: Any) -> Change:
    return lambda given: given.with_footers((FILE, replace(FILE, **changes)))


def with_all(**changes: Any) -> Change:
    return lambda given: given.with_footers((replace(FILE, **changes),) * 2)


def with_entry(**changes: Any) -> Change:
    return lambda given: replace(given, inputs=(ManifestEntry(), ManifestEntry(**changes)))


def third(*found: tuple[int, ...]) -> Change:
    files = tuple(replace(FILE, full_ids=ids) for ids in found)
    return lambda given: replace(given, format_version=3, files=files)


SAMPLES: list[tuple[EncodeReason, Change]] = [
    (EncodeReason.NOT_PARQUET, with_entry(format="orc")),
    (EncodeReason.NOT_PARQUET, lambda given: replace(given, properties={"write.format.default": "avro"})),
    (EncodeReason.ENCRYPTION, with_entry(is_encrypted=True)),
    (EncodeReason.DELETE_FILES, with_entry(has_deletes=True)),
    (EncodeReason.SORT_ORDER, with_entry(sort_order=1)),
    (EncodeReason.SCHEMA, with_second(columns="t")),
    (EncodeReason.COLUMNS, lambda given: replace(given, mismatch="columns")),
    (EncodeReason.TYPE_WIDENING, lambda given: replace(given, mismatch="type_widening")),
    (EncodeReason.NO_FIELD_IDS, lambda given: replace(given, mismatch="no_field_ids")),
    (EncodeReason.PARTITION, lambda given: replace(given, mismatch="partition")),
    (EncodeReason.ROW_TRACKING, third((), ())),
    (EncodeReason.ROW_TRACKING, third(LINEAGE_IDS, (ROW_ID,))),
    (EncodeReason.OTHER_CODEC, with_all(codecs=("snappy", "snappy"))),
    (EncodeReason.MIXED_CODECS, lambda given: with_second(codecs=("zstd", "gzip"))(replace(given, properties={}))),
    (EncodeReason.SMALL_ROW_GROUPS, with_second(row_groups=2)),
]


@pytest.mark.parametrize(("reason", "change"), SAMPLES, ids=[f"{reason}-{n}" for n, (reason, _) in enumerate(SAMPLES)])
def test_each_reason_sends_a_group_to_the_encoder(reason: EncodeReason, change: Change) -> None:
    assert reason_to_encode(CANDIDATE, LIMITS) is None
    assert reason_to_encode(change(CANDIDATE), LIMITS) is reason


def test_rows_of_format_version_3_are_copied_where_files_hold_what_rows_inherit() -> None:
    """A file without rows needs none; before version 3 no row has an id."""
    assert reason_to_encode(third(LINEAGE_IDS, LINEAGE_IDS[::-1])(CANDIDATE), LIMITS) is None
    empty = replace(FILE, rows=0, full_ids=())
    held = replace(FILE, full_ids=LINEAGE_IDS)
    assert reason_to_encode(replace(CANDIDATE, format_version=3, files=(held, empty)), LIMITS) is None
    assert reason_to_encode(replace(third((), ())(CANDIDATE), format_version=1), LIMITS) is None


def test_the_reserved_ids_are_those_of_the_specification() -> None:
    assert LINEAGE_IDS == (2147483540, 2147483539)


def test_what_the_metadata_alone_forbid_is_known_without_footers() -> None:
    asked = replace(CANDIDATE, files=None)
    assert reason_to_encode(asked, LIMITS) is None
    assert reason_to_encode(with_entry(has_deletes=True)(asked), LIMITS) is EncodeReason.DELETE_FILES


def test_files_that_all_declare_one_sort_order_are_joined() -> None:
    sorted_alike = replace(CANDIDATE, inputs=(ManifestEntry(sort_order=2),) * 2)
    assert reason_to_encode(sorted_alike, LIMITS) is None
