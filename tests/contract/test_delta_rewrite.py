"""The exact rewrite replaces precisely what was planned and changes nothing that a reader can see."""

import json
import shutil
import threading
import time
from typing import Any

import pyarrow.parquet as pq
import pytest

from actor.formats.delta.engine import DeltaEngine
from actor.formats.delta.log import TableLog
from actor.formats.delta.row_tasks import RowTasks
from actor.ports import GroupStatus
from shared.errors import RefusedFiles
from shared.layout.commit_metadata import with_proofread
from shared.layout.partition_stats import IDLE_COMPACTED_TAG
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE, partition_key
from shared.table import FileKey, PartitionColumn, PartitionKey
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, PARTITION_2, DeltaLab, mark
from tests.support.large_files import everything
from tests.support.steering import Steering
from tests.support.time_limits import scaled

pytestmark = [pytest.mark.spark, pytest.mark.quick]


def test_exactly_the_planned_files_are_replaced_in_one_commit_that_changes_no_data(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", days=True)
    before, version = lab.digest(table.location), table.version
    group = lab.group(table.location, PARTITION_1, first=1)
    control, begun_ms = Steering(), int(time.time() * 1000)

    outcome = lab.rewrite(table.location, [group], control, job="j-1", token=7)

    new = version + 1
    assert outcome.version == new
    assert outcome.conflicts == 0
    assert control.calls == ["files_written", "may_commit", "committed"]
    assert tables.removed(table.path, new) == {file.path for file in group.files}
    (add,) = tables.added(table.path, new)
    assert add["partitionValues"] == {"dt": tables.DAY_1}
    assert json.loads(add["stats"])["numRecords"] == 80
    assert json.loads(add["stats"])["minValues"]["id"] >= 0
    bodies = [
        body for action in tables.actions(table.path, new) for kind, body in action.items() if kind != "commitInfo"
    ]
    assert {body["dataChange"] for body in bodies} == {False}
    removed_ms = [body["deletionTimestamp"] for body in bodies if "deletionTimestamp" in body]
    assert [begun_ms <= at_ms <= time.time() * 1000 for at_ms in removed_ms] == [True] * 4, "a vacuum goes by them"
    assert len(tables.live(table.path)) == 12 - 3
    assert lab.digest(table.location) == before
    assert lab.digest(table.location, version=version) == before

    (end,) = outcome.groups
    assert (end.group, end.status, end.rows) == (group, GroupStatus.COMMITTED, 80)
    assert [file.path for file in end.outputs] == [add["path"]]
    assert end.outputs[0] in lab.files(table.location, PARTITION_1)


def test_history_shows_the_rewrite_with_its_numbers_and_its_origin(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group = lab.group(table.location)

    lab.rewrite(table.location, [group], job="j-9", token=3)

    (last,) = lab.sql(f"DESCRIBE HISTORY delta.`{table.location}` LIMIT 1")
    assert last.operation == "OPTIMIZE"
    assert last.isolationLevel == "SnapshotIsolation"
    assert last.userMetadata == with_proofread(mark("j-9", 3), "rows")
    assert last.operationMetrics["numRemovedFiles"] == "4"
    assert last.operationMetrics["numAddedFiles"] == "1"
    assert last.operationMetrics["numRemovedBytes"] == str(group.bytes)


def test_history_shows_figures_that_need_more_than_32_bits(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=1)
    with lab.engine._sessions.lease(tag="t") as owned, lab.engine._sessions.bound(owned):
        log = TableLog(lab.engine._scala, owned.session, table.location)
        version = log.commit_vacuum_end({"numDeletedFiles": 5_000_000_000})
    assert tables.commit_info(table.path, version)["operationMetrics"]["numDeletedFiles"] == "5000000000"


def test_a_stream_that_reads_the_table_sees_each_row_once(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=6)
    checkpoint, out = lab.directory / "checkpoint", lab.directory / "out"

    def drain() -> int:
        stream = lab.spark.readStream.format("delta").load(table.location).writeStream.format("parquet")
        stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(
            str(out)
        ).awaitTermination()
        return lab.spark.read.parquet(str(out)).count()

    first = drain()
    lab.rewrite(table.location, [lab.group(table.location)])
    table.append(rows=5)

    assert (first, drain()) == (120, 125)


def test_several_groups_of_several_partitions_land_in_one_commit_and_keep_their_row_ids(lab: DeltaLab) -> None:
    location = str(lab.directory / "t")
    lab.sql(
        f"CREATE TABLE delta.`{location}` (id BIGINT, dt DATE) USING DELTA PARTITIONED BY (dt) TBLPROPERTIES "
        "('delta.enableRowTracking'='true', 'delta.enableDeletionVectors'='true')"
    )
    for _ in range(2):
        rows = lab.spark.range(0, 120, 1, 4).selectExpr("id", "date_add(date'2026-01-01', int(id % 2)) dt")
        rows.write.format("delta").mode("append").save(location)
    lab.sql(f"DELETE FROM delta.`{location}` WHERE id % 7 = 0")

    def row_ids() -> list[object]:
        frame = lab.spark.read.format("delta").load(location)
        return sorted(map(tuple, frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()))

    before = row_ids()
    files = {partition: lab.files(location, partition) for partition in (PARTITION_1, PARTITION_2)}
    groups = [
        FileGroup(PARTITION_1, files[PARTITION_1][:4], RewriteMode.MINOR),
        FileGroup(PARTITION_1, files[PARTITION_1][4:], RewriteMode.MINOR),
        FileGroup(PARTITION_2, files[PARTITION_2], RewriteMode.PURGE),
    ]

    outcome = lab.rewrite(location, groups)

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED] * 3
    assert [end.group for end in outcome.groups] == groups
    assert len(tables.live(lab.directory / "t")) == 3
    assert row_ids() == before
    tags = tables.commit_info(lab.directory / "t", outcome.version or 0)["tags"]
    assert tags["delta.rowTracking.preserved"] == "true"


def test_partitions_of_null_and_several_partitions_are_rewritten(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", partitions={"dt": "date"})
    table.commit([{"add": table.new_file(10, {"dt": value})} for value in (None, None, tables.DAY_1, tables.DAY_1)])
    before = tables.rows(table.path)
    groups = [lab.group(table.location, lab.partition(dt=value), count=2) for value in (None, tables.DAY_1)]

    outcome = lab.rewrite(table.location, groups)

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED] * 2
    assert [end.group for end in outcome.groups] == groups
    assert len(tables.live(table.path)) == 2
    assert tables.rows(table.path) == before


def test_an_output_carries_the_tags_of_its_group_and_shows_them_to_the_next_plan(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    files = lab.files(table.location)
    group = FileGroup(WHOLE_TABLE, files, RewriteMode.IDLE, {IDLE_COMPACTED_TAG: "1"})

    outcome = lab.rewrite(table.location, [group])

    assert outcome.groups[0].outputs[0].tags[IDLE_COMPACTED_TAG] == "1"
    (add,) = tables.added(table.path, outcome.version or 0)
    assert add["tags"][IDLE_COMPACTED_TAG] == "1"
    assert [file.tags[IDLE_COMPACTED_TAG] for file in lab.files(table.location)] == ["1"]


def test_deletion_vectors_are_purged_and_a_wrong_vector_is_refused(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4, deletion_vectors=True)
    lab.sql(f"DELETE FROM delta.`{table.location}` WHERE id % 5 = 0")
    before = lab.digest(table.location)
    files = lab.files(table.location)
    assert {(file.dv_id, file.path) for file in files} == {(dv, path) for path, dv in tables.live(table.path)}
    assert [(file.rows, file.deleted_rows) for file in files] == [(20, 4)] * 4
    single, rest = (
        FileGroup(WHOLE_TABLE, files[:1], RewriteMode.PURGE),
        FileGroup(WHOLE_TABLE, files[1:], RewriteMode.MINOR),
    )

    outcome = lab.rewrite(table.location, [single])

    (add,) = tables.added(table.path, outcome.version or 0)
    assert "deletionVector" not in add
    assert outcome.groups[0].rows == json.loads(add["stats"])["numRecords"] == 16
    assert lab.rewrite(table.location, [rest]).groups[0].rows == 48
    assert lab.rewrite(table.location, [single]).groups[0].status is GroupStatus.CONFLICTED
    assert lab.digest(table.location) == before
    assert {file.key for file in lab.files(table.location)} == {FileKey(path) for path, _ in tables.live(table.path)}


VALUES = """
    id, CAST(IF(id % 7 = 0, NULL, id % 5) AS INT) AS n, IF(id % 4 = 0, NULL, concat('v', repeat('x', id % 60))) AS t,
    CAST(id AS DECIMAL(20, 3)) / 7 AS d, id + 0.5D AS f, DATE'2026-01-01' + CAST(id AS INT) AS at,
    IF(id % 5 = 0, NULL, named_struct('a', id, 'l', array(id, NULL))) AS s, DATE'2026-01-01' AS day"""


def test_a_task_leaves_hidden_rows_out_as_spark_does_with_the_same_statistics(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two copies of a table, of which one permits Spark alone."""
    merge, tasks = RowTasks.merge, list[int]()
    monkeypatch.setattr(RowTasks, "merge", lambda *given: tasks.append(1) or merge(*given))
    first = lab.directory / "a"
    lab.sql(
        f"CREATE TABLE delta.`{first}` USING delta PARTITIONED BY (day) "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS SELECT {VALUES} FROM range(0, 150, 1, 1)"
    )
    lab.sql(f"INSERT INTO delta.`{first}` SELECT {VALUES} FROM range(100, 300, 1, 1)")
    lab.sql(f"DELETE FROM delta.`{first}` WHERE id % 3 = 0 OR id > 290")
    shutil.copytree(first, lab.directory / "b")
    partition, found = lab.partition(day="2026-01-01"), list[tuple[Any, ...]]()
    for name, may_copy in (("a", True), ("b", False)):
        location = str(lab.directory / name)
        before, files = lab.digest(location), lab.files(location, partition)
        assert all(file.dv_id for file in files)
        outcome = lab.rewrite(location, [FileGroup(partition, files, RewriteMode.PURGE)], may_copy=may_copy)
        (group,) = outcome.groups
        because = "deletion_vector" if may_copy else "switched_off"
        assert (group.status, group.encoded_because, len(tasks)) == (GroupStatus.COMMITTED, because, 1)
        assert group.by_column is may_copy
        (added,) = tables.added(lab.directory / name, outcome.version or 0)
        stats, rows = json.loads(added["stats"]), pq.ParquetFile(lab.directory / name / added["path"])
        assert stats["maxValues"].pop("t").startswith("v" + "x" * 31), "cut, and greater than each value"
        bounds = [stats[name] for name in ("numRecords", "minValues", "maxValues")]
        nulls = {column: stats["nullCount"][column] for column in ("id", "n", "t", "d", "f", "at")}
        written = rows.read().to_pylist()
        if may_copy:  # Spark reads the larger file first.
            read = [pq.read_table(lab.directory / name / file.path)["id"].to_pylist() for file in files]
            assert [row["id"] for row in written] == [row for ids in read for row in ids if row % 3 and row <= 290]
        stored = rows.schema_arrow, sorted(written, key=lambda one: one["id"])
        found.append((group.rows, bounds, nulls, stats["nullCount"]["s"]["a"], added["partitionValues"], stored))
        assert lab.digest(location) == before
    assert found[0] == found[1]


def test_a_path_that_is_live_under_two_vectors_is_refused_before_anything_is_written(lab: DeltaLab) -> None:
    """As after a writer that removed a file without naming its vector: Delta would refuse each commit of a copy."""
    table = tables.table(lab.directory / "t", files=6, deletion_vectors=True)
    lab.sql(f"DELETE FROM delta.`{table.location}` WHERE id = 5")
    (doubled,) = (add for (_, vector), add in tables.live(table.path).items() if vector is not None)
    again = {name: value for name, value in doubled.items() if name != "deletionVector"}
    commit = table.path / "_delta_log" / f"{tables.newest(table.path) + 1:020}.json"
    commit.write_text(json.dumps({"add": again}) + "\n")
    files = lab.files(table.location)
    both = tuple(file for file in files if file.path == doubled["path"])
    others = tuple(file for file in files if file.path != doubled["path"])
    assert [len(both), len(others)] == [2, 5]
    groups = [
        FileGroup(WHOLE_TABLE, both[:1] + others[:1], RewriteMode.MINOR),
        FileGroup(WHOLE_TABLE, both[1:] + others[1:2], RewriteMode.MINOR),
        FileGroup(WHOLE_TABLE, others[2:], RewriteMode.MINOR),
    ]
    on_disk = everything(table.path)

    *refused, landed = lab.rewrite(table.location, groups).groups

    assert [end.status for end in refused] == [GroupStatus.REFUSED] * 2
    for end in refused:
        assert isinstance(end.error, RefusedFiles)
        assert end.error.files == (doubled["path"],)
    assert landed.status is GroupStatus.COMMITTED
    assert everything(table.path) == on_disk | {landed.outputs[0].path}
    assert lab.rewrite(table.location, groups[:1]).groups[0].status is GroupStatus.COMMITTED, (
        "one entry alone is no harm"
    )


def test_column_mapping_change_data_feed_identity_and_generated_columns_are_kept(lab: DeltaLab) -> None:
    location = str(lab.directory / "t")
    lab.sql(
        f"CREATE TABLE delta.`{location}` (k BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT, `a b` STRING, dt DATE, "
        "y INT GENERATED ALWAYS AS (YEAR(dt))) USING DELTA PARTITIONED BY (y) TBLPROPERTIES ("
        "'delta.columnMapping.mode'='name', 'delta.enableChangeDataFeed'='true', 'delta.appendOnly'='true')"
    )
    for start in (0, 20):
        rows = lab.spark.range(start, start + 20, 1, 2).selectExpr("id", "concat('s', id) `a b`", "date'2026-01-01' dt")
        rows.write.format("delta").mode("append").save(location)
    before = lab.digest(location)
    metadata = lab.engine.read_partition(location, WHOLE_TABLE).metadata
    (column,) = metadata.partition_columns
    assert column.name == "y"
    assert column.physical.startswith("col-")
    partition = PartitionKey(json.dumps({column.physical: "2026"}, separators=(",", ":")))

    outcome = lab.rewrite(location, [lab.group(location, partition)])

    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert lab.digest(location) == before
    changes = lab.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", outcome.version)
    assert changes.load(location).count() == 0
    lab.sql(f"INSERT INTO delta.`{location}` (id, `a b`, dt) VALUES (999, 'q', date'2026-01-01')")
    (row,) = lab.sql(f"SELECT count(*) n, count(DISTINCT k) keys FROM delta.`{location}`")
    assert row.n == row.keys == 41


@pytest.mark.parametrize(
    ("type_name", "spellings"),
    [
        ("string", [["a b"], ["50%"], ["x:y/z"], ["ü"], [None], ["a=b"], ["q'uo\\te"]]),
        ("timestamp", [["2026-01-01T10:00:00.000000Z", "2026-01-01T10:00:00Z"], ["2026-01-01 11:00:00"], [None]]),
        ("boolean", [["true"], ["false"]]),
        ("decimal(10,2)", [["1.50"], ["-3.00"]]),
    ],
)
def test_partition_values_are_matched_by_meaning_and_keep_their_spelling(
    lab: DeltaLab, type_name: str, spellings: list[list[str | None]]
) -> None:
    table = tables.HandTable(lab.directory / "t", partitions={"p": type_name})
    values = [value for partition in spellings for value in (partition * 2)[:2]]
    table.commit([{"add": table.new_file(10, {"p": value})} for value in values])
    before = lab.digest(table.location)
    columns = (PartitionColumn("p", "p", type_name),)
    keys = [partition_key(columns, {"p": partition[0]}) for partition in spellings]

    outcome = lab.rewrite(table.location, [lab.group(table.location, key, count=2) for key in keys])

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED] * len(spellings)
    seen = {add["path"]: add["partitionValues"]["p"] for add in tables.added(table.path, outcome.version or 0)}
    assert all(seen[end.outputs[0].path] in partition for end, partition in zip(outcome.groups, spellings, strict=True))
    assert [lab.files(table.location, key) for key in keys] == [end.outputs for end in outcome.groups]
    assert lab.digest(table.location) == before


@pytest.mark.parametrize(
    ("type_name", "spellings"),
    [("string", [None, ""]), ("timestamp", ["2026-01-01T10:00:00.000000Z", "2026-01-01 10:00:00"])],
)
def test_files_whose_values_readers_distinguish_are_not_merged(
    lab: DeltaLab, type_name: str, spellings: list[str | None]
) -> None:
    table = tables.HandTable(lab.directory / "t", partitions={"p": type_name})
    table.commit([{"add": table.new_file(10, {"p": value})} for value in spellings])
    key = partition_key((PartitionColumn("p", "p", type_name),), {"p": spellings[0]})
    on_disk = tables.parquet_files(table.path)

    (end,) = lab.rewrite(table.location, [lab.group(table.location, key, count=2)]).groups

    assert end.status is GroupStatus.REFUSED
    assert "different values" in str(end.error)

    assert tables.newest(table.path) == table.version
    assert tables.parquet_files(table.path) == on_disk


def test_the_newest_version_is_read_after_a_checkpoint_and_from_a_fresh_log(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", configuration={"delta.checkpointInterval": "1"})
    for _ in range(3):
        table.append(2)
    lab.rewrite(table.location, [lab.group(table.location, count=2)])
    assert list((table.path / "_delta_log").glob("*.checkpoint*.parquet"))
    table.append(1)
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    live = lab.engine.read_partition(table.location, WHOLE_TABLE)

    assert live.version == table.version
    assert {file.key for file in live.files} == {FileKey(path, dv) for path, dv in tables.live(table.path)}
    lab.rewrite(table.location, [lab.group(table.location)])
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert (
        len(DeltaEngine(lab.spark).read_partition(table.location, WHOLE_TABLE).files)
        == len(tables.live(table.path))
        == 3
    )


def test_constraints_and_nested_types_are_kept(lab: DeltaLab) -> None:
    location = str(lab.directory / "t")
    lab.sql(
        f"CREATE TABLE delta.`{location}` (id BIGINT NOT NULL, s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>, "
        "n TIMESTAMP_NTZ, w INT) USING DELTA TBLPROPERTIES ('delta.enableTypeWidening'='true', "
        "'delta.enableInCommitTimestamps'='true', 'delta.checkpointPolicy'='v2')"
    )
    lab.sql(f"ALTER TABLE delta.`{location}` ADD CONSTRAINT positive CHECK (id >= 0)")
    select = "SELECT id, struct(int(id) a, array('q') b) s, map('k', 1) m, timestamp_ntz'2026-01-01 00:00:00' n, 1 w"
    lab.sql(f"INSERT INTO delta.`{location}` {select} FROM range(0, 20, 1, 2)")
    lab.sql(f"ALTER TABLE delta.`{location}` ALTER COLUMN w TYPE BIGINT")
    lab.sql(f"INSERT INTO delta.`{location}` {select} FROM range(20, 40, 1, 2)")
    columns = ["id", "s", "n", "w"]
    before = lab.digest(location, columns=columns)

    lab.rewrite(location, [lab.group(location)])

    assert lab.digest(location, columns=columns) == before
    assert len(lab.files(location)) == 1


def test_two_threads_on_two_tables_sign_their_own_commits(lab: DeltaLab) -> None:
    made = [tables.table(lab.directory / f"t{i}", files=4) for i in range(2)]
    groups = [lab.group(table.location) for table in made]
    barrier = threading.Barrier(2)
    versions: list[int | None] = [None, None]

    def work(i: int) -> None:
        control = Steering(before_commit=[lambda: barrier.wait(scaled(60))])
        versions[i] = lab.rewrite(made[i].location, [groups[i]], control, job=f"job-{i}", token=i).version

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))

    signed = [tables.commit_info(made[i].path, versions[i] or 0)["userMetadata"] for i in range(2)]
    assert signed == [with_proofread(mark(f"job-{i}", i), "rows") for i in range(2)]


def test_two_rewrites_of_one_table_in_two_partitions_both_land(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", days=True)
    before = tables.rows(table.path)
    groups = [lab.group(table.location, partition) for partition in (PARTITION_1, PARTITION_2)]
    barrier = threading.Barrier(2)
    outcomes: dict[int, object] = {}

    def work(i: int) -> None:
        control = Steering(before_commit=[lambda: barrier.wait(scaled(60))])
        outcomes[i] = lab.rewrite(table.location, [groups[i]], control, token=i).version

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))

    assert set(outcomes.values()) == {table.version + 1, table.version + 2}
    assert tables.rows(table.path) == before


def test_nothing_that_a_session_was_given_is_left_on_the_callers_thread(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    lab.rewrite(table.location, [lab.group(table.location)])

    table.append()
    lab.spark.range(20, 30).selectExpr("id", "'v' v", "1 x").write.format("delta").mode("append").save(table.location)

    assert "userMetadata" not in tables.commit_info(table.path, tables.newest(table.path))
    assert lab.spark.sparkContext.getLocalProperty("spark.scheduler.pool") is None
    assert not list(lab.spark.sparkContext.getJobTags())
