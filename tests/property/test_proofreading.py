"""Proofreading notices one change in any table, says which column, and finds nothing where nothing changed.

Equality is judged by the text of the rows that were written, not by a reader.
"""

import datetime as dt
import os
import random
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actor.proofread.model import Field, FoundBy, ProofFile, Rewritten
from actor.proofread.process import answer, connect
from actor.proofread.task import Answer, ReadEnding, Task, Work

_LEAVES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "boolean": (pa.bool_(), (True, False)),
    "int8": (pa.int8(), (0, -1, 1, 127, -128)),
    "int16": (pa.int16(), (0, -1, 1, 32767)),
    "int32": (pa.int32(), (0, -1, 1, 2**31 - 1, -(2**31))),
    "int64": (pa.int64(), (0, -1, 1, 2**63 - 1, -(2**63))),
    "float": (pa.float32(), (0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 2.0**-149)),
    "double": (pa.float64(), (0.0, -0.0, 0.1, float("nan"), float("inf"), 5e-324)),
    "decimal(9,2)": (pa.decimal128(9, 2), (Decimal("0.00"), Decimal("-0.01"), Decimal("9999999.99"))),
    "decimal(18,3)": (pa.decimal128(18, 3), (Decimal("0.000"), Decimal("-0.001"), Decimal("1.000"))),
    "decimal(38,3)": (pa.decimal128(38, 3), (Decimal("0.000"), Decimal("-0.001"), Decimal("-1.000"), Decimal(2**64))),
    "string": (pa.string(), ("", "a", "b", "a ", "\0", "é", "x" * 30)),
    "binary": (pa.binary(), (b"", b"\0", b"\xff", b"a")),
    "fixed(4)": (pa.binary(4), (b"\0\0\0\0", b"\0\0\0\1", b"\xff\xff\xff\xff")),
    "uuid": (pa.binary(16), (uuid.UUID(int=0).bytes, uuid.UUID(int=2**64 + 1).bytes, uuid.UUID(int=2**128 - 1).bytes)),
    "date": (pa.date32(), (dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "time": (pa.time64("us"), (dt.time(0), dt.time(23, 59, 59, 999999), dt.time(0, 0, 0, 1))),
    "timestamp": (pa.timestamp("us"), (0, 1, -1, -62135596800 * 10**6, 253402300799 * 10**6)),
    "timestamptz": (pa.timestamp("us", "UTC"), (0, 1, -1, 10**15)),
    "timestamp_ns": (pa.timestamp("ns"), (0, 1, -1, 10**18)),
}
LEAF_KINDS = tuple(_LEAVES)


@dataclass(frozen=True, slots=True)
class RandomTable:
    """Columns, their Arrow schema with field ids, and rows as tuples of what Arrow is given."""

    columns: tuple[Field, ...]
    schema: pa.Schema
    rows: tuple[tuple[Any, ...], ...]


def random_table(rng: random.Random, *, depth: int = 3, rows: int = 40) -> RandomTable:
    """Return a table of up to four columns."""
    numbers = iter(range(1, 10_000))
    columns = tuple(_column(rng, f"c{index}", depth, numbers) for index in range(rng.randint(1, 4)))
    schema = pa.schema([arrow_field(column) for column in columns])
    made = tuple(tuple(value(rng, column) for column in columns) for _ in range(rng.randint(1, rows)))
    return RandomTable(columns, schema, made)


def _column(rng: random.Random, name: str, depth: int, numbers: Any) -> Field:
    kind = rng.choice((*LEAF_KINDS, *("struct", "list", "map") * 5)) if depth else rng.choice(LEAF_KINDS)
    number = next(numbers)
    match kind:
        case "struct":
            parts = [f"f{index}" for index in range(rng.randint(1, 3))]
        case "list":
            parts = ["element"]
        case "map":
            parts = ["key", "value"]
        case _:
            parts = []
    children = tuple(_column(rng, part, 0 if part == "key" else depth - 1, numbers) for part in parts)
    return Field(name, kind, number, children=children)


def arrow_field(column: Field, *, with_id: bool = True) -> pa.Field:
    """Return a column as Arrow's."""
    metadata = {b"PARQUET:field_id": str(column.id).encode()} if with_id and column.id is not None else None
    return pa.field(column.name, _arrow_type(column, with_id=with_id), column.name != "key", metadata)


def _arrow_type(column: Field, *, with_id: bool) -> pa.DataType:
    children = [arrow_field(child, with_id=with_id) for child in column.children]
    match column.kind:
        case "struct":
            return pa.struct(children)
        case "list":
            return pa.list_(children[0])
        case "map":
            return pa.map_(*children)
        case kind:
            return _LEAVES[kind][0]


def value(rng: random.Random, column: Field) -> Any:
    """Return a value of a column, null in one case of five."""
    if column.name != "key" and rng.random() < 0.2:
        return None
    match column.kind:
        case "struct":
            return {child.name: value(rng, child) for child in column.children}
        case "list":
            return [value(rng, column.children[0]) for _ in range(rng.randrange(4))]
        case "map":
            return [(value(rng, column.children[0]), value(rng, column.children[1])) for _ in range(rng.randrange(3))]
        case kind:
            return rng.choice(_LEAVES[kind][1])


def changed(rng: random.Random, table: RandomTable) -> tuple[str, tuple[tuple[Any, ...], ...]]:
    """Return rows with one planted change, and its name; what turns out to change nothing is planted again."""
    given = sorted(map(repr, table.rows))
    while True:
        change, rows = _planted(rng, table)
        if sorted(map(repr, rows)) != given:
            return change, rows


def _planted(rng: random.Random, table: RandomTable) -> tuple[str, tuple[tuple[Any, ...], ...]]:
    rows = [list(row) for row in table.rows]
    at, other, column = rng.randrange(len(rows)), rng.randrange(len(rows)), rng.randrange(len(table.columns))
    change = rng.choice(("value", "null", "inside", "swap", "shift", "duplicate and loss", "loss"))
    match change:
        case "value":
            rows[at][column] = value(rng, table.columns[column])
        case "null":
            rows[at][column] = None
        case "inside":
            rows[at][column] = _inside(rng, table.columns[column], rows[at][column])
        case "swap":
            rows[at][column], rows[other][column] = rows[other][column], rows[at][column]
        case "shift":  # A null becomes the value of the row before.
            rows[at][column] = rows[at - 1][column]
        case "duplicate and loss":
            rows[at] = rows[other]
        case "loss":
            del rows[at]
    return change, tuple(map(tuple, rows))


def _inside(rng: random.Random, column: Field, old: Any) -> Any:
    """Change one part of a value at any depth."""
    if not old or not column.children or rng.random() < 0.2:
        return value(rng, column)
    if column.kind == "struct":
        child = rng.choice(column.children)
        return {**old, child.name: _inside(rng, child, old[child.name])}
    at = rng.randrange(len(old))
    if column.kind == "list":
        return [*old[:at], _inside(rng, column.children[0], old[at]), *old[at + 1 :]]
    return [*old[:at], (old[at][0], _inside(rng, column.children[1], old[at][1])), *old[at + 1 :]]


def write(rng: random.Random, schema: pa.Schema, rows: Any, path: Path) -> str:
    """Write rows in one of many physical forms, and return where."""
    arrays = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)]
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema),
        path,
        compression=rng.choice(("snappy", "zstd", "none", "gzip")),
        use_dictionary=rng.random() < 0.5,
        # pyarrow does not read pages of version 2 that it wrote of booleans which are all null.
        data_page_version="1.0" if "bool" in str(schema) else rng.choice(("1.0", "2.0")),
        row_group_size=rng.choice((3, 1000)),
        data_page_size=rng.choice((64, 1 << 20)),
    )
    return str(path)


