"""Row groups of Iceberg tables that are copied as bytes: exact for readers that are not ours, and only where it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from actor.ports import GroupStatus
from shared.layout.planner import RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.contract.test_iceberg_rewrite import KINDS, MERGE_ON_READ
from tests.iceberg_stress.readers import _DuckDb

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark

SHORT = {kind: KINDS[kind] for kind in ("v1", "v1 by value", "v2", "v2 by value", "v2 by bucket")}
EVERY_TYPE = (
    "id BIGINT, f FLOAT, d DOUBLE, s STRING, long STRING, b BOOLEAN, i INT, c DECIMAL(9, 2), w DECIMAL(38, 4), "
    "day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, raw BINARY, st STRUCT<a: INT, r: DOUBLE>, li ARRAY<DOUBLE>, "
    "ma MAP<STRING, INT>, empty STRING"
)
COUNTS = ("record_count", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@pytest.fixture
def copying(ice: "IcebergLab") -> "IcebergLab":
    return forced(ice)


def forced(ice: "IcebergLab") -> "IcebergLab":
    """The same laboratory with an engine that copies row groups however small they are."""
    from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
    from tests.support.forced_copies import FORCED_LIMITS

    settings = IcebergEngineSettings(reads_folders=True, copy_limits=FORCED_LIMITS)
    ice.engine = IcebergEngine(ice.session, settings, ice.engine.proofreader)
    return ice


def groups_of(ice: "IcebergLab", table: str) -> list[tuple[DataFile, ...]]:
    """Return the live files of each partition."""
    import asyncio

    from tests.support.iceberg_lab import by_partition

    return [ice.live(table, partition) for partition in by_partition(asyncio.run(ice.reader(table).snapshot()))]


def metadata_file(ice: "IcebergLab", table: str) -> str:
    return str(ice.java(table).operations().current().metadataFileLocation())


def read_by_others(ice: "IcebergLab", table: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows as each reader sees them that is not ours, in the order of their ids."""
    newest = metadata_file(ice, table)
    seen = StaticTable.from_metadata(newest).scan().to_arrow().sort_by("id")
    ducks = _DuckDb()._connection.sql(f"SELECT id, v, x FROM iceberg_scan('{local(newest)}') ORDER BY id").fetchall()
    return {
        "pyiceberg": [(row["id"], row["v"], row["x"]) for row in seen.to_pylist()],
        "duckdb": ducks,
        "spark": [(row[0], row[1], row[2]) for row in ice.rows(table)],
    }


def entries(ice: "IcebergLab", table: str) -> list[Mapping[str, Any]]:
    """Return what the manifests say of the live files."""
    columns = "file_path, file_size_in_bytes, column_sizes, split_offsets, " + ", ".join(COUNTS)
    return [row.asDict() for row in ice.sql(f"SELECT {columns} FROM {table}.files ORDER BY file_path").collect()]


def local(path: str) -> Path:
    return Path(urlsplit(path).path)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "v2 by value" else pytest.mark.long("iceberg")) for kind in SHORT]
)
def test_row_groups_are_copied_and_every_reader_sees_the_same_rows(copying: "IcebergLab", kind: str) -> None:
    version, by = KINDS[kind]
    table = copying.create("t", version=version, by=by)
    for number in range(4):
        copying.append(table, number)
    rows, seen = copying.rows(table), read_by_others(copying, table)
    assert len(rows) == 80
    assert seen["pyiceberg"] == seen["duckdb"] == seen["spark"]
    groups = groups_of(copying, table)
    ends = copying.rewrite(table, *groups).groups
    assert [(end.status, end.is_copied, end.encoded_because) for end in ends] == [
        (GroupStatus.COMMITTED, True, "")
    ] * len(groups)
    assert copying.rows(table) == rows
    assert read_by_others(copying, table) == seen
    assert len(entries(copying, table)) == len(groups)
    for entry in entries(copying, table):
        footer = pq.read_metadata(local(entry["file_path"]))
        assert footer.num_row_groups == 4
        starts = [footer.row_group(number).column(0) for number in range(4)]
        offsets = [min(filter(None, (one.dictionary_page_offset, one.data_page_offset))) for one in starts]
        assert entry["split_offsets"] == offsets
        assert entry["file_size_in_bytes"] == local(entry["file_path"]).stat().st_size
        sizes: dict[int, int] = {}
        for number in range(4):
            for leaf in range(footer.num_columns):
                sizes[leaf + 1] = sizes.get(leaf + 1, 0) + footer.row_group(number).column(leaf).total_compressed_size
        assert entry["column_sizes"] == sizes
    assert copying.files_on_disk(table) == copying.known_files(table)
    # A copy of copies.
    copying.append(table, 9)
    rows = copying.rows(table)
    assert all(end.is_copied for end in copying.rewrite(table, *groups_of(copying, table)).groups)
    assert copying.rows(table) == rows


