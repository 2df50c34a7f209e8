"""Values of other writers stay what they are when Spark decodes and encodes them, or their files are refused."""

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus
from shared.errors import RefusedFiles

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

YEARS = [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)]
TYPES: Mapping[str, tuple[str, Any, list[Any]]] = {
    "boolean": ("boolean", pa.bool_(), [True, False]),
    "int": ("int", pa.int32(), [-(2**31), 2**31 - 1]),
    "long": ("long", pa.int64(), [-(2**63), 2**63 - 1]),
    "float": ("float", pa.float32(), [float("-inf"), -0.0, 1.5]),
    "double": ("double", pa.float64(), [float("inf"), -0.0, 5e-324]),
    "short decimal": ("decimal(9, 2)", pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.01")]),
    "long decimal": ("decimal(38, 4)", pa.decimal128(38, 4), [Decimal(10) ** 33, Decimal("-0.0001")]),
    "date": ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "timestamp": ("timestamp", pa.timestamp("us"), [year.replace(tzinfo=None) for year in YEARS]),
    "timestamptz": ("timestamptz", pa.timestamp("us", "UTC"), YEARS),
    "string": ("string", pa.string(), ["", "a b\x00c", "\U0001f40b"]),
    "uuid": ("uuid", pa.uuid(), [b"\x00" * 16, b"\xff" * 16]),
    "fixed": ("fixed[4]", pa.binary(4), [b"\x00\x01\x80\xff", b"\xff" * 4]),
    "binary": ("binary", pa.binary(), [b"", b"\xff\xfe"]),
}  # fmt: skip
"""Iceberg's type, pyarrow's, and values at the edges."""

PLACES = ("top", "struct", "list", "map")


def schema_json(kind: str) -> dict[str, Any]:
    """Return a schema of one column of the type at each place; every level is required but that of structs."""

    def one(number: int, name: str, given: Any, *, required: bool = True) -> dict[str, Any]:
        return {"id": number, "name": name, "required": required, "type": given}

    return {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            one(1, "id", "long"),
            one(2, "top", kind),
            one(3, "s", {"type": "struct", "fields": [one(6, "x", kind)]}, required=False),
            one(4, "l", {"type": "list", "element-id": 7, "element": kind, "element-required": True}),
            one(
                5, "m", {"type": "map", "key-id": 8, "key": "int", "value-id": 9, "value": kind, "value-required": True}
            ),
            one(
                10,
                "k",
                {
                    "type": "map",
                    "key-id": 11,
                    "key": {"type": "struct", "fields": [one(13, "y", kind)]},
                    "value-id": 12,
                    "value": "int",
                    "value-required": False,
                },
            ),
        ],
    }


def create(ice: "IcebergLab", name: str, schema: Mapping[str, Any], **properties: str) -> str:
    """Create a table of a schema as Iceberg's metadata spell it."""
    resolve = ice.engine._scala.resolve
    made = resolve("org.apache.iceberg.SchemaParser").fromJson(json.dumps(schema))
    given = resolve("java.util.HashMap")()
    for key, value in {"format-version": "2", **properties}.items():
        given.put(key.replace("_", "-"), value)
    spec = resolve("org.apache.iceberg.PartitionSpec").unpartitioned()
    conf = ice.session._jsc.hadoopConfiguration()
    resolve("org.apache.iceberg.hadoop.HadoopTables")(conf).create(made, spec, given, ice.location(name))
    return f"ice.db.{name}"


def rows_of(kind: Any, values: list[Any], start: int) -> Any:
    """Return rows that hold the values at each place, and null at each."""
    given, parts = [*values, None], [values[-1], None, values[0]]
    columns = [
        [start + number for number in range(len(given))],
        given,
        [*({"x": value} for value in values), None],
        [parts] * len(given),
        [list(enumerate(parts))] * len(given),
        [[({"y": values[0]}, 0), ({"y": None}, 1)]] * len(given),
    ]
    stored = _schema(pa.binary(16) if kind == pa.uuid() else kind)
    arrays = [pa.array(one, part.type) for one, part in zip(columns, stored, strict=True)]
    return pa.table(arrays, schema=stored).cast(_schema(kind))


