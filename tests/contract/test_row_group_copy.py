"""A group whose row groups are copied: nothing is decoded, nothing is lost, and nothing stays behind on a failure."""

import json
import math
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.engine import EngineSettings
from actor.formats.parquet.copy_rules import CopyLimits
from actor.jvm.scala import jvm_context
from actor.ports import GroupOutcome, GroupStatus, RewriteRequest
from shared.errors import Corrupt, RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.contract.test_parquet_footers import chunk_of, footer, summaries, texts_of, with_footer
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab, mark
from tests.support.forced_copies import FORCED_LIMITS, NEVER_COPIES
from tests.support.large_files import everything, large_table
from tests.support.steering import Steering
from tests.support.time_limits import scaled
from tests.support.waiting import until

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark


@pytest.fixture
def copying(lab: DeltaLab) -> DeltaLab:
    """An engine that copies wherever that is exact, however small row groups are."""
    return lab.copying()


@pytest.fixture(params=[FORCED_LIMITS, NEVER_COPIES], ids=["copied", "by column"])
def limits(request: pytest.FixtureRequest) -> CopyLimits:
    limits: CopyLimits = request.param
    return limits


@pytest.fixture
def either(lab: DeltaLab, limits: CopyLimits) -> DeltaLab:
    """An engine that copies, or encodes by column, whatever it could copy."""
    return lab.copying(limits)


def rewritten(lab: DeltaLab, location: str) -> GroupOutcome:
    """Merge all files of a table, and return what became of them."""
    group = FileGroup(WHOLE_TABLE, lab.files(location), RewriteMode.MINOR)
    (end,) = lab.rewrite(location, [group]).groups
    assert end.status is GroupStatus.COMMITTED
    return end


def replaced(table: tables.HandTable, write: Any) -> None:
    """Write the data files of a table again, each as `write` (rows, path) does."""
    for name, _ in tables.live(table.path):
        write(pq.read_table(table.path / name), table.path / name)
    log_sizes(table.path)


def log_sizes(table: Path) -> None:
    """Write the sizes that the data files of a table have now into its log."""
    for log in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            add["size"] = (table / add["path"]).stat().st_size
        log.write_text("\n".join(map(json.dumps, actions)))


SEVERAL_PAGES: dict[str, Any] = {
    "row_group_size": 7,
    "data_page_size": 1,
    "write_batch_size": 2,
    "write_page_index": True,
    "bloom_filter_options": {"id": True},
}
"""Pages of two rows with indexes, and a filter of the ids for each row group."""


def filters_of_ids(lab: DeltaLab, path: Path) -> list[bytes]:
    """Return the Bloom filter of the first column of each row group, as the file holds it."""
    content = path.read_bytes()
    columns = [group.getColumns().get(0).getMeta_data() for group in footer(lab, content).getRow_groups()]
    return [content[one.getBloom_filter_offset() :][: one.getBloom_filter_length()] for one in columns]


def test_row_groups_are_copied_with_all_that_their_writer_left_beside_them(copying: DeltaLab) -> None:
    table = tables.table(copying.directory / "t", files=3)
    replaced(table, lambda rows, path: pq.write_table(rows, path, **SEVERAL_PAGES))
    before = tables.rows(table.path)
    paths = [table.path / file.path for file in copying.files(table.location)]
    inputs = [pq.ParquetFile(path).metadata for path in paths]

    end = rewritten(copying, table.location)

    assert (end.is_copied, end.encoded_because, end.rows) == (True, "", 60)
    assert tables.rows(table.path) == before
    (output,) = end.outputs
    found = pq.ParquetFile(table.path / output.path).metadata
    assert found.num_row_groups == sum(given.num_row_groups for given in inputs) == 9
    assert found.created_by == inputs[0].created_by
    assert found.metadata == inputs[0].metadata
    chunks = [found.row_group(n).column(0) for n in range(9)]
    assert all(chunk.has_column_index and chunk.has_offset_index for chunk in chunks)
    groups = footer(copying, (table.path / output.path).read_bytes()).getRow_groups()
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    assert [group.getFile_offset() for group in groups] == starts, "a reader that splits a file goes by them"
    stats = json.loads(tables.live(table.path)[output.path, None]["stats"])
    assert (stats["numRecords"], stats["minValues"], stats["maxValues"]) == (60, {"id": 0}, {"id": 59})
    filters = [one for path in paths for one in filters_of_ids(copying, path)]
    assert filters_of_ids(copying, table.path / output.path) == filters
    # Each row is found by the indexes of its pages, and by the filter of its row group.
    read = copying.spark.read.format("delta").load(str(table.path))
    assert [[row.v for row in read.where(f"id = {number}").collect()] for number in (1, 33, 59)] == [
        ["v1"], ["v33"], ["v59"]
    ]  # fmt: skip


