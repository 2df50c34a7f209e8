"""Filtered reads find the same rows after each kind of rewrite: no metrics of an output hide nulls below structs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus
from tests.contract.test_iceberg_copy import entries, forced

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

FIELDS: Mapping[str, tuple[str, str, str]] = {
    "f": ("DOUBLE", "IF(id % 7 = 0, NULL, IF(id % 5 = 0, double('NaN'), IF(id % 11 = 0, -0D, id + 0.5D)))", "> 50"),
    "g": ("FLOAT", "CAST(IF(id % 3 = 0, -0F, id) AS FLOAT)", "<= 0"),
    "n": ("DOUBLE", "double('NaN')", "> 1"),
    "t": ("STRING", "concat('v', id)", "> 'v5'"),
    "at": ("TIMESTAMP", "timestamp'2026-01-01' + make_interval(0, 0, 0, 0, id)", "> timestamp'2026-01-02'"),
    "d": ("DECIMAL(9, 2)", "CAST(id AS DECIMAL(9, 2))", "< 50"),
    "i.h": ("DOUBLE", "id + 0.5D", "< 50"),
    "i.k": ("STRING", "concat('v', id)", "> 'v5'"),
}
"""Fields of a struct and of one in it: the type, a value of each row that has the struct, and a range."""

_INNER = "IF(id % 3 = 0, NULL, named_struct('h', {i.h}, 'k', {i.k}))"
TYPE = ", ".join(f"{name}: {kind}" for name, (kind, _, _) in FIELDS.items() if "." not in name)
STRUCT = f"STRUCT<{TYPE}, i: STRUCT<h: DOUBLE, k: STRING>>"
SOUGHT = "x", *(f"s.{name}" for name in FIELDS)


def struct() -> str:
    """Return the struct of a row as SQL of its `id`; every second row has none."""
    inner = _INNER
    for name, (_, value, _) in FIELDS.items():
        inner = inner.replace(f"{{{name}}}", value)
    parts = ", ".join(f"'{name}', {value}" for name, (_, value, _) in FIELDS.items() if "." not in name)
    return f"IF(id % 2 = 0, NULL, named_struct({parts}, 'i', {inner}))"


def conditions() -> list[str]:
    """Return conditions on each column, and those of floats."""
    found = [f"{name} IS {what}" for name in SOUGHT for what in ("NULL", "NOT NULL")]
    found += [f"s.{name} {compared}" for name, (_, _, compared) in FIELDS.items()]
    floats = ["x", *(f"s.{name}" for name, (kind, _, _) in FIELDS.items() if kind in ("DOUBLE", "FLOAT"))]
    return found + [f"{word}isnan({name})" for name in floats for word in ("", "NOT ")]


def create(ice: "IcebergLab", **properties: str) -> str:
    """Create a table of such rows in two files, of two codecs if `by_column` is given."""
    codecs = ("zstd", "gzip" if properties.pop("by_column", "") else "zstd")
    text = ", ".join(f"'{name}'='{value}'" for name, value in {"format-version": "2", **properties}.items())
    ice.sql(f"CREATE TABLE ice.db.t (id BIGINT, x DOUBLE, s {STRUCT}) USING iceberg TBLPROPERTIES ({text})")
    for number, codec in enumerate(codecs):
        ice.sql(f"ALTER TABLE ice.db.t SET TBLPROPERTIES ('write.parquet.compression-codec'='{codec}')")
        ice.sql(
            f"INSERT INTO ice.db.t SELECT /*+ COALESCE(1) */ id, IF(id % 9 = 0, NULL, double(id)), {struct()} "
            f"FROM range({number * 100}, {number * 100 + 100})"
        )
    return "ice.db.t"


def require_found(ice: "IcebergLab", table: str) -> None:
    """Compare what filtered reads find, and counts, with the conditions on all rows, which no metrics hide."""
    sought = conditions()
    expected = ice.sql(f"SELECT {', '.join(f'count_if({one})' for one in sought)} FROM {table}").first()
    assert sum(expected) > len(sought)
    reads = (f"SELECT {number} n, count(*) c FROM {table} WHERE {one}" for number, one in enumerate(sought))
    found = sorted(ice.sql(" UNION ALL ".join(reads)).collect())
    assert {sought[number]: count for number, count in found} == dict(zip(sought, expected, strict=True))
    counted = ice.sql(f"SELECT {', '.join(f'count({name})' for name in SOUGHT)} FROM {table}").first()
    assert list(counted) == [dict(zip(sought, expected, strict=True))[f"{name} IS NOT NULL"] for name in SOUGHT]


def nulls_of(ice: "IcebergLab", table: str) -> dict[str, int]:
    """Return how many rows are null in each column, by a read of all rows."""
    found = ice.sql(f"SELECT {', '.join(f'count_if({name} IS NULL)' for name in SOUGHT)} FROM {table}").first()
    return dict(zip(SOUGHT, found, strict=True))


def require_planned(ice: "IcebergLab", table: str) -> None:
    """Check that pyiceberg plans as many rows at least for each column as are null there, and as are not."""
    from pyiceberg.expressions import IsNull, NotNull
    from pyiceberg.table import StaticTable

    scanned = StaticTable.from_metadata(str(ice.java(table).operations().current().metadataFileLocation()))
    rows = int(ice.sql(f"SELECT id FROM {table}").count())
    for name, nulls in nulls_of(ice, table).items():
        for sought, least in ((IsNull(name), nulls), (NotNull(name), rows - nulls)):
            tasks = scanned.scan(row_filter=sought).plan_files()
            assert sum(one.file.record_count for one in tasks) >= least, sought


def require_counts(ice: "IcebergLab", table: str, rows: int) -> None:
    """Check that the counts of one output, where it has them, are true of all its rows."""
    (entry,) = entries(ice, table)
    assert {*(entry["value_counts"] or {}).values()} <= {rows}
    schema, claimed = ice.java(table).schema(), entry["null_value_counts"] or {}
    for name, nulls in nulls_of(ice, table).items():
        assert claimed.get(int(schema.findField(name).fieldId()), nulls) == nulls, name


WAYS: Mapping[str, tuple[Mapping[str, str], Sequence[Any]]] = {
    "copied": ({}, (True, False)),
    "by column": ({"by_column": "yes"}, (False, True)),
    "encoded": ({"write.format.default": "parquet"}, (False, False)),
    "counts": ({"write.metadata.metrics.default": "counts"}, (False, False)),
    "none": ({"write.metadata.metrics.default": "none"}, (False, False)),
    "orc": ({"write.format.default": "orc"}, (False, False)),
    "avro": ({"write.format.default": "avro"}, (False, False)),
}
"""Ways of a rewrite: properties of the table, and whether row groups are copied, and merged by column."""


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=() if way == "encoded" else pytest.mark.long("iceberg")) for way in WAYS]
)
def test_filtered_reads_find_rows_without_a_struct_after_each_rewrite(ice: "IcebergLab", way: str) -> None:
    """Iceberg's writers count the nulls of floats, those of ORC all nulls, as if such rows were not there."""
    properties, (is_copied, by_column) = WAYS[way]
    table = create(ice, **properties)
    may_copy = way in ("copied", "by column")
    end = (forced(ice) if may_copy else ice).rewrite_all(table, may_copy=may_copy)
    assert (end.status, end.is_copied, end.by_column) == (GroupStatus.COMMITTED, is_copied, by_column), end
    require_counts(ice, table, 200)
    if way != "orc":  # Statistics inside of ORC files leave such rows out, too, whichever Java program writes them.
        require_found(ice, table)
    require_planned(ice, table)