def _schema(kind: Any) -> Any:
    from tests.support.iceberg_foreign import field

    ids = {"id": 1, "top": 2, "s": 3, "l": 4, "m": 5, "x": 7, "element": 8, "key": 9, "value": 10}
    of_keys = {"k": 6, "key": 11, "value": 12, "y": 13}
    key = field("key", pa.struct([field("y", kind, of_keys)]), of_keys, nullable=False)
    return pa.schema(
        [
            field("id", pa.int64(), ids),
            field("top", kind, ids),
            field("s", pa.struct([field("x", kind, ids)]), ids),
            field("l", pa.list_(field("element", kind, ids)), ids),
            field("m", pa.map_(field("key", pa.int32(), ids, nullable=False), field("value", kind, ids)), ids),
            field("k", pa.map_(key, field("value", pa.int32(), of_keys)), of_keys),
        ]
    )


@pytest.mark.parametrize("kind", TYPES)
def test_nulls_that_the_schema_forbids_and_values_at_the_edges_stay(ice: "IcebergLab", kind: str) -> None:
    from tests.support.iceberg_foreign import ForeignWriter, read_by_others, stored_rows

    name, arrow, values = TYPES[kind]
    table = create(ice, "t", schema_json(name))
    writer = ForeignWriter(ice, table)
    for number, codec in enumerate(("zstd", "snappy")):  # Of two codecs, so that they are not copied.
        writer.add(rows_of(arrow, values, number * 10), compression=codec)
    seen, rows = _comparable(read_by_others(ice, table), kind), stored_rows(ice, table)
    assert len(rows) == 2 * len(values) + 2
    end = ice.rewrite_all(table)
    assert (end.status, end.is_copied) == (GroupStatus.COMMITTED, False), end.error
    assert stored_rows(ice, table) == rows
    assert _comparable(read_by_others(ice, table), kind) == seen


def _comparable(seen: dict[str, list[str]], kind: str) -> dict[str, list[str]]:
    """Leave out pyiceberg for UUIDs: it reads no null in maps of them where the schema forbids it, once annotated."""
    return {name: rows for name, rows in seen.items() if (name, kind) != ("pyiceberg", "uuid")}


FLAT = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"}, {"id": 2, "name": "c", "required": False, "type": "x"},
]}  # fmt: skip

DAY = dt.datetime(2026, 1, 1, 2, 3, 4, tzinfo=dt.UTC)
PLAIN = DAY.replace(tzinfo=None)
READ: Mapping[str, tuple[str, Any, list[Any], dict[str, Any]]] = {
    "int8": ("int", pa.int8(), [-128, 127], {}),
    "int16": ("int", pa.int16(), [-32768, 32767], {}),
    "int as long": ("long", pa.int32(), [-(2**31)], {}),
    "float as double": ("double", pa.float32(), [0.1], {}),
    "narrow decimal": ("decimal(18, 2)", pa.decimal128(9, 2), [Decimal("-1.25")], {}),
    "decimal in integers": ("decimal(9, 2)", pa.decimal128(9, 2), [Decimal("-1.25")],
                            {"store_decimal_as_integer": True}),
    "milliseconds": ("timestamp", pa.timestamp("ms"), [YEARS[0].replace(tzinfo=None), PLAIN], {}),
    "milliseconds with a zone": ("timestamptz", pa.timestamp("ms", "UTC"), [YEARS[0], DAY], {}),
    "int96": ("timestamp", pa.timestamp("us"), [PLAIN], {"use_deprecated_int96_timestamps": True}),
    "int96 with a zone": ("timestamptz", pa.timestamp("us", "UTC"), [DAY], {"use_deprecated_int96_timestamps": True}),
    "large string": ("string", pa.large_string(), ["x"], {}),
    "dictionary": ("string", pa.dictionary(pa.int32(), pa.string()), ["a", "a", "b"], {}),
    "uuid in fixed": ("uuid", pa.binary(16), [b"\x01" * 16, b"\xff" * 16], {}),
}  # fmt: skip
"""How other writers store a type: Iceberg's type, pyarrow's, values, and options of the writer."""

