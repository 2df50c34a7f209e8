"""Groups are copied, merged by column or encoded: the reason is known as early as can be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from actor.cells.columns import CellColumn
from actor.formats.iceberg.cell_keys import RowKeys
from actor.formats.iceberg.column_merge import MergeSettings, merge_settings
from actor.formats.iceberg.column_search import FoundColumns
from actor.formats.iceberg.copy_choice import LINEAGE_IDS, ROW_ID, IcebergCandidate, ManifestEntry
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup, LiveInput
from actor.formats.iceberg.row_group_copy import CopiedFile, Division, IcebergCopier, ReadGroup, TaskFiles
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_choice import reason_to_encode
from actor.formats.parquet.copy_rules import MERGED_REASONS, CopyLimits, CopyRule, EncodeReason, NotCopied
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from actor.proofread.model import Field
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import NULL
from shared.layout.cells.routes import CellOutput, Fork
from shared.layout.cells.tree import Cut
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support.java_errors import JavaError
from tests.unit.actor.formats.delta.test_copy_choice import FILE as OF_DELTA
from tests.unit.actor.formats.delta.test_copy_choice import MIB
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import VALUES, VECTOR, live

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")


FOOTER = FooterSummary(schema="s", codecs=("zstd",), rows=100, row_groups=1, data_bytes=9)
ANY_SIZE = CopyLimits(0, 0)
DONE = {"place": "t/data/out.parquet", "size": 20, "attempt": 0}


def _without(hidden: Any) -> str:
    return "" if hidden is None else f" without {hidden.count()}"


class Tasks:
    """What the JVM says of two files; `end`: of the task. `calls`: what was asked of it."""

    def __init__(self, end: dict[str, Any] | Exception, *, second: FooterSummary = FOOTER, mismatch: str = "") -> None:
        self.end, self.second, self._mismatch = end, second, mismatch
        self.calls: list[str] = []
        self.schemas: dict[str, FileSchema] = {}
        self.end_bytes = -1
        self.describes = True
        self.unread: Exception | None = None
        self.checked: list[str] = []
        self.unbounded: list[str] = []

    def columns(self, inputs: Sequence[LiveInput]) -> DescribedFiles:
        self.calls.append("footers")
        if self.unread is not None:
            raise self.unread
        return DescribedFiles((FOOTER, self.second), self.schemas)

    def delete_columns(self, inputs: Sequence[LiveInput], deletes: Sequence[Any]) -> DescribedFiles:
        return DescribedFiles((FOOTER,) * len(deletes), self.schemas)

    def check_pages(self, inputs: Sequence[LiveInput]) -> None:
        if self.unread is not None:
            raise self.unread
        self.checked += [one.path for one in inputs]

    def mismatch(self, inputs: Sequence[LiveInput]) -> str:
        self.calls.append("mismatch")
        return self._mismatch

    def copy(self, inputs: Sequence[LiveInput], end_bytes: int) -> dict[str, Any]:
        self.calls.append("copy")
        self.end_bytes = end_bytes
        if isinstance(self.end, Exception):
            raise self.end
        return self.end

    def merge(self, inputs: Sequence[LiveInput], how: MergeSettings, hidden: Any) -> dict[str, Any]:
        self.calls.append(f"merge {how[0]}{_without(hidden)}")
        if isinstance(self.end, Exception):
            raise self.end
        return self.end

    def sample(self, inputs: Sequence[LiveInput], keys: RowKeys, hidden: Any, every: int) -> Any:
        self.calls.append(f"sample {every}{_without(hidden)}")
        return self.end

    def divide(self, inputs: Sequence[LiveInput], how: Any, keys: RowKeys, hidden: Any, *given: Any) -> Any:
        self.calls.append(f"divide {how[0]} {given[0]} {given[1]}{_without(hidden)}")
        return self.end

    def describe(self, inputs: Sequence[LiveInput], path: str, size_bytes: int) -> Any:
        if not self.describes:
            raise OSError("the footer cannot be read")
        return path, size_bytes

    def describe_part(self, inputs: Sequence[LiveInput], path: str, size_bytes: int, columns: Sequence[int]) -> Any:
        return None if path in self.unbounded else (*self.describe(inputs, path, size_bytes), columns)


class Bench:
    """Two files of a table of format version 2."""

    def __init__(self, tasks: Tasks, rule: CopyRule | None = None, *deletes: Any) -> None:
        self.tasks = tasks
        self.deleted: list[str] = []
        self.classes = ParquetClasses()
        inputs = (live("a"), live("b", *deletes))
        self.live = InputGroup(FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.MINOR), inputs)
        self.hidden: int | None = 2
        table = SimpleNamespace(
            delete=lambda paths: self.deleted.extend(paths),
            columns=lambda _: TableColumns((Field("a", "int64", 1),)),
            location="t",
            hidden=lambda _: None if self.hidden is None else SimpleNamespace(count=lambda: self.hidden),
        )
        head = SimpleNamespace(
            protocol=SimpleNamespace(min_writer=2), metadata=SimpleNamespace(configuration={"owner": "x"})
        )
        made: Any = (table, head, tasks, self.classes, rule or CopyRule(limits=ANY_SIZE))
        self.copier = IcebergCopier(*made)

    def copy(self) -> Any:
        end = self.copier.copy(ReadGroup(self.live, self.copier.footers(self.live)))
        return end.reason if isinstance(end, NotCopied) else end


def test_an_output_is_what_iceberg_says_of_the_file_that_the_task_made() -> None:
    bench = Bench(Tasks(DONE))
    assert bench.copy() == CopiedFile("t/data/out.parquet", 20, ("t/data/out.parquet", 20))
    assert (bench.tasks.calls, bench.deleted) == (["footers", "mismatch", "copy"], [])


def test_footers_are_read_on_every_path_and_each_reason_is_known_before_what_costs_more() -> None:
    off = Bench(Tasks(DONE), CopyRule(is_allowed=False))
    assert (off.copy(), off.tasks.calls) == (EncodeReason.SWITCHED_OFF, ["footers"])
    deleted = Bench(Tasks(DONE), None, VECTOR)
    assert (deleted.copy(), deleted.tasks.calls) == (EncodeReason.DELETE_FILES, ["footers"])
    other = Bench(Tasks(DONE, second=FooterSummary(schema="s", columns="t", codecs=("zstd",))))
    assert (other.copy(), other.tasks.calls) == (EncodeReason.SCHEMA, ["footers"])
    dropped = Bench(Tasks(DONE, mismatch="columns"))
    assert (dropped.copy(), dropped.tasks.calls) == (EncodeReason.COLUMNS, ["footers", "mismatch"])


def test_once_executors_refused_the_classes_footers_are_read_and_nothing_is_sent_to_them() -> None:
    """What footers say keeps files from being encoded wrongly, too."""
    bench = Bench(Tasks(DONE))
    bench.classes._are_usable = False
    assert (bench.copy(), bench.tasks.calls) == (EncodeReason.UNAVAILABLE, ["footers"])
    bench.copier.check_pages(bench.live)
    assert bench.tasks.checked == []


@pytest.mark.parametrize(("limits", "end_bytes"), [(CopyLimits(), 250), (ANY_SIZE, 0)])
def test_the_task_keeps_an_output_of_small_row_groups_below_the_full_size(limits: CopyLimits, end_bytes: int) -> None:
    bench = Bench(Tasks(DONE), CopyRule(full_bytes=250, limits=limits))
    assert isinstance(bench.copy(), CopiedFile)
    assert bench.tasks.end_bytes == end_bytes


def test_what_is_found_while_copying_sends_the_group_to_the_encoder() -> None:
    assert Bench(Tasks({"obstacle": "damaged"})).copy() is EncodeReason.DAMAGED
    grown = Bench(Tasks({"obstacle": "full"}), CopyRule(full_bytes=250))
    assert grown.copy() is EncodeReason.SMALL_ROW_GROUPS


def merged(end: Any, reason: EncodeReason, **properties: str) -> tuple[Any, list[str]]:
    bench = Bench(Tasks(end))
    bench.copier._head.metadata.configuration.update(properties)  # type: ignore[attr-defined]
    read = ReadGroup(bench.live, GroupFooters(TableColumns(())))
    return bench.copier.merge(read, NotCopied(reason, (FOOTER, FOOTER))), bench.tasks.calls


def test_a_group_that_only_its_layout_keeps_from_being_copied_is_merged() -> None:
    done = TaskFiles((CopiedFile("t/data/out.parquet", 20, ("t/data/out.parquet", 20)),))
    assert merged(DONE, EncodeReason.SMALL_ROW_GROUPS) == (done, ["merge zstd"])
    assert merged(DONE, EncodeReason.SCHEMA) == (None, [])
    assert merged({"obstacle": "damaged"}, EncodeReason.DICTIONARIES) == (None, ["merge zstd"])
    bloom = {"write.parquet.bloom-filter-enabled.column.id": "true"}
    assert merged(DONE, EncodeReason.SMALL_ROW_GROUPS, **bloom) == (None, [])


def test_columns_that_are_not_the_tables_are_known_before_a_group_is_merged() -> None:
    tasks = Tasks(DONE, mismatch="columns")
    bench = Bench(tasks, CopyRule(full_bytes=1, limits=CopyLimits()))
    bench.live = replace(bench.live, group=replace(bench.live.group, mode=RewriteMode.FULL))
    assert (bench.copy(), tasks.calls) == (EncodeReason.COLUMNS, ["footers", "mismatch"])


def test_files_whose_bounds_iceberg_would_misread_are_encoded() -> None:
    bench = Bench(Tasks(DONE))
    bench.tasks.schemas["s"] = FileSchema((ParquetField("c", 1, physical="INT64", logical="TIMESTAMP(MILLIS,true)"),))
    assert (bench.copy(), bench.tasks.calls) == (EncodeReason.TYPE_WIDENING, ["footers"])


def test_a_merge_that_an_executor_refuses_is_left_to_the_encoder_and_other_failures_are_raised() -> None:
    refused = JavaError("SparkException", message="ClassNotFoundException: io.lakewright.iceberg.IcebergStore")
    assert merged(refused, EncodeReason.LARGE_FOOTER)[0] is None
    with pytest.raises(JavaError, match="No space left"):
        merged(JavaError("SparkException", message="No space left on device"), EncodeReason.LARGE_FOOTER)


def test_an_output_that_cannot_be_described_is_deleted() -> None:
    bench = Bench(Tasks(DONE))
    bench.tasks.describes = False
    with pytest.raises(OSError, match="footer"):
        bench.copy()
    assert bench.deleted == ["t/data/out.parquet"]


def test_an_executor_that_refuses_the_classes_sends_the_group_to_the_encoder_and_other_failures_are_raised() -> None:
    refused = JavaError("SparkException", message="ClassNotFoundException: io.lakewright.iceberg.IcebergStore")
    assert Bench(Tasks(refused)).copy() is EncodeReason.UNAVAILABLE
    with pytest.raises(JavaError, match="No space left"):
        Bench(Tasks(JavaError("SparkException", message="No space left on device"))).copy()


def test_the_encoder_goes_on_where_an_executor_refuses_the_classes_as_pages_are_read() -> None:
    bench = Bench(Tasks(DONE))
    bench.tasks.unread = JavaError("SparkException", message="ClassNotFoundException: io.lakewright.parquet.PageCheck")
    bench.copier.check_pages(bench.live)
    assert not bench.classes.are_usable
    other = Bench(Tasks(DONE))
    other.tasks.unread = JavaError("SparkException", message="DamagedInput: f has a page that differs")
    with pytest.raises(JavaError, match="differs"):
        other.copier.check_pages(other.live)


def test_a_refusal_by_the_footers_and_any_other_failure_to_read_them_are_raised() -> None:
    with pytest.raises(RefusedFiles, match=r"^b in .* is no Parquet file"):
        Bench(Tasks(DONE, second=FooterSummary(obstacle="no_footer"))).copy()
    bench = Bench(Tasks(DONE))
    bench.tasks.unread = JavaError("SparkException", message="No space left on device")
    with pytest.raises(JavaError, match="No space left"):
        bench.copy()


def test_pages_are_compared_with_their_checksums_in_files_of_parquet_alone() -> None:
    bench = Bench(Tasks(DONE))
    first, second = bench.live.inputs
    avro = replace(second, entry=ManifestEntry("avro"))
    bench.copier.check_pages(replace(bench.live, inputs=(replace(first, entry=ManifestEntry("PARQUET")), avro)))
    assert bench.tasks.checked == ["a"]


KEYED = replace(VALUES, is_parquet=True, key_ids=(1,), sequence=3)


def merged_without_deleted(hidden: int | None, end: Any = DONE, *deletes: Any) -> tuple[Any, list[str]]:
    bench = Bench(Tasks(end), None, *(deletes or (VECTOR, KEYED)))
    bench.hidden = hidden
    read = ReadGroup(bench.live, GroupFooters(TableColumns((Field("a", "int64", 1),)), (FOOTER, FOOTER)))
    return bench.copier.merge(read, NotCopied(EncodeReason.DELETE_FILES)), bench.tasks.calls


@pytest.mark.parametrize("hidden", [0, 2, 199])
def test_rows_that_are_deleted_are_left_out_of_a_merge(hidden: int) -> None:
    """The output is described as one that has some rows of its inputs: what is known of all holds for no part."""
    made = TaskFiles((CopiedFile("t/data/out.parquet", 20, ("t/data/out.parquet", 20, ())),), hidden)
    assert merged_without_deleted(hidden) == (made, ["mismatch", f"merge zstd without {hidden}"])


def test_a_group_of_which_no_row_is_left_needs_no_task() -> None:
    assert merged_without_deleted(200) == (TaskFiles((), 200), ["mismatch"])


def test_what_tasks_cannot_leave_out_exactly_is_left_to_spark() -> None:
    assert merged_without_deleted(None) == (None, ["mismatch"]), "too many, or unclear"
    assert merged_without_deleted(2, {"obstacle": "damaged"}) == (None, ["mismatch", "merge zstd without 2"])
    for unclear in (replace(KEYED, key_ids=(7,)), replace(KEYED, is_parquet=False), replace(KEYED, sequence=0)):
        assert merged_without_deleted(2, DONE, unclear) == (None, ["mismatch"])


def test_keys_that_files_store_in_a_form_of_several_values_are_left_to_spark() -> None:
    bench = Bench(Tasks(DONE), None, KEYED)
    odd = ParquetField("a", 1, physical="INT96")
    columns = TableColumns((Field("a", "timestamp", 1),))
    read = ReadGroup(bench.live, GroupFooters(columns, (FOOTER, FOOTER), found={"s": FoundColumns({1: odd})}))
    assert bench.copier.merge(read, NotCopied(EncodeReason.DELETE_FILES)) is None
    assert bench.tasks.calls == ["mismatch"]


COLUMNS = (CellColumn(("1", "n"), ("a",), "long"),)
DIVISION = Division(COLUMNS, Fork(Cut(0, 7), CellOutput(None), CellOutput(None)), "IF(a < 7, 0, 1)", ("x.", "y."))
PARTS = {"outputs": [{"place": "t/x", "size": 20, "rows": 7}, {"place": "t/y", "size": 21, "rows": 9}]}


def moved(end: Any, *deletes: Any, rule: CopyRule | None = None, **of_bench: Any) -> tuple[Bench, Any]:
    bench = Bench(Tasks(end), rule, *deletes)
    bench.tasks.schemas["s"] = FileSchema((ParquetField("a", 1, physical="INT64"),))
    for name, value in of_bench.items():
        setattr(bench, name, value)
    read = bench.copier.read(bench.live, COLUMNS)
    return bench, bench.copier.sample(read, 5) if "read" in end else bench.copier.divide(read, DIVISION)


@pytest.mark.parametrize("delete", [VECTOR, KEYED])
def test_rows_are_divided_by_a_task_without_those_that_are_deleted(delete: Any) -> None:
    bench, made = moved(PARTS, delete)
    parts = (("t/x", 20), ("t/y", 21))
    assert made == TaskFiles(tuple(CopiedFile(*one, (*one, [1])) for one in parts), 2)
    assert bench.tasks.calls == ["footers", "mismatch", "divide zstd [[0, 7, -1, -2]] ('x.', 'y.') without 2"]
    bench, points = moved({"read": [[8], [None]]})
    assert (points, bench.tasks.calls) == ([(8,), (NULL,)], ["footers", "mismatch", "sample 5"])


def test_unclear_deletes_and_what_a_task_cannot_write_are_left_to_spark() -> None:
    assert moved(PARTS, VALUES)[1] is None
    assert moved(PARTS, VECTOR, hidden=None)[1] is None, "too many to hold"
    assert moved(PARTS, rule=CopyRule(is_allowed=False))[1] is None
    assert moved({"obstacle": "damaged"})[1] is None
    assert moved({"read": [], "obstacle": "damaged"})[1] is None
    assert moved({"read": []}, VALUES)[1] is None


def test_parts_that_cannot_be_described_or_have_no_bounds_are_all_deleted() -> None:
    bench, _ = moved({"obstacle": "damaged"})
    read, bench.tasks.end = bench.copier.read(bench.live, COLUMNS), PARTS
    bench.tasks.unbounded = ["t/y"]
    assert (bench.copier.divide(read, DIVISION), bench.deleted) == (None, ["t/x", "t/y"])
    bench.tasks.describes = False
    with pytest.raises(OSError, match="footer"):
        bench.copier.divide(read, DIVISION)
    assert bench.deleted == ["t/x", "t/y"] * 2


USUAL = {
    "parquet.writer.version": "PARQUET_1_0",
    "parquet.enable.dictionary": "true",
    "parquet.block.size": "134217728",
    "parquet.page.size": "1048576",
    "parquet.page.row.count.limit": "20000",
    "parquet.dictionary.page.size": "2097152",
}
SNAPPY, ZSTD = (FooterSummary(codecs=(name,), data_bytes=size) for name, size in (("snappy", 5), ("zstd", 7)))
SMALL = (SNAPPY, ZSTD, SNAPPY)


def properties(**given: str) -> dict[str, str]:
    return {f"write.parquet.{name.replace('_', '-')}": value for name, value in given.items()}


@pytest.mark.parametrize("reason", [one for one in EncodeReason if one is not EncodeReason.DELETE_FILES])
def test_only_what_is_beside_the_columns_of_files_is_a_reason_to_merge(reason: EncodeReason) -> None:
    assert (merged(DONE, reason)[0] is not None) == (reason in MERGED_REASONS)


def test_the_codec_is_the_tables_or_that_of_most_bytes() -> None:
    assert merge_settings(SMALL, {}) == ("snappy", USUAL)
    assert merge_settings((FooterSummary(), ZSTD), {}) == ("zstd", USUAL), "a file without columns has no codec"
    assert merge_settings(SMALL, properties(compression_codec="ZSTD")) == ("zstd", USUAL)
    assert merge_settings((), {}) is None
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