def write_split(rng: random.Random, schema: pa.Schema, rows: Any, folder: Path, name: str) -> tuple[str, ...]:
    """Write rows in another order into one to three files."""
    shuffled = rng.sample(list(rows), len(rows))
    parts = rng.randint(1, 3)
    return tuple(write(rng, schema, shuffled[part::parts], folder / f"{name}{part}.parquet") for part in range(parts))


EXAMPLES = int(os.environ.get("LAKEWRIGHT_PROOFREAD_EXAMPLES", "12"))
"""Tables for each reader; `make test-proofread` takes 1,000."""

SEED = int(os.environ.get("LAKEWRIGHT_PROOFREAD_SEED", "1"))


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    return connect(str(tmp_path_factory.mktemp("scratch")))


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
def test_one_change_in_a_random_table_is_noticed_and_its_column_named(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, work: Work
) -> None:
    for example in range(EXAMPLES):
        seed = SEED * 1_000_003 + example
        rng = random.Random(seed)
        table = random_table(rng)
        change, rows = changed(rng, table)
        found_by = rng.choice(tuple(FoundBy))
        inputs = write_split(rng, table.schema, table.rows, tmp_path, "in")
        outputs = write_split(rng, table.schema, table.rows, tmp_path, "out")
        damaged = write_split(rng, table.schema, rows, tmp_path, "bad")

        def read(written: tuple[str, ...], found_by=found_by, table=table, inputs=inputs) -> Answer:
            files = (tuple(ProofFile(path, 0) for path in paths) for paths in (inputs, written))
            group = Rewritten("t", "", table.columns, found_by, *files)
            return answer(connection, Task(work, group, 256))

        said = f"seed {seed}: {change} in {table.schema}"
        equal = read(outputs)
        assert (equal.ending, equal.rows) == (ReadEnding.SAME, len(table.rows)), f"{said}: {equal}"
        other = read(damaged)
        assert other.ending is ReadEnding.DIFFERENT, f"{said}: {other}"
        if len(rows) == len(table.rows):
            differing = {
                column.name
                for index, column in enumerate(table.columns)
                if sorted(repr(row[index]) for row in table.rows) != sorted(repr(row[index]) for row in rows)
            }
            assert set(other.columns) == differing, f"{said}: {other}"
    print(f"{EXAMPLES} tables from seed {SEED}: each change noticed, none found where there was none")
