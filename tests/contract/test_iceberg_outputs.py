"""What a rewrite of an Iceberg table writes: values of every type, tags, partitions, and its history."""

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from actor.ports import GroupStatus
from shared.errors import Unsupported
from shared.formats.options import FormatOptions
from shared.partitions import WHOLE_TABLE

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark


@pytest.mark.long("iceberg")
def test_files_that_compress_well_become_one_file(ice: "IcebergLab") -> None:
    """Iceberg measures a growing file by its rows before compression, and begins another one beyond a size."""
    table = ice.create("t", properties={"write.parquet.compression-codec": "zstd"})
    for number in range(2):
        ice.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, concat(repeat('the same again ', 40), id), 0, "
            f"date'2026-01-01', timestamp'2026-01-01' FROM range({number * 4000}, {number * 4000 + 4000})"
        )
    live = ice.live(table, WHOLE_TABLE)
    assert len(live) == 2
    outcome = ice.rewrite(table, live)
    assert [len(group.outputs) for group in outcome.groups] == [1]
    assert len(ice.rows(table)) == 8000


@pytest.mark.long("iceberg")
def test_values_of_several_types_and_files_of_several_formats_stay(ice: "IcebergLab") -> None:
    table = ice.create("t")
    java, types = ice.java(table), "org.apache.iceberg.types.Types"
    resolve = ice.engine._scala.resolve
    java.updateSchema().addColumn("u", resolve(f"{types}$UUIDType").get()).addColumn(
        "f", resolve(f"{types}$FixedType").ofLength(4)
    ).commit()
    ice.sql(f"ALTER TABLE {table} ADD COLUMNS (s STRUCT<a: INT, m: MAP<STRING, ARRAY<DECIMAL(38, 9)>>>)")
    for number, file_format in enumerate(("parquet", "orc", "avro")):
        ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default'='{file_format}')")
        ice.sql(
            f"INSERT INTO {table} SELECT {number}, NULL, NULL, NULL, timestamp'0001-01-01 00:00:00.000001', "
            f"'f79c3e09-677c-4bbd-a479-3f349cb785e{number}', CAST(X'000102FF' AS BINARY), "
            f"named_struct('a', CAST(NULL AS INT), 'm', map('k', array(1.5BD, NULL)))"
        )
    # As text: Python has no dates before the year 1 in other zones.
    text = f"SELECT to_json(struct(*)) FROM {table} ORDER BY 1"
    rows = [row[0] for row in ice.sql(text).collect()]
    outcome = ice.rewrite(table, ice.live(table, WHOLE_TABLE))
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert [row[0] for row in ice.sql(text).collect()] == rows
    assert len(rows) == 3


@pytest.mark.long("iceberg")
def test_columns_whose_names_differ_in_case_alone_keep_their_values(ice: "IcebergLab") -> None:
    table = ice.create("t")
    java = ice.java(table)
    text = ice.engine._scala.resolve("org.apache.iceberg.types.Types$StringType").get()
    java.updateSchema().caseSensitive(True).addColumn("V", text).commit()
    ice.session.conf.set("spark.sql.caseSensitive", "true")
    for number in range(2):
        ice.sql(f"INSERT INTO {table} VALUES ({number}, 'v{number}', 1, NULL, NULL, 'V{number}')")
    wanted = [(number, f"v{number}", f"V{number}") for number in range(2)]
    outcome = ice.rewrite(table, ice.live(table, WHOLE_TABLE))
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert sorted(tuple(row) for row in ice.sql(f"SELECT id, v, V FROM {table}").collect()) == wanted


@pytest.mark.long("iceberg")
def test_tags_of_outputs_are_found_again_by_decider_and_actor(ice: "IcebergLab") -> None:
    table = ice.create("t")
    ice.append(table, 0)
    ice.append(table, 1)
    ice.rewrite(table, ice.live(table, WHOLE_TABLE), tags={"lakewright.idle_compacted": "1"})
    assert [file.tags for file in ice.live(table, WHOLE_TABLE)] == [{"lakewright.idle_compacted": "1"}]
    snapshot = asyncio.run(ice.reader(table).snapshot())
    assert [file.tags for file in snapshot.files] == [{"lakewright.idle_compacted": "1"}]


@pytest.mark.long("iceberg")
def test_a_refused_table_is_left_alone(ice: "IcebergLab") -> None:
    table = ice.create("t")
    ice.append(table, 0)
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('encryption.key-id'='k')")
    with pytest.raises(Unsupported, match="encrypted"):
        ice.engine.read_partition(ice.location(table), WHOLE_TABLE)