def test_an_encoded_rewrite_of_a_file_of_others_hides_no_row(ice: "IcebergLab") -> None:
    import pyarrow as pa

    from tests.support.iceberg_foreign import ForeignWriter, field

    table = "ice.db.foreign"
    ice.sql(f"CREATE TABLE {table} (a BIGINT, s STRUCT<f: DOUBLE>) USING iceberg")
    ids = {"a": 1, "s": 2, "f": 3}
    stored = pa.schema([field("a", pa.int64(), ids), field("s", pa.struct([field("f", pa.float64(), ids)]), ids)])
    writer = ForeignWriter(ice, table)
    for codec in ("zstd", "snappy"):
        values = [{"f": float(one)} if one % 2 else None for one in range(1000)]
        writer.add(pa.table([range(1000), values], schema=stored), compression=codec)
    assert ice.sql(f"SELECT a FROM {table} WHERE s.f IS NULL").count() == 1000
    assert ice.rewrite_all(table, may_copy=False).status is GroupStatus.COMMITTED
    assert ice.sql(f"SELECT a FROM {table} WHERE s.f IS NULL").count() == 1000


@pytest.mark.long("contracts")
def test_filtered_reads_of_a_table_in_cells_find_rows_without_a_struct(ice: "IcebergLab") -> None:
    from tests.support.iceberg_cells_table import IcebergCellsTable

    table = IcebergCellsTable(ice, {"id": "BIGINT", "a": "BIGINT", "x": "DOUBLE", "s": STRUCT}, ("a",))
    values = f"id; pmod(id * 7919, 1000) a; IF(id % 9 = 0, NULL, double(id)) x; {struct()} s"
    table.insert(20_000, values, files=4)
    assert table.run(force=True).commits
    assert table.require_lawful() > 1
    require_found(ice, table.name)
    require_planned(ice, table.name)


@pytest.mark.long("contracts")
def test_filtered_reads_find_rows_without_a_struct_where_old_rows_were_left_out(ice: "IcebergLab") -> None:
    from tests.support.aged_iceberg import AgedIceberg

    table = AgedIceberg(ice, rule="90 days of ts, rows")
    ice.sql(f"ALTER TABLE {table.name} ADD COLUMNS (x DOUBLE, s {STRUCT})")
    ice.sql(
        f"INSERT INTO {table.name} SELECT /*+ COALESCE(1) */ id, current_timestamp() - make_dt_interval(id) ts, "
        f"double(id) x, {struct()} s FROM range(200)"
    )
    assert table.run().figures["rows_removed"] > 0
    require_found(ice, table.name)
    require_planned(ice, table.name)
