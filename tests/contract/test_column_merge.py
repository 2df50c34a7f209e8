"""Small row groups become large ones, column by column: every value stays, and nothing stays behind on a failure."""

import base64
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.delta_scala import DeltaScala
from actor.jvm.scala import jvm_context
from actor.ports import GroupStatus
from shared.errors import LakewrightError
from tests.contract.test_parquet_footers import set_nine_rows, summaries, texts_of, with_footer
from tests.contract.test_row_group_copy import log_sizes, replaced, rewritten
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.forced_copies import NEVER_COPIES

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
encryption = pytest.importorskip("pyarrow.parquet.encryption", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark

BLOCK_BYTES = "parquet.block.size"
MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


@pytest.fixture
def merging(lab: DeltaLab) -> DeltaLab:
    """An engine that encodes by column whatever it could copy."""
    return lab.copying(NEVER_COPIES)


def merged(lab: DeltaLab, *files: Path, block_bytes: int = 1 << 27, codec: str = "SNAPPY") -> dict[str, Any]:
    """What the task says of its output in the folder `out`."""
    scala = DeltaScala(lab.spark)
    conf = scala.resolve("org.apache.hadoop.conf.Configuration")(lab.spark._jsc.hadoopConfiguration())
    conf.set(BLOCK_BYTES, str(block_bytes))
    where = f"file://{lab.directory}/out", "lw-", ".parquet"
    merge = scala.group.merged
    said: dict[str, Any] = json.loads(merge(jvm_context(lab.spark), conf, *texts_of(files), *where, codec, None))
    return said


@pytest.mark.parametrize("way", ["copied", "by column"])
def test_partition_columns_that_spark_wrote_into_the_files_stay_there(lab: DeltaLab, way: str) -> None:
    path = lab.directory / "t"
    lab.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, day DATE, kind STRING) USING DELTA PARTITIONED BY (day, kind)")
    for number in range(3):
        lab.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, DATE '2026-01-0{number % 2 + 1}', 'a'), (9, NULL, 'b')")
    before, table = lab.digest(str(path)), path.as_uri()
    partition = lab.partition(day=None, kind="b")
    engine = lab.copying() if way == "copied" else lab
    (end,) = engine.rewrite(table, [lab.group(table, partition, count=3)]).groups
    assert (end.status, end.is_copied, end.by_column) == (GroupStatus.COMMITTED, way == "copied", way == "by column")
    assert lab.digest(str(path)) == before
    (add,) = tables.added(path, tables.newest(path))
    stored = pq.ParquetFile(path / add["path"]).read().to_pylist()
    assert stored == [{"id": 9, "day": None, "kind": "b"}] * 3
    assert json.loads(add["stats"])["minValues"].keys() == {"id"}, "the log has their values, and no bounds of them"


def test_small_row_groups_become_one_with_the_settings_of_sparks_writer(merging: DeltaLab) -> None:
    table = tables.table(merging.directory / "t", files=3)
    replaced(table, lambda rows, path: pq.write_table(rows, path, row_group_size=7, compression="zstd"))
    before = tables.rows(table.path)
    inputs = [pq.ParquetFile(table.path / file.path).metadata for file in merging.files(table.location)]

    end = rewritten(merging, table.location)

    assert (end.is_copied, end.encoded_because, end.by_column, end.rows) == (False, "large_footer", True, 60)
    assert tables.rows(table.path) == before
    (output,) = end.outputs
    found = pq.ParquetFile(table.path / output.path).metadata
    assert (found.num_row_groups, found.num_rows, sum(given.num_row_groups for given in inputs)) == (1, 60, 9)
    assert (found.schema, found.metadata) == (inputs[0].schema, inputs[0].metadata)
    chunks = [found.row_group(0).column(n) for n in range(found.num_columns)]
    assert all(chunk.has_column_index and chunk.has_offset_index and chunk.compression == "ZSTD" for chunk in chunks)
    stats = json.loads(tables.live(table.path)[output.path, None]["stats"])
    assert (stats["numRecords"], stats["minValues"], stats["maxValues"]) == (60, {"id": 0}, {"id": 59})
    assert merging.spark.read.format("delta").load(str(table.path)).where("id = 33").count() == 1


