"""Rows in are rows out before any commit: by statistics where they are there, by counting where they are not."""

import json
from types import SimpleNamespace
from typing import cast

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.columns import Column
from actor.formats.delta.copy_choice import DeltaCopier
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.footers import Storage
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.write import DeltaWriter, logical_rows
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import CopyRule, EncodeReason, NotCopied
from shared.errors import Corrupt, Difference, PermanentError, RefusedFiles, Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.paths.data_paths import is_portable
from shared.refusals import RefusalReason
from shared.table import PartitionColumn
from tests.support.fake_copies import UNREAD
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PLAIN, PREFIX, add, vector
from tests.support.java_errors import JavaError

P = PartitionColumn("p", "p", "string")


def writer(table: FakeTable, log: TableLog, proofs: Proofs = UNREAD) -> DeltaWriter:
    scala, txn = FakeScala(table), log.transaction()
    shape = log.shape(txn.snapshot())
    paths = OutputPaths(scala, log, txn.snapshot(), shape, PREFIX)
    tasks = ParquetTasks(scala, log, paths, DeltaCaches())
    hider = RowHider(scala, log, shape, proofs)
    return DeltaWriter(scala, txn.snapshot(), tasks, CopyRule(is_allowed=False), hider)


def write(table: FakeTable, live: LiveGroup) -> WrittenGroup:
    return writer(table, table.log()).write(live)


def table_of(*actions: dict[str, object]) -> FakeTable:
    table = FakeTable()
    table.commit(*actions)
    return table


def test_rows_that_agree_by_statistics_are_not_counted_again() -> None:
    table = table_of(add("x", 3), add("y", 4, deletionVector=vector(2)))
    live = live_group(table, "x", "y")
    table.counts = -1  # The fake writer counts once to know what it writes.
    assert write(table, live).rows == 5
    assert table.counts == 0
    assert table.deleted == []


