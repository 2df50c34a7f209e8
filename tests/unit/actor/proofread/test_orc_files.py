"""Files of ORC are compared by the second reader; their columns are found by the ids that Iceberg leaves in them."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import orc

from actor.proofread.model import DeleteForm, Deletes, Field, FoundBy, ProofFile
from actor.proofread.task import Answer, ReadEnding, Work
from tests.support.proofread_groups import group_of, read, stored
from tests.unit.actor.proofread.test_deleted_rows import PUFFIN_BODY, ROWS, framed

_NAMES = {"parquet": "PARQUET:field_id", "orc": "iceberg.id"}
COLUMNS = (
    Field("a", "int64", 1),
    Field("s", "string", 2),
    Field("d", "decimal(20,3)", 3),
    Field("t", "timestamptz", 4),
    Field("l", "list", 5, children=(Field("element", "double", 6),)),
)
BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=dt.UTC)


def rows(**changes: Any) -> list[dict[str, Any]]:
    """Ten rows; the last one has the changes."""
    made = [
        {"a": n, "s": f"s{n}" if n % 2 else None, "d": Decimal(n) / 8, "t": BEFORE_1970, "l": [n / 2, None]}
        for n in range(10)
    ]
    return [*made[:-1], made[-1] | changes]


def schema(form: str, *, has_ids: bool = True) -> pa.Schema:
    def field(name: str, type_: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, type_, metadata={_NAMES[form]: str(number)} if has_ids else None)

    kinds = [pa.int64(), pa.string(), pa.decimal128(20, 3), pa.timestamp("us", "UTC")]
    flat = [field(column.name, kind, column.id or 0) for column, kind in zip(COLUMNS, kinds, strict=False)]
    return pa.schema([*flat, field("l", pa.list_(field("element", pa.float64(), 6)), 5)])


def in_orc(path: Path, made: list[dict[str, Any]], **options: Any) -> ProofFile:
    orc.write_table(pa.Table.from_pylist(made, schema("orc", **options)), str(path), stripe_size=1, batch_size=4)
    return ProofFile(str(path), path.stat().st_size)


def compared(connection: duckdb.DuckDBPyConnection, given: ProofFile, made: ProofFile) -> Answer:
    group = group_of(COLUMNS, [given], [made], FoundBy.ID)
    assert read(connection, group).ending is ReadEnding.UNREADABLE
    return read(connection, group, Work.ROWS_AGAIN)


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({}, None),
        ({"a": None}, "a"),
        ({"s": ""}, "s"),
        ({"d": Decimal("-1.125")}, "d"),
        ({"t": BEFORE_1970 + dt.timedelta(microseconds=1)}, "t"),
        ({"l": [None, 4.5]}, "l"),
    ],
)
def test_a_change_in_a_file_of_orc_is_noticed_and_its_column_named(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, changes: dict[str, Any], column: str | None
) -> None:
    found = compared(connection, in_orc(tmp_path / "in.orc", rows()), in_orc(tmp_path / "out.orc", rows(**changes)))
    wanted = (ReadEnding.SAME, ()) if column is None else (ReadEnding.DIFFERENT, (column,))
    assert (found.ending, found.columns, found.rows) == (*wanted, 10)


def test_files_of_two_formats_that_hold_the_same_rows_are_equal(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "v.puffin"
    path.write_bytes(b"PFA1" + framed(PUFFIN_BODY))
    vector = Deletes(DeleteForm.PUFFIN_VECTOR, str(path), offset=4, size_bytes=len(framed(PUFFIN_BODY)))
    given = in_orc(tmp_path / "in.orc", rows())
    live = [row for number, row in enumerate(rows()) if number not in ROWS]
    made = stored(tmp_path / "out.parquet", pa.Table.from_pylist(live, schema("parquet")))
    found = compared(connection, ProofFile(given.path, given.size_bytes, deletes=(vector,)), made)
    assert (found.ending, found.rows) == (ReadEnding.SAME, len(live)), found


def test_columns_of_orc_without_ids_are_unclear(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    files = [in_orc(tmp_path / f"{name}.orc", rows(), has_ids=False) for name in ("in", "out")]
    assert compared(connection, *files).ending is ReadEnding.UNCLEAR