@pytest.mark.long("contracts")
def test_both_sides_name_the_partitions_of_every_type_alike(ice: "IcebergLab") -> None:
    """A key that decider and actor spelled in two ways would be a job that finds nothing, again and again."""
    kinds = {
        "s": ("STRING", "s", ["'a b/c=d'", "''", "null", "'null'"]),
        "i": ("INT", "i", ["-7", "null"]),
        "l": ("BIGINT", "l", ["9007199254740993"]),
        "b": ("BOOLEAN", "b", ["true", "null"]),
        "d": ("DATE", "d", ["date'1969-12-31'", "date'2026-02-28'"]),
        "t": ("TIMESTAMP", "t", ["timestamp'2026-01-01 01:02:03.000456'", "timestamp'1969-12-31 23:00:00'"]),
        "n": ("TIMESTAMP_NTZ", "n", ["timestamp_ntz'2026-01-01 01:02:03.5'"]),
        "c": ("DECIMAL(9,2)", "c", ["12.30", "-0.05"]),
        "y": ("BINARY", "y", ["X'00FF'", "null"]),
        "f": ("DOUBLE", "f", ["0.1D", "1e300D"]),
        "g": ("FLOAT", "g", ["0.1F", "-0.5F"]),
        "year": ("TIMESTAMP", "years(year)", ["timestamp'1969-05-05 00:00:00'", "timestamp'2026-05-05 00:00:00'"]),
        "month": ("DATE", "months(month)", ["date'1969-12-31'", "date'2026-12-31'"]),
        "hour": ("TIMESTAMP", "hours(hour)", ["timestamp'1969-12-31 22:10:00'", "timestamp'2026-05-05 07:00:00'"]),
        "cut": ("STRING", "truncate(2, cut)", ["'abcdef'", "''"]),
        "bucketed": ("STRING", "bucket(7, bucketed)", ["'abcdef'", "null"]),
    }
    from tests.support.iceberg_lab import by_partition

    for name, (kind, transform, values) in kinds.items():
        ice.sql(f"CREATE TABLE ice.db.k_{name} ({name} {kind}) USING iceberg PARTITIONED BY ({transform})")
        rows = ", ".join(f"({value})" for value in values)
        ice.sql(f"INSERT INTO ice.db.k_{name} VALUES {rows}")
        found = by_partition(asyncio.run(ice.reader(f"ice.db.k_{name}").snapshot()))
        assert len(found) == len(values), (name, found)
        for partition, paths in found.items():
            assert {file.path for file in ice.live(f"ice.db.k_{name}", partition)} == paths, (name, partition)


@pytest.mark.long("iceberg")
@pytest.mark.redis
def test_decider_and_actor_serve_a_table_from_its_first_read_to_the_history(ice: "IcebergLab", redis_url: str) -> None:
    from actor.engines import EngineSet
    from actor.heartbeat import Heartbeat, LeaseTimes
    from actor.queue_executor import SyncQueueExecutor, connect
    from actor.worker import ActorContext, Worker, WorkerSettings
    from tests.support.live_decider import LiveDecider, decider_settings

    table = ice.create("t", by="dt")
    for number in range(9):
        ice.append(table, number)
    rows = ice.rows(table)
    decider = LiveDecider(decider_settings(redis_url, formats=FormatOptions(iceberg_folders=True))).start()
    heartbeat = Heartbeat(SyncQueueExecutor(connect(redis_url), "default"), "a-1", LeaseTimes())
    heartbeat.start()
    try:
        answer = decider.post("/v1/tables", {"location": ice.location(table), "name": "t"})
        decider.drain()
        assert answer.is_success, answer.text
        before = decider.partitions("t")
        assert {state.files for state in before.values()} == {9}
        queue = SyncQueueExecutor(connect(redis_url), "default")
        worker = Worker(
            EngineSet([ice.engine]), queue, ActorContext("a-1", heartbeat, threading.Event()), WorkerSettings()
        )
        while worker.run_next():
            pass
        assert ice.rows(table) == rows
        decider.sweep()
        after = decider.partitions("t")
        live = asyncio.run(ice.reader(table).snapshot()).files
        assert sum(state.files for state in after.values()) == len(live) < 18
        assert sum(state.bytes for state in after.values()) == sum(file.size_bytes for file in live)
        events = decider.get("/v1/tables/t/optimizations")["optimizations"]
        assert sum(event["input"]["num_files"] - event["output"]["num_files"] for event in events) == 18 - len(live)
    finally:
        heartbeat.close()
        decider.close()