@pytest.mark.parametrize("rows_lost", [1, -1])
@pytest.mark.parametrize(("in_stats", "out_stats"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_row_more_or_less_stops_the_rewrite_and_deletes_the_output(
    rows_lost: int, in_stats: bool, out_stats: bool
) -> None:
    table = table_of(add("x", 3 if in_stats else None), add("y", 4))
    table.drops_rows, table.drops_stats = rows_lost, not out_stats
    with pytest.raises(Corrupt, match=f"{'log statistics' if in_stats else 'count'}.*The table is unchanged"):
        write(table, live_group(table, "x", "y"))
    assert table.deleted == ["out-0"]


@pytest.mark.parametrize(("in_stats", "out_stats"), [(True, False), (False, True), (False, False)])
def test_where_statistics_are_missing_the_rows_are_counted(in_stats: bool, out_stats: bool) -> None:
    table = table_of(add("x", 3 if in_stats else None, deletionVector=vector(1)))
    table.rows["x"] = 3
    table.drops_stats = not out_stats
    assert write(table, live_group(table, "x")).rows == 2
    assert table.counts == 1 + (not in_stats) + (not out_stats)


def test_where_statistics_are_missing_footers_have_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FooterReader, "rows", lambda _self, files: 3 * len(files))
    table = table_of(add("x", None, deletionVector=vector(1)), add("y", 3))
    table.rows["x"] = 3
    live = live_group(table, "x", "y")
    assert write(table, live).rows == 5
    assert table.counts == 1, "of the fake writer, to know what it writes"
    table.drops_rows = 1
    with pytest.raises(Corrupt, match=r"5 rows in by the footers, 4 rows out; reading the inputs finds 5\."):
        write(table, live)


def test_statistics_that_are_wrong_stop_the_rewrite_and_the_message_says_what_is_there() -> None:
    table = table_of(add("x", 30))
    table.rows["x"] = 3
    with pytest.raises(Corrupt, match=r"30 rows in by the log statistics, 3 rows out; reading the inputs finds 3\."):
        write(table, live_group(table, "x"))


def test_a_writer_may_have_counted_the_visible_rows_of_a_file_with_a_vector() -> None:
    """As Trino's ANALYZE does: reading the inputs decides."""
    table = table_of(add("x", 8, deletionVector=vector(2)))
    table.rows["x"] = 10
    assert write(table, live_group(table, "x")).rows == 8
    assert table.deleted == []


@pytest.mark.parametrize("is_local", [True, False])
def test_where_executors_may_be_lost_what_spark_wrote_before_is_searched(is_local: bool) -> None:
    """Spark repeats the task of a lost executor, and reports neither that nor the file that was begun."""
    table = table_of(add("x", 3))
    table.is_local = is_local
    scala, log = FakeScala(table), table.log()
    txn = log.transaction()
    paths = OutputPaths(scala, log, txn.snapshot(), log.shape(txn.snapshot()), PREFIX)
    tasks = ParquetTasks(scala, log, paths, DeltaCaches())
    hider = RowHider(scala, log, paths.shape, UNREAD)
    DeltaWriter(scala, txn.snapshot(), tasks, CopyRule(is_allowed=False), hider).write(live_group(table, "x"))
    assert paths.has_lost_attempts is not is_local


def test_an_output_whose_rows_cannot_be_counted_is_deleted() -> None:
    table = table_of(add("x", 3))
    table.drops_stats = True
    live = live_group(table, "x")
    log = table.log()
    log.rows = _cannot_count  # type: ignore[method-assign]
    with pytest.raises(JavaError):
        writer(table, log).write(live)
    assert table.deleted == ["out-0"]


def _cannot_count(*_: object) -> int:
    raise JavaError("SparkException")


def test_a_group_becomes_one_file() -> None:
    table = table_of(add("x"), add("y"))
    write(table, live_group(table, "x", "y"))
    assert table.outputs_asked_for == [1]


def test_an_output_carries_the_tags_of_its_group() -> None:
    table = table_of(add("x"))
    live = live_group(table, "x")
    tagged = FileGroup(live.group.partition, live.group.files, RewriteMode.IDLE, {"lakewright.idle_compacted": "1"})
    (output,) = write(table, LiveGroup(tagged, live.inputs, live.version, live.digest)).outputs
    assert output.file.tags == {"lakewright.idle_compacted": "1"}


def file(value: str | None, column: PartitionColumn = P) -> LoggedFile:
    body = add("x")["add"] | {"partitionValues": {column.physical: value}}
    return LoggedFile(decode_add(body, [column]), json.dumps(body))


def spelled(column: PartitionColumn, *values: str | None) -> WrittenGroup:
    files = tuple(file(value, column) for value in values)
    schema = json.dumps(
        {"type": "struct", "fields": [{"name": "p", "type": column.type, "nullable": True, "metadata": {}}]}
    )
    table = table_of({"metaData": METADATA | {"schemaString": schema}}, add("x"))
    group = FileGroup(files[0].file.partition, tuple(one.file for one in files), RewriteMode.MINOR)
    return write(table, LiveGroup(group, files, 0, None))


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("string", "", None),  # The same partition, yet Spark shows '' for one and null for the other.
        ("timestamp", "2024-01-01 00:00:00", "2024-01-01T00:00:00.000000Z"),
        ("timestamp", "2024-01-01 00:00:00", "2024-01-01 02:00:00+02:00"),
    ],
)
def test_spellings_that_readers_take_for_different_values_are_not_merged(
    kind: str, one: str | None, other: str | None
) -> None:
    with pytest.raises(Unsupported, match=r"'p' (is an empty string|has a zone)"):
        spelled(PartitionColumn("p", "p", kind), one, other)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("timestamp", "2024-01-01T00:00:00Z", "2024-01-01 02:00:00+0200"),
        ("timestamp", "2024-01-01 00:00:00", "2024-01-01 00:00:00.0"),
        ("date", "", None),
        ("timestamp", None, ""),
        ("integer", "7", "7"),
    ],
)
def test_spellings_that_readers_take_for_one_value_are_merged_under_the_first(
    kind: str, one: str | None, other: str | None
) -> None:
    (output,) = spelled(PartitionColumn("p", "p", kind), one, other).outputs
    assert json.loads(output.json)["partitionValues"] == {"p": one}


