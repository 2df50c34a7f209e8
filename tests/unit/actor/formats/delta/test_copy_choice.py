"""Row groups are copied only where that is exact and leaves a file that reads well: one sample for each reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from actor.formats.delta.copy_choice import DeltaCandidate, stored_columns
from actor.formats.delta.log import TableShape
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import CopyLimits, EncodeReason
from actor.formats.parquet.footer_summary import FooterSummary
from shared.layout.planner import RewriteMode

MIB, KIB = 1 << 20, 1 << 10
LIMITS = CopyLimits(
    min_row_group_bytes=4 * MIB, min_column_chunk_bytes=128 * KIB, max_dictionary_share=0.05, max_column_chunks=1_000
)
FILE = FooterSummary(
    schema="s",
    top_level=("id", "v"),
    created_by="writer 1.0",
    keys=("k",),
    key_values="digest",
    codecs=("snappy", "zstd"),
    rows=10,
    row_groups=1,
    data_bytes=5 * MIB,
)


def shape(features: tuple[str, ...] = (), field: dict[str, Any] | None = None, **configuration: str) -> TableShape:
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": field or {}},
        {"name": "v", "type": "string", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ]
    metadata = {
        "id": "u",
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["p"],
        "configuration": {name.replace("_", "."): value for name, value in configuration.items()},
    }
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": list(features)}
    return TableShape(json.dumps({"metaData": metadata}), json.dumps({"protocol": protocol}))


CANDIDATE = DeltaCandidate(
    shape=shape(),
    mode=RewriteMode.MAJOR,
    bytes=100 * MIB,
    full_bytes=96 * MIB,
    drops_rows=False,
    files=(FILE, FILE),
)


def with_second(**changes: Any) -> Callable[[DeltaCandidate], DeltaCandidate]:
    return lambda given: given.with_footers((FILE, replace(FILE, **changes)))


def with_all(**changes: Any) -> Callable[[DeltaCandidate], DeltaCandidate]:
    return lambda given: given.with_footers((replace(FILE, **changes),) * 2)


def with_shape(made: TableShape) -> Callable[[DeltaCandidate], DeltaCandidate]:
    return lambda given: replace(given, shape=made)


WIDENED = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
SAMPLES: list[tuple[EncodeReason, Callable[[DeltaCandidate], DeltaCandidate]]] = [
    (EncodeReason.SWITCHED_OFF, lambda given: replace(given, is_allowed=False)),
    (EncodeReason.UNAVAILABLE, lambda given: replace(given, is_available=False)),
    (EncodeReason.FOLDER, lambda given: replace(given, loses_folder=True)),
    (EncodeReason.ROW_ORDER, lambda given: replace(given, is_sorted=True)),
    (EncodeReason.DELETION_VECTOR, lambda given: replace(given, drops_rows=True)),
    (EncodeReason.ROW_TRACKING, with_shape(shape(features=("rowTracking",)))),
    (EncodeReason.ICEBERG_COMPATIBILITY, with_shape(shape(delta_enableIcebergCompatV2="true"))),
    (EncodeReason.TYPE_WIDENING, with_shape(shape(field=WIDENED))),
    (EncodeReason.ENCRYPTION, with_second(obstacle="encryption")),
    (EncodeReason.NO_FOOTER, with_second(obstacle="no_footer")),
    (EncodeReason.DAMAGED, with_second(obstacle="damaged")),
    (EncodeReason.DATA_ELSEWHERE, with_second(obstacle="data_elsewhere")),
    (EncodeReason.INT96, with_all(obstacle="int96")),
    (EncodeReason.NANOSECONDS, with_all(obstacle="nanoseconds")),
    (EncodeReason.OLD_CALENDAR, with_all(keys=("org.apache.spark.legacyDateTime",))),
    (EncodeReason.OLD_CALENDAR, with_second(spark="2.4.8", key_values="other")),
    (EncodeReason.SCHEMA, with_second(columns="t")),
    (EncodeReason.KEY_VALUES, with_second(key_values="other")),
    (EncodeReason.WRITER, with_second(created_by="writer 0.9")),
    (EncodeReason.WRITER, with_second(schema="t")),
    (EncodeReason.COLUMNS, with_second(top_level=("id", "v", "dropped"))),
    (EncodeReason.MIXED_CODECS, with_second(codecs=("snappy", "snappy"))),
    (EncodeReason.MIXED_CODECS, with_all(codecs=("snappy+zstd", "zstd"))),
    (EncodeReason.OTHER_CODEC, with_shape(shape(delta_parquet_compression_codec="zstd"))),
    (EncodeReason.SEVERAL_ROW_GROUPS, with_shape(shape(delta_enableDeletionVectors="true"))),
    (EncodeReason.SMALL_ROW_GROUPS, with_second(row_groups=2)),
    (EncodeReason.SMALL_COLUMN_CHUNKS, with_all(codecs=("snappy",) * 41)),
    (EncodeReason.DICTIONARIES, with_all(dictionary_bytes=MIB // 3)),
    (EncodeReason.LARGE_FOOTER, with_all(row_groups=251)),
]


@pytest.mark.parametrize(("reason", "change"), SAMPLES, ids=[f"{reason}-{n}" for n, (reason, _) in enumerate(SAMPLES)])
def test_each_reason_sends_a_group_to_the_encoder(
    reason: EncodeReason, change: Callable[[DeltaCandidate], DeltaCandidate]
) -> None:
    assert reason_to_encode(CANDIDATE, LIMITS) is None
    assert reason_to_encode(change(CANDIDATE), LIMITS) is reason


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        (EncodeReason.INT96, {"obstacle": "int96"}),
        (EncodeReason.ENCRYPTION, {"obstacle": "encryption"}),
        (EncodeReason.OLD_CALENDAR, {"keys": ("org.apache.spark.legacyDateTime",)}),
        (EncodeReason.COLUMNS, {"top_level": ("dropped",), "columns": "u"}),
        (EncodeReason.SCHEMA, {"columns": "t"}),
        (EncodeReason.OLD_CALENDAR, {"spark": "2.4.8", "key_values": "third"}),
    ],
)
def test_how_two_files_differ_hides_nothing_of_a_third(reason: EncodeReason, change: dict[str, Any]) -> None:
    """Files of other writers are merged by column, which would take what a third one holds for something else."""
    by_other = replace(FILE, schema="t", created_by="writer 0.9", key_values="other")
    files = [FILE, by_other, replace(FILE, **change)]
    for order in permutations(files):
        assert reason_to_encode(CANDIDATE.with_footers(order), LIMITS) is reason


def test_files_of_one_old_spark_stay_in_its_calendar() -> None:
    assert reason_to_encode(with_all(spark="2.4.8")(CANDIDATE), LIMITS) is None
    assert (
        reason_to_encode(with_second(spark="4.1.0", key_values="other")(CANDIDATE), LIMITS) is EncodeReason.KEY_VALUES
    )


OF_ICEBERG = {
    EncodeReason.DELETE_FILES,
    EncodeReason.NOT_PARQUET,
    EncodeReason.SORT_ORDER,
    EncodeReason.PARTITION,
    EncodeReason.NO_FIELD_IDS,
}


def test_every_reason_has_a_sample() -> None:
    assert {reason for reason, _ in SAMPLES} == set(EncodeReason) - OF_ICEBERG


def test_what_the_log_alone_forbids_is_known_without_footers() -> None:
    asked = replace(CANDIDATE, files=None)
    assert reason_to_encode(asked, LIMITS) is None
    assert reason_to_encode(replace(asked, drops_rows=True), LIMITS) is EncodeReason.DELETION_VECTOR


def test_a_file_may_have_one_codec_for_each_column_where_all_have_the_same() -> None:
    assert reason_to_encode(with_all(codecs=("snappy", "gzip"))(CANDIDATE), LIMITS) is None
    wanted = shape(delta_parquet_compression_codec="ZSTD")
    alike = with_all(codecs=("zstd", "zstd"))(replace(CANDIDATE, shape=wanted))
    assert reason_to_encode(alike, LIMITS) is None


def test_files_without_rows_have_no_codec_and_are_no_obstacle() -> None:
    empty = replace(FILE, rows=0, row_groups=0, data_bytes=0, codecs=("", ""))
    assert reason_to_encode(CANDIDATE.with_footers((empty, FILE)), LIMITS) is None
    assert reason_to_encode(CANDIDATE.with_footers((empty, empty)), LIMITS) is None


FINAL_MODES = {RewriteMode.IDLE, RewriteMode.FULL}


@pytest.mark.parametrize("mode", list(RewriteMode))
def test_outputs_of_idle_and_full_rewrites_are_final_whatever_their_size(mode: RewriteMode) -> None:
    """No level merges them again unless new files come, so small row groups would stay."""
    below = replace(with_all(row_groups=2)(CANDIDATE), mode=mode, bytes=MIB)
    assert reason_to_encode(below, LIMITS) is (EncodeReason.SMALL_ROW_GROUPS if mode in FINAL_MODES else None)
    assert reason_to_encode(replace(below, bytes=96 * MIB), LIMITS) is EncodeReason.SMALL_ROW_GROUPS
    large = replace(below, files=(FILE, FILE))
    assert reason_to_encode(large, LIMITS) is None


COLUMNS_WHERE_BOUNDS_MEET = 32
"""Times 128 KiB are 4 MiB."""


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 200])
def test_a_row_group_has_128_kib_for_each_column_and_at_least_4_mib(columns: int) -> None:
    """The reason names the bound that applied: the larger one."""
    is_wide = columns > COLUMNS_WHERE_BOUNDS_MEET
    bound = columns * 128 * KIB if is_wide else 4 * MIB
    reason = EncodeReason.SMALL_COLUMN_CHUNKS if is_wide else EncodeReason.SMALL_ROW_GROUPS
    alike = with_all(codecs=("snappy",) * columns, data_bytes=bound)(CANDIDATE)
    assert reason_to_encode(alike, LIMITS) is None
    short = replace(FILE, codecs=("snappy",) * columns, data_bytes=bound - 1)
    assert reason_to_encode(alike.with_footers((short, replace(short, data_bytes=bound))), LIMITS) is reason
    assert reason_to_encode(replace(alike.with_footers((short, short)), bytes=MIB), LIMITS) is None


@pytest.mark.parametrize("mode", list(RewriteMode))
def test_rows_are_hidden_by_position_only_in_files_cut_as_a_writer_cuts_them(mode: RewriteMode) -> None:
    """delta-rs up to 1.6.3 takes several row groups of a file in any order, and hides others of its rows."""
    of_vectors = replace(CANDIDATE, shape=shape(delta_enableDeletionVectors="true"), mode=mode, bytes=MIB)
    joined = EncodeReason.SEVERAL_ROW_GROUPS
    assert reason_to_encode(of_vectors, LIMITS) is joined
    assert reason_to_encode(of_vectors.with_footers([replace(FILE, row_groups=2)]), LIMITS) is joined
    assert reason_to_encode(of_vectors.with_footers([FILE]), LIMITS) is None
    assert reason_to_encode(with_all(data_bytes=128 * MIB)(of_vectors), LIMITS) is None
    off = replace(of_vectors, shape=shape(delta_enableDeletionVectors="false"))
    assert reason_to_encode(off, LIMITS) is None


def test_small_row_groups_are_copied_below_the_full_size_alone() -> None:
    assert reason_to_encode(replace(with_all(dictionary_bytes=MIB)(CANDIDATE), bytes=90 * MIB), LIMITS) is None
    small = with_all(row_groups=100)(CANDIDATE)
    assert reason_to_encode(replace(small, bytes=90 * MIB), LIMITS) is None
    assert reason_to_encode(replace(small, bytes=96 * MIB), LIMITS) is EncodeReason.SMALL_ROW_GROUPS
    assert reason_to_encode(replace(small, bytes=1, full_bytes=0), LIMITS) is EncodeReason.SMALL_ROW_GROUPS


def test_a_single_file_keeps_the_row_groups_that_its_writer_chose() -> None:
    alone = CANDIDATE.with_footers((replace(FILE, row_groups=100),))
    assert reason_to_encode(alone, LIMITS) is None


def test_files_that_hold_the_partition_columns_too_are_copied() -> None:
    assert reason_to_encode(with_all(top_level=("id", "v", "p"))(CANDIDATE), LIMITS) is None


def test_columns_are_compared_as_files_spell_them() -> None:
    mapped = shape(delta_columnMapping_mode="name")
    fields = json.loads(json.loads(mapped.metadata_json)["metaData"]["schemaString"])["fields"]
    for number, field in enumerate(fields):
        field["metadata"] = {"delta.columnMapping.physicalName": f"col-{number}"}
    metadata = json.loads(mapped.metadata_json)
    metadata["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    assert stored_columns(replace(mapped, metadata_json=json.dumps(metadata))) == {"col-0", "col-1", "col-2"}
    assert stored_columns(shape()) == {"id", "v", "p"}