ENDS = [
    (RewriteMode.MINOR, 1, "small_row_groups"),
    (RewriteMode.MINOR, 1 << 30, ""),
    (RewriteMode.IDLE, 1 << 30, "small_row_groups"),
    (RewriteMode.FULL, 1 << 30, "small_row_groups"),
]


@pytest.mark.long("contracts")
def test_with_the_default_limits_small_row_groups_are_copied_only_where_levels_merge_them_again(lab: DeltaLab) -> None:
    """Not into a full file, nor by an idle or a full rewrite, whose outputs are final whatever their size."""
    engine, found = lab.with_settings(EngineSettings()).engine, []
    for number, (mode, full_bytes, _) in enumerate(ENDS):
        table = tables.table(lab.directory / f"t{number}", files=4)
        before = tables.rows(table.path)
        group = FileGroup(WHOLE_TABLE, lab.files(table.location), mode)
        request = RewriteRequest(table.location, (group,), mark("job", 1), full_bytes=full_bytes)
        (end,) = engine.rewrite(request, Steering()).groups
        (output,) = end.outputs
        assert tables.rows(table.path) == before
        row_groups = pq.ParquetFile(table.path / output.path).metadata.num_row_groups
        found.append((mode, full_bytes, end.encoded_because))
        assert (end.is_copied, row_groups) == ((True, 4) if end.encoded_because == "" else (False, 1))
    assert found == ENDS


def test_a_copy_that_grows_to_the_full_size_is_an_obstacle_and_leaves_no_file(lab: DeltaLab) -> None:
    pq.write_table(pa.table({"id": range(10)}), lab.directory / "one.parquet")
    inputs = [lab.directory / "one.parquet"] * 2
    (summary, _) = summaries(lab, *inputs)
    assert (summary["row_groups"], len(summary["codecs"])) == (1, 1)
    ends = [joined(lab, *inputs, end_bytes=end_bytes) for end_bytes in (1, 2 * inputs[0].stat().st_size)]
    assert ends[0] == {"attempt": 0, "obstacle": "full"}
    assert (ends[1]["rows"], ends[1]["row_groups"]) == (20, 2)
    assert [path.name for path in (lab.directory / "out").iterdir()] == [ends[1]["name"]]


def joined(lab: DeltaLab, *files: Path, end_bytes: int = 0) -> dict[str, Any]:
    """What the task says of its output in the folder `out`."""
    context, conf = jvm_context(lab.spark), lab.spark._jsc.hadoopConfiguration()
    where = f"file://{lab.directory}/out", "lw-", ".parquet"
    copied = DeltaScala(lab.spark).group.copied
    said: dict[str, Any] = json.loads(copied(context, conf, *texts_of(files), *where, end_bytes, None))
    return said


