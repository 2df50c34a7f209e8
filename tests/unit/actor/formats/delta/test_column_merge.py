"""A group is encoded column by column where nothing but the layout of its files forbids a copy; Spark does the rest."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.column_merge import ColumnMerger
from actor.formats.delta.columns import Column
from actor.formats.delta.footers import Storage
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.write import DeltaWriter
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import CopyLimits, CopyRule, EncodeReason, NotCopied
from actor.formats.parquet.footer_summary import FooterSummary, decode_summary
from tests.support.fake_copies import FOOTER, UNREAD, FakeCopies
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PREFIX, add
from tests.support.java_errors import JavaError

SMALL = EncodeReason.SMALL_ROW_GROUPS
BY_COLUMN = {
    "writer", "key_values", "small_row_groups", "small_column_chunks", "dictionaries", "large_footer", "mixed_codecs",
    "other_codec", "several_row_groups",
}  # fmt: skip


class Bench:
    """Two files of ten rows with statistics; `end`: of the task; `configuration`: of the table."""

    def __init__(self, end: dict[str, Any] | Exception | None = None, **configuration: str) -> None:
        self.table = FakeTable()
        self.table.commit({"metaData": METADATA | {"configuration": configuration}})
        stats = json.dumps({"numRecords": 10, "minValues": {"v": 1}, "maxValues": {"v": 5}, "nullCount": {"v": 0}})
        self.table.commit(add("x", stats=stats), add("y", stats=stats))
        self.scala = FakeCopies(self.table, (FOOTER, FOOTER), {} if end is None else end)
        self.live = live_group(self.table, "x", "y")
        self.log = TableLog(self.scala, self.table.log().session, "file:///lake/t")  # type: ignore[arg-type]
        txn = self.log.transaction()
        paths = OutputPaths(self.scala, self.log, txn.snapshot(), self.log.shape(txn.snapshot()), PREFIX)  # type: ignore[arg-type]
        self.tasks = ParquetTasks(self.scala, self.log, paths, DeltaCaches())  # type: ignore[arg-type]
        self.output = f"p=a/{paths.prefix}part.c000.snappy.parquet"

    def merge(
        self, reason: EncodeReason = SMALL, files: Sequence[FooterSummary] = (decode_summary(FOOTER),)
    ) -> LoggedFile | None:
        return ColumnMerger(self.tasks).merge(self.live, NotCopied(reason, files), {"p": "a"})

    def written(self, rule: CopyRule) -> WrittenGroup:
        txn = self.log.transaction()
        hider = RowHider(self.scala, self.log, self.tasks.paths.shape, UNREAD)  # type: ignore[arg-type]
        writer = DeltaWriter(self.scala, txn.snapshot(), self.tasks, rule, hider)
        return writer.write(self.live)


def test_an_output_has_the_statistics_of_its_inputs_and_the_group_says_why_and_how_it_was_encoded() -> None:
    bench = Bench()
    written = bench.written(CopyRule(limits=CopyLimits(max_column_chunks=0)))
    (output,) = written.outputs
    assert (written.encoded_because, written.by_column, written.rows) == (EncodeReason.LARGE_FOOTER, True, 20)
    assert output.file.path == bench.output
    stats = {"numRecords": 20, "minValues": {"v": 1}, "maxValues": {"v": 5}, "nullCount": {"v": 0}}
    assert json.loads(json.loads(output.json)["stats"]) == stats
    assert bench.table.outputs_asked_for == []  # Of Spark.


@pytest.mark.parametrize("reason", EncodeReason)
def test_only_what_is_about_the_cut_or_the_writers_of_the_files_is_encoded_by_column(reason: EncodeReason) -> None:
    bench = Bench()
    assert (bench.merge(reason) is not None) == (reason in BY_COLUMN) == bool(bench.scala.tasks)


def test_a_group_that_cannot_be_encoded_by_column_is_left_to_spark() -> None:
    bench = Bench({"obstacle": "damaged"})
    written = bench.written(CopyRule(limits=CopyLimits(max_column_chunks=0)))
    assert (written.encoded_because, written.by_column) == (EncodeReason.LARGE_FOOTER, False)
    assert len(bench.table.outputs_asked_for) == 1


FILES = [("snappy", 10), ("zstd", 30), ("snappy", 15)]


@pytest.mark.parametrize(
    ("configuration", "files", "codec"),
    [
        ({}, FILES, "ZSTD"),
        ({"delta.parquet.compression.codec": "none"}, FILES, "UNCOMPRESSED"),
        ({"delta.parquet.compression.codec": "lz4_raw"}, FILES, "LZ4_RAW"),
        ({"delta.parquet.compression.codec": "unheard-of"}, [*FILES, ("brotli", 90), ("", 99)], "ZSTD"),
    ],
)
def test_the_codec_is_that_of_the_table_or_of_most_bytes(
    configuration: dict[str, str], files: list[tuple[str, int]], codec: str
) -> None:
    bench = Bench(**configuration)
    assert bench.merge(files=[FooterSummary(codecs=(name,), data_bytes=size) for name, size in files]) is not None
    assert bench.scala.tasks[0][-1] == codec
    suffix = {"ZSTD": ".zstd", "UNCOMPRESSED": "", "LZ4_RAW": ".lz4raw"}[codec]
    assert bench.scala.tasks[0][-2] == f".c000{suffix}.parquet"


@pytest.mark.parametrize("codecs", [(), ("",), ("brotli",)])
def test_files_without_rows_and_codecs_that_cannot_be_written_are_left_to_spark(codecs: tuple[str, ...]) -> None:
    bench = Bench()
    assert bench.merge(files=[FooterSummary(codecs=codecs, data_bytes=1)]) is None
    assert bench.scala.tasks == []


def test_an_executor_that_refuses_the_classes_leaves_the_group_to_spark_and_other_failures_are_raised() -> None:
    refused = JavaError("SparkException", message="ClassNotFoundException: io.lakewright.parquet.ColumnMerge")
    assert Bench(refused).merge() is None
    with pytest.raises(JavaError, match="No space left"):
        Bench(JavaError("SparkException", message="No space left on device")).merge()


def test_an_output_that_stores_columns_otherwise_is_deleted_and_spark_writes_the_group() -> None:
    bench = Bench()
    for path, kind in (("x", "int"), (bench.output, "string")):
        bench.table.storage[path] = Storage(((Column(("v",), "INT64", kind, (64,)),),), {"snappy": 100})
    assert bench.merge() is None
    assert bench.table.deleted == [bench.output]


def test_an_output_whose_footer_cannot_be_read_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise JavaError("IOException", message="no footer")

    monkeypatch.setattr(OutputFormat, "check", fail)
    bench = Bench()
    with pytest.raises(JavaError, match="no footer"):
        bench.merge()
    assert bench.table.deleted == [bench.output]
