"""A rewrite reads what files store and writes it again: it enforces nothing, pads nothing and fills nothing in.

The rows are compared by pyarrow, which has no part in the rewrite. Tables as other writers leave them: nulls under a
schema that forbids them, texts that are longer or shorter than declared, columns that are computed elsewhere.
"""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from actor.formats.delta.log import TableLog
from actor.ports import GroupOutcome, GroupStatus, TableJob
from actor.proofread.model import Reading
from shared.errors import Difference, RefusedFiles
from shared.jobs.payload import DEDUPLICATE
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.policy.row_order import RowOrder, SortColumn
from shared.table import CommitOrigin
from tests.contract.test_row_group_copy import spoil
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
from tests.support.stored_table import StoredTable, field, garble  # noqa: E402 - needs pyarrow

pytestmark = pytest.mark.spark

ID = field("id", "long", nullable=False)
DAY, INSTANT = dt.date(1582, 10, 1), dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
LEAVES: list[tuple[str, Any, Any]] = [
    ("boolean", pa.bool_(), True),
    ("byte", pa.int8(), -128),
    ("short", pa.int16(), 32_767),
    ("integer", pa.int32(), 7),
    ("long", pa.int64(), -(2**63)),
    ("float", pa.float32(), -0.0),
    ("double", pa.float64(), 1.5),
    ("decimal(9,2)", pa.decimal128(9, 2), Decimal("1.25")),
    ("decimal(38,2)", pa.decimal128(38, 2), Decimal("-1.25")),
    ("string", pa.string(), "value"),
    ("binary", pa.binary(), b"\xff\x00"),
    ("date", pa.date32(), DAY),
    ("timestamp", pa.timestamp("us", "UTC"), INSTANT),
    ("timestamp_ntz", pa.timestamp("us"), INSTANT.replace(tzinfo=None)),
]


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": False}


def mapping(value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": False}


def struct(inner: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [field("inner", inner, nullable=False)]}


def never_null() -> tuple[list[dict[str, Any]], Any, list[dict[str, Any]]]:
    """The fields of a schema that forbids nulls of each type at each depth, the files' schema, and rows of nulls."""
    fields, columns = [ID], [pa.field("id", pa.int64())]
    rows: list[dict[str, Any]] = [{"id": n} for n in range(6)]
    for name, arrow, value in LEAVES:
        key = name.replace("(", "_").replace(",", "_").replace(")", "")
        shapes = {
            key: (name, arrow, [value, None]),
            f"{key}_array": (array(name), pa.list_(arrow), [[value, None], [None], [], None]),
            f"{key}_map": (mapping(name), pa.map_(pa.string(), arrow), [[("a", value), ("b", None)], None]),
            f"{key}_struct": (struct(name), pa.struct([("inner", arrow)]), [{"inner": value}, {"inner": None}, None]),
        }
        for column, (type_, stored, values) in shapes.items():
            fields.append(field(column, type_, nullable=False))
            columns.append(pa.field(column, stored))
            for row in rows:
                row[column] = values[row["id"] % len(values)]
    return fields, pa.schema(columns), rows


def rewritten(lab: DeltaLab, table: StoredTable, order: RowOrder | None = None) -> GroupOutcome:
    files = tuple(sorted(lab.engine.read_partition(table.location, WHOLE_TABLE).files, key=lambda file: file.path))
    group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR, order=order)
    (end,) = lab.rewrite(table.location, [group], may_copy=False).groups
    if end.status is GroupStatus.COMMITTED:
        assert end.proof is not None
        assert end.proof.reading is Reading.ROWS, end.proof.unverified_because
    return end


@pytest.mark.parametrize("order", [None, RowOrder(()), RowOrder((SortColumn("id"),))], ids=["packed", "kept", "sorted"])
def test_nulls_stay_nulls_where_the_schema_forbids_them(lab: DeltaLab, order: RowOrder | None) -> None:
    fields, schema, rows = never_null()
    table = StoredTable(lab.directory / "t", fields)
    for first in (0, 3):
        table.append(pa.Table.from_pylist(rows[first : first + 3], schema=schema))
    before = table.rows()

    end = rewritten(lab, table, order)

    assert end.status is GroupStatus.COMMITTED, end.error
    assert table.rows() == before