NOT_READ: Mapping[str, tuple[str, Any, list[Any]]] = {
    "uint8": ("int", pa.uint8(), [0, 255]),
    "uint16": ("int", pa.uint16(), [0, 65535]),
    "uint32": ("long", pa.uint32(), [0, 2**32 - 1]),
    "nanoseconds": ("timestamp", pa.timestamp("ns"), [PLAIN]),
    "bytes in text": ("string", pa.binary(), [b"abc", b"\xff\xfe"]),
    "16 bytes in text": ("string", pa.binary(), [b"0123456789abcdef"]),
    "time": ("time", pa.time64("us"), [dt.time(23, 59, 59, 999999)]),
    "time of milliseconds": ("time", pa.time32("ms"), [dt.time(23, 59, 59)]),
    "uint64": ("long", pa.uint64(), [0, 2**63]),
}
"""What Spark does not read, or reads as other values: nanoseconds as microseconds, 16 bytes as the text of a UUID."""


def add_twice(ice: "IcebergLab", name: str, arrow: Any, values: list[Any], **options: Any) -> str:
    """Return a table of ids and a column `c` of the type, with two files of these values."""
    from tests.support.iceberg_foreign import ForeignWriter, field

    table = create(ice, "t", json.loads(json.dumps(FLAT).replace('"x"', f'"{name}"')))
    writer = ForeignWriter(ice, table)
    stored = pa.schema([field("id", pa.int64(), {"id": 1}), field("c", arrow, {"c": 2})])
    rows = pa.table([[*range(len(values) + 1)], pa.array([*values, None], arrow)], schema=stored)
    for codec in ("zstd", "snappy"):
        writer.add(rows, compression=codec, **options)
    return table


@pytest.mark.parametrize("how", READ)
def test_values_that_other_writers_store_in_another_form_stay(ice: "IcebergLab", how: str) -> None:
    """Iceberg takes bounds in a footer for its own: those of milliseconds would be of another time, and hide rows."""
    from tests.support.iceberg_foreign import hidden_values, read_by_others

    name, arrow, values, options = READ[how]
    table = add_twice(ice, name, arrow, values, **options)
    seen = read_by_others(ice, table)
    assert len(seen["pyiceberg"]) == 2 * len(values) + 2, seen
    end = ice.rewrite_all(table)
    assert (end.status, end.is_copied) == (GroupStatus.COMMITTED, False), end.error
    assert read_by_others(ice, table) == seen
    assert hidden_values(ice, table, "c") == []


NOT_JOINED = {"uint32", "uint64", "nanoseconds", "bytes in text", "16 bytes in text", "time of milliseconds"}
"""Those of `NOT_READ` that are not merged by column: their statistics, or types, are none that Iceberg knows."""


@pytest.mark.parametrize(
    ("how", "may_copy"), [*((how, False) for how in NOT_READ), *((how, True) for how in sorted(NOT_JOINED))]
)
def test_what_spark_reads_as_other_values_is_refused_by_name(ice: "IcebergLab", how: str, *, may_copy: bool) -> None:
    name, arrow, values = NOT_READ[how]
    table = add_twice(ice, name, arrow, values)
    before = ice.files_on_disk(table)
    end = ice.rewrite_all(table, may_copy=may_copy)  # Merged by column, the others stay.
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert (end.error.reason, end.error.field) == ("types", "c")
    assert ice.files_on_disk(table) == before


def test_a_page_that_differs_from_its_checksum_is_not_encoded(ice: "IcebergLab") -> None:
    """Spark looks at no checksum: the damaged value would get a new one that is right."""
    from tests.support.iceberg_foreign import ForeignWriter, field

    table = create(ice, "t", json.loads(json.dumps(FLAT).replace('"x"', '"string"')))
    writer = ForeignWriter(ice, table)
    stored = pa.schema([field("id", pa.int64(), {"id": 1}), field("c", pa.string(), {"c": 2})])
    rows = pa.table([[1, 2], ["a value", "another"]], schema=stored)
    options = {"write_page_checksum": True, "use_dictionary": False, "compression": "none", "write_statistics": False}
    damaged = [writer.add(rows, **options, data_page_version=version) for version in ("1.0", "2.0")][1]
    damaged.write_bytes(damaged.read_bytes().replace(b"another", b"anothes", 1))
    end = ice.rewrite_all(table)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert end.error.reason == "damaged"
    assert f"{damaged.name} has a page" in str(end.error)


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4"])
def test_a_page_without_a_checksum_that_cannot_be_read_refuses_its_files(ice: "IcebergLab", codec: str) -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field
    from tests.support.stored_table import garble

    table = create(ice, "t", json.loads(json.dumps(FLAT).replace('"x"', '"string"')))
    writer = ForeignWriter(ice, table)
    stored = pa.schema([field("id", pa.int64(), {"id": 1}), field("c", pa.string(), {"c": 2})])
    rows = pa.table([range(1000), [f"value {n * 7919 % 1000}" for n in range(1000)]], schema=stored)
    _, damaged = (writer.add(rows, compression=codec) for _ in range(2))
    garble(damaged)
    before = ice.files_on_disk(table)
    end = ice.rewrite_all(table)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert ice.files_on_disk(table) == before