def write_every_type(ice: "IcebergLab", table: str, number: int) -> None:
    """Append rows whose floats are numbers in the first file, and in part or all not a number in the next ones."""
    real = {0: "id / 8", 1: "IF(id % 2 = 0, double('NaN'), -id)", 2: "double('NaN')", 3: "-0.0D"}[number]
    real = f"IF(id < 0, NULL, {real})"  # Otherwise a list of constants is stored as one without nulls.
    ice.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, float({real}), {real}, concat('s', id), "
        f"concat(repeat('ü', 20), id), id % 2 = 0, int(-id), id / 3, id / 7, date_add(date'1969-12-30', int(id)), "
        "timestamp'0001-01-01 00:00:00.000001', timestamp_ntz'2026-01-01 01:02:03', unhex(repeat('ff', 20)), "
        f"named_struct('a', nullif(int(id), -1), 'r', {real}), array({real}), map('k', nullif(int(id), -1)), null "
        f"FROM range({number * 10}, {number * 10 + 10})"
    )


@pytest.mark.parametrize(
    "properties",
    [
        {},
        pytest.param({"write.metadata.metrics.default": "counts"}, marks=pytest.mark.long("iceberg")),
        pytest.param({"write.metadata.metrics.default": "full"}, marks=pytest.mark.long("iceberg")),
        pytest.param({"write.metadata.metrics.column.d": "none"}, marks=pytest.mark.long("iceberg")),
    ],
    ids=["default", "counts", "full", "one column without"],
)
def test_metrics_of_a_copied_file_are_those_of_icebergs_own_writer(
    copying: "IcebergLab", properties: dict[str, str]
) -> None:
    """The same rows, copied and written by Spark: counts and bounds of every type, and of what is not a number."""
    given = ", ".join(f"'{name}'='{value}'" for name, value in ({"format-version": "2"} | properties).items())
    found = []
    for name, may_copy in (("copied", True), ("encoded", False)):
        table = f"ice.db.{name}"
        copying.sql(f"CREATE TABLE {table} ({EVERY_TYPE}) USING iceberg TBLPROPERTIES ({given})")
        for number in range(4):
            write_every_type(copying, table, number)
        end = copying.rewrite_all(table, may_copy=may_copy)
        assert (end.is_copied, end.encoded_because) == (may_copy, "" if may_copy else "switched_off")
        (entry,) = entries(copying, table)
        found.append({name: entry[name] for name in COUNTS})
    assert found[0] == found[1]
    if not properties:
        assert found[0]["nan_value_counts"] == {2: 15, 3: 15, 19: 15}
        assert found[0]["lower_bounds"][2] is not None


@pytest.mark.parametrize("change", ["ADD COLUMN later DOUBLE", "RENAME COLUMN d TO renamed"])
def test_a_column_of_floats_that_no_snapshot_has_yet_is_no_obstacle(copying: "IcebergLab", change: str) -> None:
    table = "ice.db.t"
    copying.sql(f"CREATE TABLE {table} (id BIGINT, d DOUBLE) USING iceberg")
    for number in range(2):
        copying.sql(f"INSERT INTO {table} VALUES ({number}, {number}.5)")
    copying.sql(f"ALTER TABLE {table} {change}")
    end = copying.rewrite_all(table)
    assert end.status is GroupStatus.COMMITTED
    found = copying.sql(f"SELECT * FROM {table} ORDER BY id").collect()
    assert [(row[0], row[1]) for row in found] == [(0, 0.5), (1, 1.5)]