def test_nulls_stay_nulls_beside_deleted_rows(lab: DeltaLab) -> None:
    fields, schema, rows = never_null()
    table = StoredTable(lab.directory / "t", fields, {"delta.enableDeletionVectors": "true"})
    for first in (0, 3):
        table.append(pa.Table.from_pylist(rows[first : first + 3], schema=schema))
    deleted = (1, 4)
    lab.sql(f"DELETE FROM delta.`{table.path}` WHERE id IN {deleted}")
    vectors = [add["deletionVector"]["cardinality"] for add in tables.live(table.path).values()]
    assert vectors == [1, 1]
    before = [row for row in table.rows() if row["id"] not in deleted]

    end = rewritten(lab, table)

    assert (end.status, end.rows) == (GroupStatus.COMMITTED, 4), end.error
    assert table.rows() == before


TEXTS = ["dl", "dl    ", None, "longer than declared"]


def declared_texts(kind: str) -> list[dict[str, Any]]:
    """Texts of a declared size, at the top, in a list and in a struct: what Spark's metadata say of each."""
    size = "__CHAR_VARCHAR_TYPE_STRING"
    within = {"type": "struct", "fields": [field("inner", "string")]}
    return [
        ID,
        field("c", "string", **{size: kind}),
        field("l", array("string"), **{size: f"array<{kind}>"}),
        field("s", within, **{size: f"struct<inner:{kind}>"}),
    ]


@pytest.mark.parametrize("kind", ["char(6)", "varchar(6)"])
def test_texts_are_neither_padded_nor_measured(lab: DeltaLab, kind: str) -> None:
    table = StoredTable(lab.directory / "t", declared_texts(kind))
    for n, text in enumerate(TEXTS):
        table.append(
            pa.table({"id": [n], "c": pa.array([text], pa.string()), "l": [[text, "x"]], "s": [{"inner": text or ""}]})
        )
    before = table.rows()

    end = rewritten(lab, table)

    assert end.status is GroupStatus.COMMITTED, end.error
    assert table.rows() == before


def test_a_default_of_spark_alone_is_not_written_into_rows_that_lack_the_column(lab: DeltaLab) -> None:
    """Spark fills it in, and all other readers show null: neither answer may become the other."""
    late = field("late", "integer", CURRENT_DEFAULT="5", EXISTS_DEFAULT="5")
    table = StoredTable(lab.directory / "t", [ID, late])
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2], "late": pa.array([7], pa.int32())}))
    before = table.rows()

    end = rewritten(lab, table)

    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert "'late'" in str(end.error)
    assert "UPDATE" in str(end.error)
    assert table.rows() == before
    assert len(list(table.path.glob("*.parquet"))) == 2


def test_a_column_that_all_files_have_is_rewritten_whatever_its_default_is(lab: DeltaLab) -> None:
    table = StoredTable(lab.directory / "t", [ID, field("d", "integer", CURRENT_DEFAULT="5", EXISTS_DEFAULT="5")])
    for n in (1, None):
        table.append(pa.table({"id": [n or 0], "d": pa.array([n], pa.int32())}))
    before = table.rows()

    assert rewritten(lab, table).status is GroupStatus.COMMITTED
    assert table.rows() == before


def test_what_rows_contradict_is_not_checked(lab: DeltaLab) -> None:
    """A constraint, an invariant, a generated and an identity column, a NOT NULL inside of a null struct."""
    generated = {"delta.generationExpression": "CAST(at AS DATE)"}
    invariant = {"delta.invariants": json.dumps({"expression": {"expression": "v > 10"}})}
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    fields = [
        ID,
        field("at", "timestamp"),
        field("day", "date", **generated),
        field("v", "integer", **invariant),
        field("number", "long", **identity),
        field("s", struct("integer")),
    ]
    checks = {"delta.constraints.positive": "v > 0", "delta.constraints.odd": "no_such_function(v)"}
    table = StoredTable(lab.directory / "t", fields, checks)
    for n in range(4):
        table.append(
            pa.table(
                {
                    "id": [n],
                    "at": pa.array([INSTANT], pa.timestamp("us", "UTC")),
                    "day": pa.array([DAY]),
                    "v": pa.array([-1], pa.int32()),
                    "number": pa.array([5], pa.int64()),
                    "s": pa.array([None if n % 2 else {"inner": 1}], pa.struct([("inner", pa.int32())])),
                }
            )
        )
    before = table.rows()

    end = rewritten(lab, table)

    assert end.status is GroupStatus.COMMITTED, end.error
    assert table.rows() == before


def as_bytes(values: list[bytes | None], *, nested: bool = False) -> Any:
    column = pa.array(values, pa.binary())
    lists = pa.array([[value] for value in values], pa.list_(pa.binary()))
    return pa.table({"id": range(len(values)), "t": column} | ({"l": lists} if nested else {}))