def test_files_of_another_schema_and_pages_of_other_values_are_obstacles_and_leave_no_file(lab: DeltaLab) -> None:
    one, other, more = (lab.directory / f"{name}.parquet" for name in ("one", "other", "more"))
    pq.write_table(pa.table({"id": range(10), "list": [[1, 2]] * 10}), one)
    pq.write_table(pa.table({"id": map(str, range(10)), "list": [[1, 2]] * 10}), other)
    more.write_bytes(with_footer(lab, one.read_bytes(), lambda metadata: chunk_of(metadata, 1).setNum_values(21)))
    assert [found["obstacle"] for found in summaries(lab, one, other, more)] == [""] * 3, "the footers say nothing"

    assert joined(lab, one, other) == {"attempt": 0, "obstacle": "schema"}
    assert joined(lab, one, more) == {"attempt": 0, "obstacle": "damaged"}
    assert list((lab.directory / "out").iterdir()) == []
    assert joined(lab, one, one)["rows"] == 20


def test_files_of_other_schemas_and_codecs_are_encoded(copying: DeltaLab) -> None:
    found = []
    for name, options in (("schema", {"data_page_version": "1.0"}), ("mixed_codecs", {"compression": "zstd"})):
        table = tables.table(copying.directory / name, files=2)
        (first, _), *_ = tables.live(table.path)
        rows = pq.read_table(table.path / first)
        rows = rows.cast(pa.schema([f.with_nullable(name != "schema") for f in rows.schema]))
        pq.write_table(rows, table.path / first, **options)
        log_sizes(table.path)
        before = tables.rows(table.path)
        found.append(rewritten(copying, table.location).encoded_because)
        assert tables.rows(table.path) == before
    assert found == ["schema", "mixed_codecs"]


def test_pages_that_do_not_fit_their_footer_are_refused_as_they_are_under_spark(either: DeltaLab) -> None:
    table = tables.table(either.directory / "t", files=2)
    group = either.group(table.location, count=2)
    victim = table.path / group.files[1].path
    chunk = pq.ParquetFile(victim).metadata.row_group(0).column(1)
    with victim.open("r+b") as file:
        file.seek(chunk.data_page_offset)
        file.write(b"\xff" * 8)
    on_disk = everything(table.path)

    (end,) = either.rewrite(table.location, [group]).groups

    assert end.status is GroupStatus.REFUSED
    assert "the table is unchanged" in str(end.error)
    assert everything(table.path) == on_disk
    assert tables.newest(table.path) == table.version


def test_rows_that_differ_from_the_statistics_stop_the_rewrite_loudly(either: DeltaLab) -> None:
    table = tables.table(either.directory / "t", files=3)
    table.append(1, stats=json.dumps({"numRecords": 21}))
    group, on_disk, control = either.group(table.location), everything(table.path), Steering()

    with pytest.raises(Corrupt, match=r"81 rows in by the log statistics, 80 rows out; reading the inputs finds 80"):
        either.rewrite(table.location, [group], control)

    assert control.calls == []
    assert tables.newest(table.path) == table.version
    assert everything(table.path) == on_disk


def test_a_page_that_differs_from_its_checksum_is_neither_copied_nor_encoded_and_the_other_groups_land(
    either: DeltaLab, limits: CopyLimits
) -> None:
    """Snappy has no checksum of its own: what decodes to other values would be written as if it were right."""
    table = tables.table(either.directory / "t", files=4)
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    replaced(table, lambda rows, path: pq.write_table(rows, path, **options))
    files = either.files(table.location)
    groups = [FileGroup(WHOLE_TABLE, files[at : at + 2], RewriteMode.MINOR) for at in (0, 2)]
    spoil(table.path / files[1].path)
    before, on_disk = tables.rows(table.path), everything(table.path)

    failed, landed = either.rewrite(table.location, groups).groups

    assert (failed.status, landed.status) == (GroupStatus.REFUSED, GroupStatus.COMMITTED)
    assert (landed.is_copied, landed.by_column) == (limits is FORCED_LIMITS, limits is NEVER_COPIES)
    advice = ": restore" if limits is FORCED_LIMITS else ".*restore"
    assert re.search(rf"{files[1].path} has a page .* differs from its checksum{advice}", str(failed.error))
    assert everything(table.path) == on_disk | {landed.outputs[0].path}
    assert tables.rows(table.path) == before
    (alone,) = either.rewrite(table.location, groups[:1]).groups
    assert alone.status is GroupStatus.REFUSED, "no retry repairs a file"
    assert re.search(r"differs from its checksum.*the table is unchanged", str(alone.error))