@pytest.mark.long("iceberg")
def test_a_row_group_without_bounds_leaves_its_file_without_them(copying: "IcebergLab") -> None:
    """Other writers leave bounds out that are long: Iceberg would take those of the other row groups for the file's."""
    table = copying.create("t", version=2)
    copying.append(table, 0)
    copying.append(table, 1)
    one, other = copying.live(table, WHOLE_TABLE)
    for file, length in ((one, 1), (other, 5_000)):  # A footer says how many nulls there are, and has no longer bound.
        path = local(file.path)
        stored = pq.read_table(path)
        place = stored.schema.get_field_index("v")
        texts = pa.array([text * length for text in stored["v"].to_pylist()])
        stored = stored.set_column(place, stored.schema.field(place), texts)
        pq.write_table(stored, path, compression="zstd", store_schema=False)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    # By Iceberg's own API, for the sizes are others now.
    java, resolve = copying.java(table), copying.engine._scala.resolve
    listed = resolve("org.apache.iceberg.relocated.com.google.common.collect.Lists").newArrayList(
        java.newScan().planFiles()
    )
    change = java.newOverwrite()
    for task in list(listed):
        file = task.file()
        size = local(str(file.location())).stat().st_size
        change.deleteFile(file)
        change.addFile(
            resolve("org.apache.iceberg.DataFiles")
            .builder(java.spec())
            .withPath(f"{file.location()}")
            .withFormat("parquet")
            .withFileSizeInBytes(size)
            .withRecordCount(20)
            .build()
        )
    change.commit()
    rows = copying.rows(table)
    end = copying.rewrite_all(table)
    assert end.is_copied
    assert copying.rows(table) == rows
    (entry,) = entries(copying, table)
    assert 1 in entry["lower_bounds"]
    assert 2 not in entry["lower_bounds"]
    assert 2 not in entry["upper_bounds"]
    for number, length in ((3, 1), (33, 5_000)):
        assert copying.sql(f"SELECT id FROM {table} WHERE v = repeat('v{number}', {length})").collect() == [(number,)]


@pytest.mark.long("contracts")
def test_rows_of_format_version_3_keep_their_ids_and_are_copied_once_files_hold_them(copying: "IcebergLab") -> None:
    table = copying.create("t", version=3)
    for number in range(4):
        copying.append(table, number)
    lineage = copying.lineage(table)
    files = copying.live(table, WHOLE_TABLE)
    ends = copying.rewrite(table, files[:2], files[2:]).groups
    assert [end.encoded_because for end in ends] == ["row_tracking"] * 2
    assert copying.lineage(table) == lineage
    end = copying.rewrite_all(table)
    assert (end.is_copied, end.encoded_because) == (True, "")
    assert copying.lineage(table) == lineage
    copying.append(table, 9)
    lineage = copying.lineage(table)
    end = copying.rewrite_all(table)
    assert end.encoded_because == "row_tracking"
    assert copying.lineage(table) == lineage


def _added_column(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"ALTER TABLE {table} ADD COLUMN extra INT")
    ice.sql(f"INSERT INTO {table} SELECT id + 900, v, x, dt, ts, 7 FROM {table} LIMIT 1")


def _dropped_column(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"ALTER TABLE {table} DROP COLUMN v")


def _renamed_column(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"ALTER TABLE {table} RENAME COLUMN v TO w")
    ice.sql(f"INSERT INTO {table} SELECT id + 900, w, x, dt, ts FROM {table} LIMIT 1")


def _widened_column(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"ALTER TABLE {table} ALTER COLUMN x TYPE BIGINT")


def _deleted_rows(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"DELETE FROM {table} WHERE id = 3")