@pytest.mark.parametrize("nested", [False, True])
def test_texts_stored_as_bytes_that_are_no_utf_8_are_refused_and_others_become_texts(
    lab: DeltaLab, nested: bool
) -> None:
    """Readers that check texts could read the one and not the other."""
    fields = [ID, field("t", "string"), *([field("l", array("string"))] if nested else [])]
    good, bad = (StoredTable(lab.directory / name, fields) for name in ("good", "bad"))
    for _ in range(2):
        good.append(as_bytes([b"a", None, "ü".encode()], nested=nested))
    bad.append(as_bytes([b"a"], nested=nested))
    bad.append(as_bytes([None, b"\xff\xfe"], nested=nested))
    before = [row["t"] and row["t"].decode() for row in good.rows()]

    assert rewritten(lab, good).status is GroupStatus.COMMITTED
    assert [row["t"] for row in good.rows()] == before
    end = rewritten(lab, bad)
    assert end.status is GroupStatus.REFUSED
    assert "UTF-8" in str(end.error)
    assert len(bad.rows()) == 3


def unsigned(values: list[int], type_: Any) -> Any:
    return pa.table({"id": range(len(values)), "u": pa.array(values, type_)})


@pytest.mark.parametrize(
    ("declared", "stored", "largest"),
    [("byte", pa.uint8(), 127), ("short", pa.uint16(), 32_767), ("long", pa.uint32(), 2**32 - 1)],
)
def test_unsigned_integers_are_rewritten_where_their_values_fit(
    lab: DeltaLab, declared: str, stored: Any, largest: int
) -> None:
    table, wide = (StoredTable(lab.directory / name, [ID, field("u", declared)]) for name in ("t", "wide"))
    for path in (table, wide):
        path.append(unsigned([0, 1], stored))
    table.append(unsigned([largest], stored))
    before = table.rows()

    assert rewritten(lab, table).status is GroupStatus.COMMITTED
    assert table.rows() == before
    if largest + 1 < 2**stored.bit_width:
        wide.append(unsigned([largest + 1], stored))
        assert rewritten(lab, wide).status is GroupStatus.REFUSED
        assert len(wide.rows()) == 3


@pytest.mark.parametrize(
    ("declared", "stored"),
    [("byte", pa.int32()), ("short", pa.int32()), ("integer", pa.uint32()), ("long", pa.uint64())],
)
def test_integers_wider_than_their_column_are_refused_because_spark_cuts_them_or_fails(
    lab: DeltaLab, declared: str, stored: Any
) -> None:
    table = StoredTable(lab.directory / "t", [ID, field("u", declared)])
    table.append(unsigned([1], pa.int8()))
    table.append(unsigned([300], stored))
    before = table.rows()

    assert rewritten(lab, table).status is GroupStatus.REFUSED
    assert table.rows() == before


def test_a_page_that_differs_from_its_checksum_is_not_encoded_under_a_new_one(lab: DeltaLab) -> None:
    table = StoredTable(lab.directory / "t", [ID])
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    damaged, _ = [table.append(pa.table({"id": [n, n]}), **options) for n in range(2)]
    spoil(table.path / damaged)

    end = rewritten(lab, table)

    assert end.status is GroupStatus.REFUSED
    assert damaged in str(end.error)
    assert len(list(table.path.glob("*.parquet"))) == 2


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "none"])
def test_a_page_without_a_checksum_that_cannot_be_read_refuses_its_file_alone(lab: DeltaLab, codec: str) -> None:
    """Decompression notices it, or other bytes come out, which lead Spark's reader anywhere."""
    table = StoredTable(lab.directory / "t", [ID, field("v", "string")])
    values = [f"value {n * 7919 % 1000}" for n in range(1000)]
    damaged, _ = [table.append(pa.table({"id": range(1000), "v": values}), compression=codec) for _ in range(2)]
    garble(table.path / damaged)

    end = rewritten(lab, table)

    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert end.error.files == (damaged,)
    assert len(list(table.path.glob("*.parquet"))) == 2


def test_the_removal_of_older_rows_changes_no_other_row_and_compares_keys_as_they_are_stored(lab: DeltaLab) -> None:
    """Null keys in a column that forbids them, a text that Spark would pad, and nulls in a list."""
    size = {"__CHAR_VARCHAR_TYPE_STRING": "char(6)"}
    fields = [field("id", "string", nullable=False, **size), field("at", "long"), field("v", array("integer"))]
    table = StoredTable(lab.directory / "t", fields)
    kept = [("dl", 2, [1, None]), ("dl    ", 1, [None]), (None, 1, None), (None, 2, [None, 2])]
    older = [("dl", 1, [5])]
    schema = pa.schema([("id", pa.string()), ("at", pa.int64()), ("v", pa.list_(pa.int32()))])
    for rows in ([*kept[:2], *older], kept[2:]):
        table.append(pa.Table.from_pylist([dict(zip(("id", "at", "v"), row, strict=True)) for row in rows], schema))

    job = TableJob(DEDUPLICATE, table.location, Policy(primary_key="id", sequence_by="at"), CommitOrigin("j", 1))
    done = lab.engine.run_table_job(job, Control())

    assert done.figures["rows_removed"] == 1
    found = [tuple(row.values()) for row in table.stored()]
    assert sorted(found, key=repr) == sorted(kept, key=repr)