def test_deletes_by_values_and_nulls_of_each_type_are_applied(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field

    kinds = {name.replace(" ", "_"): given for name, given in TYPES.items()}
    ids = {"id": 1} | {name: number for number, name in enumerate(kinds, 2)}
    columns = [{"id": ids[name], "name": name, "required": False, "type": kinds[name][0]} for name in kinds]
    of_ids = {"id": 1, "name": "id", "required": False, "type": "string"}
    table = create(ice, "t", {"type": "struct", "schema-id": 0, "fields": [of_ids, *columns]})
    rows = ["stays", *(f"{name} {what}" for name in kinds for what in ("value", "null"))]
    values = {
        name: [{f"{name} value": given[-1], f"{name} null": None}.get(row, given[0]) for row in rows]
        for name, (_, _, given) in kinds.items()
    }
    stored = pa.schema([field("id", pa.string(), ids), *(field(name, kinds[name][1], ids) for name in kinds)])
    writer = ForeignWriter(ice, table)
    for _ in range(2):
        writer.add(pa.table([rows, *(_array(values[name], kinds[name][1]) for name in kinds)], schema=stored))
    for name, (_, kind, given) in kinds.items():
        writer.delete_values(pa.table([_array([given[-1], None], kind)], pa.schema([stored.field(name)])), [ids[name]])
    assert [row[0] for row in ice.sql(f"SELECT id FROM {table}").collect()] == ["stays"] * 2
    end = ice.rewrite_all(table)
    assert (end.status, end.rows) == (GroupStatus.COMMITTED, 2), end.error
    assert [row[0] for row in ice.sql(f"SELECT id FROM {table}").collect()] == ["stays"] * 2


def _array(values: list[Any], kind: Any) -> Any:
    return pa.array(values, pa.binary(16)).cast(kind) if kind == pa.uuid() else pa.array(values, kind)


@pytest.mark.parametrize("how", ["a uuid that is not declared as one", "a column whose name another has"])
def test_deletes_that_spark_does_not_apply_are_refused_by_name(ice: "IcebergLab", how: str) -> None:
    """Their rows would be there again for every reader, or the rewrite would fail each time."""
    from tests.support.iceberg_foreign import ForeignWriter, field

    (name, _, values), reason = TYPES["uuid"], "types"
    table = create(ice, "t", json.loads(json.dumps(FLAT).replace('"x"', f'"{name}"')))
    writer = ForeignWriter(ice, table)
    key = field("c", pa.binary(16), {"c": 2})
    if how != "a uuid that is not declared as one":
        ice.sql(f"ALTER TABLE {table} DROP COLUMN c")
        ice.sql(f"ALTER TABLE {table} ADD COLUMN c INT")
        reason = "unsupported"
    for _ in range(2):
        rows = pa.table([[1, 2], values], schema=pa.schema([field("id", pa.int64(), {"id": 1}), key]))
        writer.add(rows)
    writer.delete_values(pa.table([values[1:]], schema=pa.schema([key])), [2])
    before, end = ice.files_on_disk(table), ice.rewrite_all(table)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert (end.error.reason, end.error.field) == (reason, "c")
    assert ice.files_on_disk(table) == before


def test_initial_defaults_stay_what_they_are_for_rows_before_the_column(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field, read_by_others

    table = create(ice, "t", json.loads(json.dumps(FLAT).replace('"x"', '"string"')), format_version="3")
    writer = ForeignWriter(ice, table)
    stored = pa.schema([field("id", pa.int64(), {"id": 1}), field("c", pa.string(), {"c": 2})])
    writer.add(pa.table([[1, 2], ["a", None]], schema=stored))
    resolve = ice.engine._scala.resolve
    literal = resolve("org.apache.iceberg.expressions.Literal").of(5)
    kind = resolve("org.apache.iceberg.types.Types$IntegerType").get()
    writer.java.updateSchema().addColumn("d", kind, "", literal).commit()
    writer.add(pa.table([[3], ["b"], [None]], schema=stored.append(field("d", pa.int32(), {"d": 3}))))
    text = f"SELECT id, c, d FROM {table} ORDER BY id"
    rows, seen = ice.sql(text).collect(), read_by_others(ice, table)
    assert [row["d"] for row in rows] == [5, 5, None]
    assert ice.rewrite_all(table).status is GroupStatus.COMMITTED
    assert ice.sql(text).collect() == rows
    assert read_by_others(ice, table)["pyiceberg"] == seen["pyiceberg"]


STRUCTS: Mapping[str, tuple[str, str, tuple[str, ...], str]] = {
    "a default before others": (
        "s STRUCT<a: INT>", "named_struct('a', 1)", (), "s",
    ),
    "a default in a list": (
        "l ARRAY<STRUCT<a: INT>>", "array(named_struct('a', 1), named_struct('a', 2))",
        (), "l.element",
    ),
    "all fields are new": (
        "s STRUCT<a: INT>", "named_struct('a', 1)", ("ADD COLUMN s.b INT", "DROP COLUMN s.a"), "s",
    ),
    "all fields of elements are new": (
        "l ARRAY<STRUCT<a: INT>>", "array(named_struct('a', 1))",
        ("ADD COLUMN l.element.b INT", "DROP COLUMN l.element.a"), "l.element",
    ),
}  # fmt: skip
"""Columns, a value, changes of the schema (none: a field with a default becomes the first), and what is refused."""


@pytest.mark.parametrize("how", STRUCTS)
def test_structs_that_spark_reads_as_others_are_refused_by_name(ice: "IcebergLab", how: str) -> None:
    """Each rewrite would make final what Spark reads; nothing but a look at the schemas finds it in every case."""
    column, value, changes, path = STRUCTS[how]
    table = "ice.db.t"
    ice.sql(f"CREATE TABLE {table} (id BIGINT, {column}) USING iceberg TBLPROPERTIES ('format-version'='3')")
    for number in range(2):
        ice.sql(f"INSERT INTO {table} VALUES ({number}, {value}), ({number} + 5, NULL)")
    if not changes:
        resolve = ice.engine._scala.resolve
        literal = resolve("org.apache.iceberg.expressions.Literal").of(7)
        kind = resolve("org.apache.iceberg.types.Types$IntegerType").get()
        update = ice.java(table).updateSchema()
        update.addColumn(path, "n", kind, "", literal).moveFirst(f"{path}.n").commit()
    for change in changes:
        ice.sql(f"ALTER TABLE {table} {change}")
    before = ice.files_on_disk(table)
    end = ice.rewrite_all(table)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert (end.error.reason, end.error.field) == ("unsupported", path)
    assert ice.files_on_disk(table) == before


def test_structs_that_hold_the_null_of_a_partition_are_merged_and_never_encoded(ice: "IcebergLab") -> None:
    """Spark reads a null of such a struct as a struct of nulls; those of other partitions are none."""
    from tests.contract.test_iceberg_copy import groups_of
    from tests.support.iceberg_foreign import stored_rows

    table = "ice.db.t"
    ice.sql(
        f"CREATE TABLE {table} (id BIGINT, s STRUCT<x: INT, y: INT>) USING iceberg PARTITIONED BY (s.x) "
        "TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='none', 'write.spark.fanout.enabled'='true')"
    )
    for number in range(2):
        value = "named_struct('x', 4, 'y', 5)"
        ice.sql(f"INSERT INTO {table} VALUES ({number}, NULL), (2, named_struct('x', NULL, 'y', 1)), (3, {value})")
    rows, groups = stored_rows(ice, table), groups_of(ice, table)
    ends = ice.rewrite(table, *groups, may_copy=False).groups
    assert {(end.status, getattr(end.error, "field", "")) for end in ends} == {
        (GroupStatus.COMMITTED, ""),
        (GroupStatus.REFUSED, "s"),
    }
    assert stored_rows(ice, table) == rows
    ends = ice.rewrite(table, *(one for one in groups_of(ice, table) if len(one) > 1)).groups
    assert [end.status for end in ends] == [GroupStatus.COMMITTED]
    assert stored_rows(ice, table) == rows