def test_a_row_group_ends_before_it_exceeds_the_block_size(lab: DeltaLab) -> None:
    """Rows with lists of several pages, so that rows, values and pages are three different things."""
    inputs = []
    for number in range(3):
        rows = [{"id": number * 1_000 + n, "list": [n] * (n % 5) if n % 7 else None} for n in range(1_000)]
        inputs.append(lab.directory / f"{number}.parquet")
        pq.write_table(pa.Table.from_pylist(rows), inputs[-1], row_group_size=100, data_page_size=64)
    each = pq.ParquetFile(inputs[0]).metadata.row_group(5).total_byte_size

    said = merged(lab, *inputs, block_bytes=10 * each)

    output = pq.ParquetFile(lab.directory / "out" / said["name"])
    sizes = [output.metadata.row_group(n).num_rows for n in range(output.metadata.num_row_groups)]
    assert (said["rows"], said["row_groups"], sum(sizes)) == (3_000, len(sizes), 3_000)
    assert 3 <= len(sizes) <= 5
    assert all(size % 100 == 0 for size in sizes)
    assert output.read().to_pylist() == [row for path in inputs for row in pq.read_table(path).to_pylist()]


def test_files_without_rows_and_row_groups_without_rows_add_nothing(lab: DeltaLab) -> None:
    schema = pa.schema([("id", pa.int64()), ("list", pa.list_(pa.string()))])
    for name, rows in (("none", []), ("two", [{"id": 1, "list": ["a", None]}, {"id": None, "list": []}])):
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), lab.directory / f"{name}.parquet")
    none, two = lab.directory / "none.parquet", lab.directory / "two.parquet"

    assert [merged(lab, *files)["rows"] for files in ([none], [none, two, none], [two, two])] == [0, 2, 4]
    counts = sorted(pq.read_table(path).num_rows for path in (lab.directory / "out").iterdir())
    assert counts == [0, 2, 4]


@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        (MICROS, "writer"),
        ({**MICROS, "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}, "old_calendar"),
        ({}, "int96"),  # Spark's default.
    ],
)
def test_files_of_three_writers_are_merged_by_column_unless_one_of_them_forbids_it(
    merging: DeltaLab, conf: dict[str, str], reason: str
) -> None:
    """delta-rs, this task and Spark spell the same columns differently, and name themselves."""
    path = merging.directory / "t"
    moments = pa.array([datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [1, 2], "v": ["a", None], "at": moments, "d": [date(1500, 2, 3), date(2026, 1, 1)]})
    for _ in range(2):
        deltalake.write_deltalake(path, rows, mode="append")
    assert rewritten(merging, path.as_uri()).by_column
    deltalake.write_deltalake(path, rows, mode="append")
    for name, value in conf.items():
        merging.spark.conf.set(name, value)
    frame = merging.spark.read.format("delta").load(str(path)).where("id = 2")
    frame.coalesce(1).write.format("delta").mode("append").save(str(path))
    for name in conf:
        merging.spark.conf.unset(name)
    before = merging.digest(str(path))

    end = rewritten(merging, path.as_uri())

    assert (end.encoded_because, end.by_column, end.rows) == (reason, reason == "writer", 9)
    assert merging.digest(str(path)) == before
    read = sorted(map(str, pa.table(deltalake.DeltaTable(str(path)).to_pyarrow_table()).to_pylist()))
    assert read == sorted([str(row) for row in rows.to_pylist()] * 3 + [str(rows.to_pylist()[1])] * 3)