def _other_codec(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.parquet.compression-codec'='gzip')")


def _other_format(ice: "IcebergLab", table: str) -> None:
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default'='orc')")


def _file_of_another_format(ice: "IcebergLab", table: str) -> None:
    _other_format(ice, table)
    ice.append(table, 9)
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default'='parquet')")


def _file_of_another_writer(ice: "IcebergLab", table: str) -> None:
    path = local(ice.live(table, WHOLE_TABLE)[0].path)
    footer = pq.read_metadata(path)
    assert "parquet-mr" in footer.created_by
    data = path.read_bytes()
    path.write_bytes(data.replace(b"parquet-mr version", b"parquet-mr Version"))
    (path.parent / f".{path.name}.crc").unlink()


REFUSED = {
    "schema": _added_column,
    "columns": _dropped_column,
    "schema, renamed": _renamed_column,
    "type_widening": _widened_column,
    "delete_files": _deleted_rows,
    "other_codec": _other_codec,
    "not_parquet": _other_format,
    "not_parquet, one file": _file_of_another_format,
    "writer": _file_of_another_writer,
}


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param(name, marks=() if name in ("schema", "not_parquet") else pytest.mark.long("iceberg"))
        for name in REFUSED
    ],
)
def test_what_a_copy_would_change_is_encoded_and_the_record_says_why(copying: "IcebergLab", reason: str) -> None:
    table = copying.create("t", properties=MERGE_ON_READ)
    copying.append(table, 0)
    copying.append(table, 1)
    REFUSED[reason](copying, table)
    text = f"SELECT to_json(struct(*)) FROM {table} ORDER BY id"
    rows = [row[0] for row in copying.sql(text).collect()]
    end = copying.rewrite_all(table)
    assert (end.status, end.is_copied) == (GroupStatus.COMMITTED, False)
    assert end.encoded_because == reason.partition(",")[0]
    assert [row[0] for row in copying.sql(text).collect()] == rows


@pytest.mark.long("iceberg")
def test_with_the_default_limits_small_row_groups_are_copied_only_where_levels_merge_them_again(
    ice: "IcebergLab",
) -> None:
    found = []
    for number, (mode, full_bytes) in enumerate(
        [(RewriteMode.MINOR, 1), (RewriteMode.MINOR, 1 << 30), (RewriteMode.IDLE, 1 << 30), (RewriteMode.FULL, 1 << 30)]
    ):
        table = ice.create(f"t{number}")
        ice.append(table, 0)
        ice.append(table, 1)
        end = ice.rewrite_all(table, mode=mode, full_bytes=full_bytes)
        found.append(end.encoded_because)
    assert found == ["small_row_groups", "", "small_row_groups", "small_row_groups"]


@pytest.mark.parametrize("damage", ["page", pytest.param("end", marks=pytest.mark.long("iceberg"))])
def test_a_damaged_input_is_named_and_leaves_no_commit_and_no_file(copying: "IcebergLab", damage: str) -> None:
    table = copying.create("t")
    copying.append(table, 0)
    copying.append(table, 1)
    before = metadata_file(copying, table)
    files = copying.live(table, WHOLE_TABLE)
    path = local(files[0].path)
    data = bytearray(path.read_bytes())
    if damage == "page":
        data[4:24] = b"\xff" * 20
    else:
        data = data[: len(data) // 2]
    path.write_bytes(bytes(data))
    (path.parent / f".{path.name}.crc").unlink()
    on_disk = copying.files_on_disk(table)
    (end,) = copying.rewrite(table, files).groups
    assert end.status is GroupStatus.REFUSED
    # Iceberg's reader does not name the file of a damaged page: its partition and table are named.
    assert (path.name if damage == "end" else "restore these files from a backup") in str(end.error)
    assert metadata_file(copying, table) == before
    assert copying.files_on_disk(table) == on_disk


def test_rows_that_a_copy_does_not_have_stop_the_commit_and_leave_no_file(
    copying: "IcebergLab", monkeypatch: pytest.MonkeyPatch
) -> None:
    from actor.formats.iceberg.parquet_task import IcebergTasks
    from shared.errors import Corrupt

    table = copying.create("t")
    copying.append(table, 0)
    copying.append(table, 1)
    before, on_disk = metadata_file(copying, table), copying.files_on_disk(table)
    real = IcebergTasks.copy
    monkeypatch.setattr(IcebergTasks, "copy", lambda self, inputs, end_bytes: real(self, inputs[:1], end_bytes))
    with pytest.raises(Corrupt, match="40 rows in, 20 rows out"):
        copying.rewrite_all(table)
    assert metadata_file(copying, table) == before
    assert copying.files_on_disk(table) == on_disk
