"""A rewrite stores values as its inputs did: same types, same codec, every statistic, the same for each reader."""

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.log import TableLog
from actor.ports import GroupStatus
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark

OLD_DAYS = "DATE'0001-01-01', DATE'1582-10-04', DATE'1582-10-15'"
NEW_DAYS = "DATE'1970-01-01', DATE'2026-10-15'"

INSTANTS = [
    "0001-01-01T00:00:00.000001",
    "1582-10-04T23:59:59.999999",
    "1582-10-15T00:00:00",
    "1677-09-21T00:12:43.145224",
    "1899-12-31T23:59:59.5",
    "2262-04-11T23:47:16.854776",
    "9999-12-31T23:59:59.999999",
]
ARROW = pa.schema([
    ("l", pa.int64()), ("b", pa.bool_()), ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")),
    ("d", pa.date32()), ("m", pa.decimal128(38, 10)), ("k", pa.decimal128(7, 2)), ("f", pa.float64()),
    ("s", pa.string()), ("g", pa.struct([("b", pa.bool_()), ("list", pa.list_(pa.bool_()))])),
])  # fmt: skip


def data(part: int) -> Any:
    """Rows at the edges of each type; each part has other bounds."""
    moments = [datetime.fromisoformat(text) for text in INSTANTS]
    rows = [
        {
            "l": (-1) ** n * (2**62 + part), "b": part == 1, "t": moment.replace(tzinfo=UTC), "n": moment,
            "d": moment.date(), "m": Decimal("-12345678901234567.0000000001") + part, "k": Decimal("1.50"),
            "f": [-0.0, 1e300][part], "s": "ü" * (40 * part) + "x", "g": {"b": True, "list": [False]},
        }
        for n, moment in enumerate(moments)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=ARROW)


def written_by_deltalake(path: Path, codec: str = "ZSTD", **configuration: str) -> Path:
    properties = deltalake.WriterProperties(compression=codec)
    for part in range(2):
        deltalake.write_deltalake(
            str(path), data(part), mode="append", writer_properties=properties, configuration=configuration
        )
    return path


def merge_all(lab: DeltaLab, path: Path, *, may_copy: bool = True) -> dict[str, Any]:
    """Merge all files and return the output's add."""
    location = f"file://{path}"
    group = FileGroup(WHOLE_TABLE, lab.files(location), RewriteMode.FULL)
    outcome = lab.rewrite(location, [group], may_copy=may_copy)
    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED]
    (add,) = tables.added(path, outcome.version or 0)
    return add


def seen(path: Path) -> list[Any]:
    """All rows as deltalake and pyarrow read them."""
    return sorted(map(str, pa.table(deltalake.DeltaTable(str(path)).to_pyarrow_table()).to_pylist()))