def test_logical_rows_are_known_only_if_each_file_has_statistics() -> None:
    def logged(rows: int | None, deleted: int = 0) -> LoggedFile:
        body = add("x", rows, **({"deletionVector": vector(deleted)} if deleted else {}))["add"]
        return LoggedFile(decode_add(body, [P]), "")

    assert logical_rows([logged(3), logged(4, 4)]) == 3
    assert logical_rows([logged(0)]) == 0
    assert logical_rows([logged(3), logged(None)]) is None
    assert logical_rows([]) == 0


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("Zürich", "p=Z%25C3%25BCrich/"),
        ("a b", "p=a%2520b/"),
        ("a%b", "p=a%2525b/"),
        ("a:b", "p=a%253Ab/"),
        ("a/b", "p=a%252Fb/"),
        ("\u3042", "p=%25E3%2581%2582/"),
        ("\u3042" * 99, ""),
    ],
)
def test_outputs_lie_on_portable_paths_whatever_the_partition_is_called(value: str, folder: str) -> None:
    """A remove by delta-rs misses a file whose path engines escape in different ways."""
    table = table_of(add("x", p=value))
    (output,) = write(table, live_group(table, "x")).outputs
    assert output.file.path == f"{folder}Qx/out-0"
    assert is_portable(output.file.path)
    assert json.loads(output.json)["partitionValues"] == {"p": value}


def test_an_output_that_lies_where_an_engine_would_escape_it_is_never_committed() -> None:
    table = table_of(add("x", p="a b"))
    table.honors_random_prefixes = False
    with pytest.raises(PermanentError, match=r"p=a%20b/out-0.*The table is unchanged"):
        write(table, live_group(table, "x"))
    assert table.deleted == ["p=a b/out-0"], "as the store names it"


NARROW = Storage(((Column(("v",), "INT32", "int", (32,)),),), {"snappy": 100})


def test_an_output_that_could_not_hold_a_value_of_the_inputs_is_deleted() -> None:
    table = table_of(add("x"))
    table.storage["out-0"] = NARROW
    with pytest.raises(Unsupported, match="how values are stored"):
        write(table, live_group(table, "x"))
    assert table.deleted == ["out-0"]


def test_an_output_that_holds_more_than_the_inputs_could_is_fine() -> None:
    table = table_of(add("x"))
    table.storage["x"] = NARROW
    assert write(table, live_group(table, "x")).rows == 10


def test_nanoseconds_are_not_rewritten_because_spark_would_cut_them() -> None:
    table = table_of(add("x"))
    table.storage["x"] = Storage(((Column(("t",), "INT64", "timestamp", ("NANOS", True)),),), {})
    with pytest.raises(Unsupported, match="finer than the microseconds"):
        write(table, live_group(table, "x"))
    assert table.options == [], "nothing was written"


@pytest.mark.parametrize(
    ("configuration", "codec", "expected"),
    [({}, "zstd", "zstd"), ({}, "brotli", None), ({"delta.parquet.compression.codec": "GZIP"}, "zstd", "gzip")],
)
def test_outputs_have_the_tables_codec_or_that_of_most_inputs(
    configuration: dict[str, str], codec: str, expected: str | None
) -> None:
    table = table_of({"metaData": METADATA | {"configuration": configuration}}, add("x"))
    table.storage["x"] = Storage(PLAIN.schemas, {codec: 100})
    write(table, live_group(table, "x"))
    assert table.options == [None if expected is None else {"compression": expected}]


@pytest.mark.parametrize(
    ("reason", "refused", "text"),
    [
        (EncodeReason.OLD_CALENDAR, RefusalReason.TYPES, r"in the calendar before 1582 \(columns d, t\)"),
        (EncodeReason.SCHEMA, RefusalReason.DIFFERENCE, "other rows"),
    ],
)
def test_a_difference_is_blamed_on_the_calendar_only_where_an_input_has_the_old_one(
    monkeypatch: pytest.MonkeyPatch, reason: EncodeReason, refused: RefusalReason, text: str
) -> None:
    def differs(*_: object, **__: object) -> None:
        raise Difference("other rows", columns=("d", "t"))

    monkeypatch.setattr(DeltaCopier, "copy", lambda *_: NotCopied(reason))
    table = table_of(add("x"))
    proofs = cast("Proofs", SimpleNamespace(check=differs))
    with pytest.raises(RefusedFiles, match=text) as found:
        writer(table, table.log(), proofs).write(live_group(table, "x"))
    assert found.value.reason is refused
    assert table.deleted == ["out-0"]