def spoil(file: Path) -> None:
    """Change one value in a page."""
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(0)
    with file.open("r+b") as opened:
        opened.seek(chunk.data_page_offset + chunk.total_compressed_size - 8)
        opened.write(b"\x7f")


def test_a_group_with_an_input_that_cannot_be_read_fails_alone(copying: DeltaLab) -> None:
    """Pages that no one can unpack, and a file without a footer."""
    table = tables.table(copying.directory / "t", files=6)
    files = copying.files(table.location)
    groups = [FileGroup(WHOLE_TABLE, files[at : at + 2], RewriteMode.MINOR) for at in (0, 2, 4)]
    pages, footer = (table.path / files[at].path for at in (1, 3))
    start = pq.ParquetFile(pages).metadata.row_group(0).column(1).data_page_offset
    raw = pages.read_bytes()
    pages.write_bytes(raw[:start] + b"\xff" * 8 + raw[start + 8 :])
    footer.write_bytes(footer.read_bytes()[:-1] + b"X")
    on_disk = everything(table.path)

    outcome = copying.rewrite(table.location, groups)

    assert [end.status for end in outcome.groups] == [GroupStatus.REFUSED] * 2 + [GroupStatus.COMMITTED]
    for end, file in zip(outcome.groups, (pages, footer), strict=False):
        assert file.name in str(end.error)
    assert everything(table.path) == on_disk | {outcome.groups[2].outputs[0].path}
    assert tables.removed(table.path, outcome.version or 0) == {file.path for file in files[4:]}


def test_not_a_number_is_never_beyond_the_bounds_of_a_copy(copying: DeltaLab) -> None:
    """Writers leave it out of the footer's bounds, and readers of Delta take it for the greatest value."""
    path = copying.directory / "t"
    parts = [([1.0, math.nan], {}), ([2.0, 3.0], {"minValues": {"x": 2.0}, "maxValues": {"x": 3.0}})]
    made = deltalake.DeltaTable.create(str(path), pa.schema([("x", pa.float64())]))
    adds = []
    for number, (values, bounds) in enumerate(parts):
        file = path / f"{number}.parquet"
        pq.write_table(pa.table({"x": values}), file)
        stats = json.dumps({"numRecords": 2, "nullCount": {"x": 0}} | bounds)
        add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
        adds.append(json.dumps({"add": add | {"dataChange": True, "stats": stats}}))
    (path / "_delta_log" / f"{made.version() + 1:020d}.json").write_text("\n".join(adds))

    assert rewritten(copying, f"file://{path}").is_copied

    (add,) = tables.live(path).values()
    assert json.loads(add["stats"]) == {"numRecords": 4, "nullCount": {"x": 0}}


def test_a_cancelled_rewrite_ends_its_task_and_leaves_no_file(either: DeltaLab) -> None:
    large = large_table(either.directory / "large", files=20)
    group, on_disk = either.group(large.location, count=20), everything(large.path)
    tracker = either.spark.sparkContext.statusTracker()

    def cancel_when_it_writes() -> None:
        until("the task writes", lambda: everything(large.path) - on_disk, seconds=60)
        either.engine.cancel("job-x")

    thread = threading.Thread(target=cancel_when_it_writes)
    thread.start()
    with pytest.raises(RetryableError, match="the table is unchanged"):
        either.rewrite(large.location, [group], job="job-x")
    thread.join(scaled(60))

    until("the task has ended", lambda: not list(tracker.getActiveJobsIds()), seconds=60)
    until("its file is gone", lambda: everything(large.path) == on_disk, seconds=60)
    assert tables.newest(large.path) == large.version