@pytest.mark.parametrize("is_footer_plain", [True, False])
def test_an_encrypted_file_among_those_of_other_writers_fails_the_group_and_changes_nothing(
    merging: DeltaLab, is_footer_plain: bool
) -> None:
    """Its values are only for who has the key, so no way of writing may take its pages for those of a plain file."""
    path, rows = merging.directory / "t", pa.table({"id": [1, 2], "v": ["a", None]})
    for _ in range(2):
        deltalake.write_deltalake(path, rows, mode="append")
    assert rewritten(merging, path.as_uri()).by_column
    for _ in range(2):
        deltalake.write_deltalake(path, rows, mode="append")
    last = path / deltalake.DeltaTable(path).get_add_actions(flatten=True)["path"][0].as_py()
    pq.write_table(rows, last, encryption_properties=sealed(is_footer_plain=is_footer_plain))
    log_sizes(path)
    (found,) = summaries(merging, last)
    before = sorted(path.rglob("*"))

    try:
        (end,) = merging.rewrite(path.as_uri(), [merging.group(path.as_uri(), count=3)]).groups
        error = end.error
    except LakewrightError as failure:
        error = failure

    assert isinstance(error, LakewrightError)
    assert found["obstacle"] == ("damaged" if is_footer_plain else "encryption")
    assert sorted(path.rglob("*")) == before


class Keys(encryption.KmsClient):  # type: ignore[name-defined]
    """A key server that hides nothing."""

    def wrap_key(self, key_bytes: bytes, _name: str) -> str:
        return base64.b64encode(key_bytes).decode()


def sealed(*, is_footer_plain: bool) -> Any:
    """Return what pyarrow encrypts the column `v` with, and the footer unless it is to be plain."""
    keys = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["v"]}, plaintext_footer=is_footer_plain, double_wrapping=False
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    return factory.file_encryption_properties(encryption.KmsConnectionConfig(), keys)


def test_a_column_of_distinct_values_gets_no_dictionary_and_one_of_few_keeps_it(lab: DeltaLab) -> None:
    """A sample of many files says nothing of all of them; it is taken of the largest, wherever it comes."""
    tiny = lab.directory / "tiny.parquet"
    pq.write_table(pa.table({"id": [-1, -1], "kind": ["k1", "k2"], "same": [0, 0]}), tiny)
    files = []
    for number in range(40):
        files.append(lab.directory / f"{number}.parquet")
        ids = [number * 1_000 + n for n in range(1_000)]
        rows = {"id": ids, "kind": [f"k{n % 5}" for n in ids], "same": list(range(1_000))}
        pq.write_table(pa.table(rows), files[-1])

    few, late, many = (merged(lab, *some) for some in (files[:10], [tiny, *files[:10]], files))

    chunks = [pq.ParquetFile(lab.directory / "out" / one["name"]).metadata.row_group(0) for one in (few, late, many)]
    has_dictionary = [["PLAIN_DICTIONARY" in one.column(at).encodings for at in range(3)] for one in chunks]
    assert has_dictionary == [[False, True, False], [False, True, False], [False, True, True]]
    assert pq.read_table(lab.directory / "out" / few["name"])["id"].to_pylist() == list(range(10_000))
    assert pq.read_table(lab.directory / "out" / late["name"])["id"].to_pylist() == [-1, -1, *range(10_000)]


def test_files_of_another_schema_and_pages_that_cannot_be_decoded_are_obstacles_and_leave_no_file(
    lab: DeltaLab,
) -> None:
    one, other, broken, fewer = (lab.directory / f"{name}.parquet" for name in ("one", "other", "broken", "fewer"))
    pq.write_table(pa.table({"id": range(10)}), one)
    pq.write_table(pa.table({"id": map(str, range(10))}), other)
    pq.write_table(pa.table({"id": range(10)}), broken)
    chunk = pq.ParquetFile(broken).metadata.row_group(0).column(0)
    with broken.open("r+b") as file:
        file.seek(chunk.data_page_offset + 30)
        file.write(b"\xff" * 8)

    assert merged(lab, one, other) == {"attempt": 0, "obstacle": "schema"}
    assert merged(lab, one, broken) == {"attempt": 0, "obstacle": "damaged"}
    fewer.write_bytes(with_footer(lab, one.read_bytes(), set_nine_rows))
    assert merged(lab, one, fewer) == {"attempt": 0, "obstacle": "damaged"}
    assert list((lab.directory / "out").iterdir()) == []
