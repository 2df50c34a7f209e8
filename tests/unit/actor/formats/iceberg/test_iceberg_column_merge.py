"""A merge writes as Iceberg's own writer would; what it cannot obey of a table's properties is left to Spark."""

import pytest

from actor.formats.iceberg.column_merge import merge_settings
from actor.formats.parquet.copy_rules import LAYOUT_REASONS, EncodeReason, NotCopied
from actor.formats.parquet.footer_summary import FooterSummary

USUAL = {
    "parquet.writer.version": "PARQUET_1_0",
    "parquet.enable.dictionary": "true",
    "parquet.block.size": "134217728",
    "parquet.page.size": "1048576",
    "parquet.page.row.count.limit": "20000",
    "parquet.dictionary.page.size": "2097152",
}
SNAPPY, ZSTD = (FooterSummary(codecs=(name,), data_bytes=size) for name, size in (("snappy", 5), ("zstd", 7)))
SMALL = NotCopied(EncodeReason.SMALL_ROW_GROUPS, (SNAPPY, ZSTD, SNAPPY))


def properties(**given: str) -> dict[str, str]:
    return {f"write.parquet.{name.replace('_', '-')}": value for name, value in given.items()}


@pytest.mark.parametrize("reason", list(EncodeReason))
def test_only_the_layout_of_files_is_a_reason_to_merge(reason: EncodeReason) -> None:
    assert (merge_settings(NotCopied(reason, (SNAPPY,)), {}) is not None) == (reason in LAYOUT_REASONS)


def test_the_codec_is_the_tables_or_that_of_most_bytes() -> None:
    assert merge_settings(SMALL, {}) == ("snappy", USUAL)
    empty = NotCopied(EncodeReason.SMALL_ROW_GROUPS, (FooterSummary(), ZSTD))
    assert merge_settings(empty, {}) == ("zstd", USUAL), "a file without columns has no codec"
    assert merge_settings(SMALL, properties(compression_codec="ZSTD")) == ("zstd", USUAL)
    assert merge_settings(NotCopied(EncodeReason.OTHER_CODEC, ()), {}) is None
    for codec in ("brotli", "lz4"):
        assert merge_settings(SMALL, properties(compression_codec=codec)) is None


def test_sizes_and_levels_are_the_tables() -> None:
    given = properties(row_group_size_bytes="1000", page_row_limit="7", compression_codec="gzip", compression_level="9")
    own = {"parquet.block.size": "1000", "parquet.page.row.count.limit": "7", "zlib.compress.level": "9"}
    assert merge_settings(SMALL, {**given, "write.format.default": "parquet"}) == ("gzip", USUAL | own)
    level = properties(compression_level="3")
    assert merge_settings(SMALL, level) == ("snappy", USUAL), "snappy has no levels"


@pytest.mark.parametrize(
    "given",
    [
        {"write.parquet.bloom-filter-enabled.column.id": "true"},
        properties(page_version="v2"),
        properties(page_size_bytes="many"),
        properties(compression_level="-1"),
    ],
)
def test_what_a_merge_cannot_obey_is_left_to_spark(given: dict[str, str]) -> None:
    assert merge_settings(SMALL, given) is None


def test_bloom_filters_that_are_off_and_how_often_a_writer_counts_are_no_obstacle() -> None:
    off = {"write.parquet.bloom-filter-enabled.column.id": "false", **properties(row_group_check_min_record_count="1")}
    assert merge_settings(SMALL, off) == ("snappy", USUAL)