def test_outputs_that_do_not_hold_the_rows_of_their_inputs_are_never_committed(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the schema as it is declared, Spark writes a map with a null so that no reader can read the file."""
    monkeypatch.setattr(TableLog, "stored", lambda _log, snapshot: snapshot)
    table = StoredTable(lab.directory / "t", [ID, field("v", mapping("integer"))])
    values = pa.array([[("a", 1), ("b", None)]] * 4, pa.map_(pa.string(), pa.int32()))
    for n in range(3):
        table.append(pa.table({"id": range(4 * n, 4 * n + 4), "v": values}))
    before = table.rows()

    end = rewritten(lab, table)

    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, Difference)
    assert table.rows() == before
    assert len(list(table.path.glob("*.parquet"))) == 3


@pytest.mark.parametrize(("may_copy", "reading"), [(False, "rows"), (True, "rows")])
def test_the_first_group_of_each_kind_is_compared_by_its_rows(lab: DeltaLab, *, may_copy: bool, reading: str) -> None:
    table = StoredTable(lab.directory / "t", [ID])
    for n in range(3):
        table.append(pa.table({"id": [n, n]}))
    group = lab.group(table.location, count=3)

    (end,) = lab.rewrite(table.location, [group], may_copy=may_copy).groups

    assert end.proof is not None
    assert (end.proof.reading, end.proof.rows, end.proof.reader) == (reading, 6, "duckdb")


@pytest.mark.parametrize("may_copy", [False, True])
@pytest.mark.parametrize("more", [7, 2**20, -3])
def test_a_file_of_another_size_than_the_log_says_is_rewritten_exactly_or_refused_by_its_name(
    lab: DeltaLab, *, more: int, may_copy: bool
) -> None:
    table = StoredTable(lab.directory / "t", [ID])
    table.append(pa.table({"id": [1, 2]}))
    pq.write_table(pa.table({"id": [3, 4]}), table.path / "odd.parquet")
    table.add("odd.parquet", 2, size=(table.path / "odd.parquet").stat().st_size + more)

    (end,) = lab.rewrite(table.location, [lab.group(table.location, count=2)], may_copy=may_copy).groups

    if end.status is not GroupStatus.COMMITTED:
        assert isinstance(end.error, RefusedFiles)
        assert "odd.parquet" in str(end.error)
        assert len(list(table.path.glob("*.parquet"))) == 2
    assert [row["id"] for row in table.rows()] == [1, 2, 3, 4]


@pytest.mark.parametrize("stats", ["no JSON", "[1]", '{"numRecords": "2"}', '{"numRecords": null}'])
def test_statistics_that_say_nothing_do_not_keep_a_table_from_being_rewritten(lab: DeltaLab, stats: str) -> None:
    table = StoredTable(lab.directory / "t", [ID])
    table.append(pa.table({"id": [1, 2]}))
    pq.write_table(pa.table({"id": [3, 4]}), table.path / "odd.parquet")
    table.add("odd.parquet", 2, stats=stats)

    end = rewritten(lab, table)

    assert (end.status, end.rows) == (GroupStatus.COMMITTED, 4)
    assert [row["id"] for row in table.rows()] == [1, 2, 3, 4]


def test_rows_of_files_with_vectors_may_be_counted_as_readers_see_them(lab: DeltaLab) -> None:
    """Trino's ANALYZE does so; others count what is stored. Reading decides."""
    table = tables.table(lab.directory / "t", files=3, deletion_vectors=True)
    lab.sql(f"DELETE FROM delta.`{table.path}` WHERE id IN (1, 2, 21)")
    for (path, _vector), add in tables.live(table.path).items():
        deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
        again = {**add, "stats": json.dumps({"numRecords": 20 - deleted}), "dataChange": False}
        table.commit([{"add": again}])
        assert path
    before = lab.digest(table.location)

    (end,) = lab.rewrite(table.location, [lab.group(table.location, count=3)]).groups

    assert (end.status, end.rows) == (GroupStatus.COMMITTED, 57)
    assert lab.digest(table.location) == before