def edit_commits(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change each action of each commit by hand, before Spark has seen the table or while it has forgotten it."""
    for log in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            edit(action)
        log.write_text("\n".join(map(json.dumps, actions)))
        for checksum in (log.parent / f".{log.name}.crc", log.with_suffix(".crc")):
            checksum.unlink(missing_ok=True)


def _set_codec(action: dict[str, Any], codec: str) -> None:
    if "metaData" in action:
        action["metaData"]["configuration"]["delta.parquet.compression.codec"] = codec


def _add_bounds_of_booleans(action: dict[str, Any]) -> None:
    if "add" in action:
        stats = json.loads(action["add"]["stats"])
        stats["minValues"]["b"], stats["maxValues"]["b"] = False, True
        action["add"]["stats"] = json.dumps(stats)


def columns_of(path: Path, add: dict[str, Any]) -> dict[str, tuple[str, str]]:
    schema = pq.ParquetFile(path / add["path"]).schema
    columns = [schema.column(i) for i in range(len(schema.names))]
    return {column.path: (column.physical_type, str(column.logical_type)) for column in columns}


def test_every_value_type_and_statistic_of_deltalakes_files_is_kept(lab: DeltaLab) -> None:
    path = written_by_deltalake(lab.directory / "t")
    before = seen(path), lab.digest(str(path))
    (first, *_) = tables.live(path).values()
    types = columns_of(path, first)
    inputs = [json.loads(add["stats"]) for add in tables.live(path).values()]

    add = merge_all(lab, path)

    assert (seen(path), lab.digest(str(path))) == before
    after = columns_of(path, add)
    assert {name: after[name] for name in ("l", "b", "t", "n", "d", "f", "s")} == {
        name: types[name] for name in ("l", "b", "t", "n", "d", "f", "s")
    }
    stats = json.loads(add["stats"])
    for section in ("minValues", "maxValues", "nullCount"):
        assert set(stats[section]) >= {name for logged in inputs for name in logged[section]}
    assert (stats["minValues"]["b"], stats["maxValues"]["b"]) == (False, True)
    assert stats["minValues"]["t"] == "0001-01-01T00:00:00.000001Z"
    assert stats["maxValues"]["t"] == "9999-12-31T23:59:59.999999Z"
    assert stats["maxValues"]["n"] == "9999-12-31T23:59:59.999999"
    assert stats["minValues"]["d"] == "0001-01-01"
    assert '"m":-12345678901234567.0000000001' in add["stats"]
    assert pq.ParquetFile(path / add["path"]).metadata.row_group(0).column(2).statistics.has_min_max


@pytest.mark.parametrize("predicate", ["t >= '2024-01-01 00:00:00.123500Z'", "b = true", "d < '0001-01-02'"])
def test_files_are_skipped_by_statistics_that_hold_for_every_row(lab: DeltaLab, predicate: str) -> None:
    path = lab.directory / "t"
    row = {"b": True, "t": datetime(2024, 1, 1, 0, 0, 0, 123999, UTC), "d": date(1, 1, 1)}
    for _ in range(2):
        schema = pa.schema([field for field in ARROW if field.name in row])
        deltalake.write_deltalake(str(path), pa.Table.from_pylist([row], schema=schema), mode="append")

    def found() -> int:
        reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
        (batch,) = pa.table(reader.execute(f"SELECT count(*) rows FROM t WHERE {predicate}")).to_pylist()
        return int(batch["rows"])

    assert found() == 2
    merge_all(lab, path)

    assert found() == 2
    assert lab.spark.read.format("delta").load(str(path)).where(predicate).count() == 2


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_int96_of_others_becomes_microseconds_of_the_same_instants(lab: DeltaLab, zone: str) -> None:
    path = lab.directory / "t"
    session = lab.spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    listed = ", ".join(f"TIMESTAMP '{text}Z'" for text in INSTANTS)
    for _ in range(2):
        session.sql(f"SELECT explode(array({listed})) t").coalesce(1).write.format("delta").mode("append").save(
            str(path)
        )
    before = lab.digest(str(path))
    assert columns_of(path, next(iter(tables.live(path).values())))["t"][0] == "INT96"

    add = merge_all(lab, path)

    assert columns_of(path, add)["t"][0] == "INT64"
    assert lab.digest(str(path)) == before
    assert json.loads(add["stats"])["maxValues"]["t"] == "9999-12-31T23:59:59.999999Z"
    instants = {datetime.fromisoformat(text).replace(tzinfo=UTC) for text in INSTANTS}
    assert set(pa.table(deltalake.DeltaTable(str(path)).to_pyarrow_table())["t"].to_pylist()) == instants


@pytest.mark.parametrize(("days", "status"), [(OLD_DAYS, GroupStatus.REFUSED), (NEW_DAYS, GroupStatus.COMMITTED)])
def test_dates_written_in_the_old_calendar_are_merged_where_all_readers_see_the_same_days(
    lab: DeltaLab, days: str, status: GroupStatus
) -> None:
    """Spark names that calendar in the footer of every file that it writes in its mode for it; few readers ask."""
    path = lab.directory / "t"
    session = lab.spark.newSession()
    for mode in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
        session.conf.set(f"spark.sql.parquet.{mode}", "LEGACY")
    for _ in range(2):
        rows = session.sql(f"SELECT explode(array({days})) d").coalesce(1)
        rows.write.format("delta").mode("append").save(str(path))
    before = lab.digest(str(path))

    (end,) = lab.rewrite(str(path), [lab.group(str(path), count=2)]).groups

    assert end.status is status, end.error
    assert (end.error is None) or "calendar" in str(end.error)
    assert lab.digest(str(path)) == before


def test_an_output_less_precise_than_its_inputs_is_not_committed(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written_by_deltalake(lab.directory / "t")
    version, on_disk = tables.newest(path), tables.parquet_files(path)
    frame = TableLog.frame

    def int96(log: TableLog, snapshot: Any, adds: Any) -> Any:
        log.session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
        return frame(log, snapshot, adds)

    monkeypatch.setattr(TableLog, "frame", int96)
    try:
        (end,) = lab.rewrite(str(path), [lab.group(str(path), count=2)], may_copy=False).groups
    finally:
        for session, _ in lab.engine._sessions._idle:
            session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

    assert end.status is GroupStatus.REFUSED
    assert re.search(r"column 't' is stored as INT64 .*MICROS.* and would become INT96", str(end.error))
    assert tables.newest(path) == version
    assert tables.parquet_files(path) == on_disk


def test_nanoseconds_are_refused(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t")
    adds = [table.new_file(5, {}) for _ in range(2)]
    field = {"name": "t", "type": "timestamp", "nullable": True, "metadata": {}}
    for add in adds:
        nanos = pa.table({"t": pa.array([1, 2, 3, 4, 5], pa.timestamp("ns", "UTC"))})
        pq.write_table(nanos, table.path / add["path"], version="2.6")
        add["size"] = (table.path / add["path"]).stat().st_size
        add["stats"] = json.dumps({"numRecords": 5})
    schema = json.dumps({"type": "struct", "fields": [field]})
    table.commit([{"metaData": table.metadata(schemaString=schema)}, *({"add": add} for add in adds)])

    (end,) = lab.rewrite(table.location, [lab.group(table.location, count=2)]).groups

    assert end.status is GroupStatus.REFUSED
    assert "finer than the microseconds" in str(end.error)

    assert tables.newest(table.path) == table.version


@pytest.mark.parametrize("codec", ["ZSTD", "GZIP", "UNCOMPRESSED", "LZ4_RAW", "SNAPPY"])
def test_the_inputs_codec_is_kept(lab: DeltaLab, codec: str) -> None:
    path = written_by_deltalake(lab.directory / "t", codec)

    add = merge_all(lab, path)

    metadata = pq.ParquetFile(path / add["path"]).metadata
    assert metadata.row_group(0).column(0).compression == codec.removesuffix("_RAW")


def test_the_tables_own_codec_goes_before_that_of_the_inputs(lab: DeltaLab) -> None:
    path = written_by_deltalake(lab.directory / "t")
    edit_commits(path, lambda action: _set_codec(action, "GZIP"))

    add = merge_all(lab, path)

    assert pq.ParquetFile(path / add["path"]).metadata.row_group(0).column(0).compression == "GZIP"


def test_statistics_that_the_table_excludes_are_not_added(lab: DeltaLab) -> None:
    path = lab.directory / "t"
    lab.sql(
        f"CREATE TABLE delta.`{path}` (l BIGINT, b BOOLEAN, t TIMESTAMP) USING DELTA "
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'l')"
    )
    for part in range(2):
        lab.sql(f"INSERT INTO delta.`{path}` VALUES ({part}, true, TIMESTAMP'2026-01-01 00:00:00')")

    stats = json.loads(merge_all(lab, path)["stats"])

    assert stats["minValues"] == {"l": 0}
    assert set(stats["nullCount"]) == {"l"}


def test_bounds_are_exact_after_deletion_vectors_hid_rows(lab: DeltaLab) -> None:
    path = lab.directory / "t"
    lab.sql(
        f"CREATE TABLE delta.`{path}` (l BIGINT, b BOOLEAN) USING DELTA "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for start in (0, 10):
        lab.sql(f"INSERT INTO delta.`{path}` SELECT id, id = {start} FROM range({start}, {start + 10}, 1, 1)")
    lines = [json.loads(add["stats"]) for add in tables.live(path).values()]
    assert all("b" not in stats["minValues"] for stats in lines), "Spark's Delta writes no bounds of booleans"
    lab.sql(f"DELETE FROM delta.`{path}` WHERE b")
    edit_commits(path, _add_bounds_of_booleans)  # As deltalake would have written them.
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    stats = json.loads(merge_all(lab, path)["stats"])

    assert (stats["minValues"]["b"], stats["maxValues"]["b"]) == (False, False)
    assert (stats["minValues"]["l"], stats["numRecords"]) == (1, 18)


@pytest.mark.parametrize("mode", ["id", "name"])
def test_field_ids_of_mapped_columns_are_kept(lab: DeltaLab, mode: str) -> None:
    path = lab.directory / "t"
    lab.sql(
        f"CREATE TABLE delta.`{path}` (`a b` BIGINT, s STRUCT<`c d`: TIMESTAMP>) USING DELTA "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    for part in range(2):
        lab.sql(f"INSERT INTO delta.`{path}` SELECT {part}, struct(TIMESTAMP'1500-01-01 00:00:00')")
    (first, *_) = tables.live(path).values()

    def ids(add: dict[str, Any]) -> list[Any]:
        schema = pq.read_schema(path / add["path"])
        return [schema.field(i).metadata[b"PARQUET:field_id"] for i in range(len(schema.names))]

    add = merge_all(lab, path)

    assert ids(add) == ids(first) != []
