"""Different values have different numbers, and equal ones the same, however files store them."""

import datetime as dt
import itertools
import struct
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from actor.proofread.hashing import MOST_NESTED_LISTS, column_hash
from actor.proofread.matching import absent
from actor.proofread.model import CannotRead, Field, FoundBy, ProofFile
from actor.proofread.row_sums import portions_of, row_sum
from actor.proofread.task import ReadEnding, Work
from tests.support.proofread_groups import group_of, one_column, read, stored


def no_vectors(path: str, offset: int, size: int) -> bytes:
    raise AssertionError(f"{path}: {offset}, {size}")


DECIMALS = tuple(Decimal(number) for number in (0, -1, 1, 2**63, -(2**63), 2**64, -(2**64)))
EDGES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "boolean": (pa.bool_(), (None, True, False)),
    "int8": (pa.int8(), (None, 0, -1, 127, -128)),
    "int16": (pa.int16(), (None, 0, -1, 2**15 - 1)),
    "int32": (pa.int32(), (None, 0, -1, 2**31 - 1, -(2**31))),
    "int64": (pa.int64(), (None, 0, -1, 2**63 - 1, -(2**63))),
    "float": (pa.float32(), (None, 0.0, -0.0, float("nan"), float("inf"), float("-inf"), 2.0**-149)),
    "double": (pa.float64(), (None, 0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 0.1)),
    "decimal(4,1)": (pa.decimal128(4, 1), (None, Decimal("0.0"), Decimal("-0.1"), Decimal("0.1"))),
    "decimal(18,0)": (pa.decimal128(18, 0), (None, Decimal(0), Decimal(-1), Decimal(10**17))),
    "decimal(20,0)": (pa.decimal128(20, 0), (None, *DECIMALS)),
    "decimal(38,3)": (pa.decimal128(38, 3), (None, Decimal("-0.001"), *DECIMALS)),
    "string": (pa.string(), (None, "", " ", "a", "a ", "\0", "é", "e\u0301")),
    "binary": (pa.binary(), (None, b"", b"\0", b"\0\0", b"\xff")),
    "fixed(2)": (pa.binary(2), (None, b"\0\0", b"\0\1", b"\1\0")),
    "uuid": (pa.uuid(), (None, *(uuid.UUID(int=number).bytes for number in (0, 1, 2**64, 2**64 + 1, 2**128 - 1)))),
    "date": (pa.date32(), (None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31))),
    "time": (pa.time64("us"), (None, dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999999))),
    "timestamp": (pa.timestamp("us"), (None, 0, -1, 1, 253402300799999999)),
    "timestamptz": (pa.timestamp("us", "UTC"), (None, 0, -1, 1, 253402300799999999)),
    "timestamp_ns": (pa.timestamp("ns"), (None, 0, -1, 1, 2**62)),
}


@pytest.mark.parametrize("kind", EDGES)
def test_each_value_at_the_edges_of_a_type_differs_from_each_other(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    type_, values = EDGES[kind]
    column, table = one_column(kind, type_, values)
    assert len(set(numbers_of(connection, column, stored(tmp_path / "all.parquet", table)))) == len(values)


@pytest.mark.parametrize("kind", EDGES)
def test_the_second_reader_tells_the_same_values_apart(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    type_, values = EDGES[kind]
    column, _ = one_column(kind, type_, values)
    files = [
        stored(tmp_path / f"{index}.parquet", one_column(kind, type_, [value])[1]) for index, value in enumerate(values)
    ]
    for one, other in itertools.pairwise([*files, files[0]]):
        assert read(connection, group_of([column], [one], [other]), Work.ROWS_AGAIN).ending is ReadEnding.DIFFERENT
        assert read(connection, group_of([column], [one], [one]), Work.ROWS_AGAIN).ending is ReadEnding.SAME


def numbers_of(connection: duckdb.DuckDBPyConnection, column: Field, file: ProofFile) -> list[int]:
    """Return the number of each value of a column of a file, after those of whole rows were found to differ, too."""
    (portion,) = portions_of(connection, group_of([column], [file], []), [file], no_vectors)
    numbers = connection.execute(f"SELECT {portion.hashes[0]}, {portion.row_hash} FROM {portion.rows}").fetchall()
    assert len({row for _, row in numbers}) == len({value for value, _ in numbers})
    return [value for value, _ in numbers]


def up_to(size: int, *options: Any) -> list[list[Any]]:
    """Return all lists of up to so many of these options."""
    return [list(one) for length in range(size + 1) for one in itertools.product(options, repeat=length)]


LIST = Field("c", "list", children=(Field("element", "int32"),))
PAIR = Field("c", "struct", children=(Field("a", "int32"), Field("b", "double")))
LISTS = Field("c", "list", children=(Field("element", "list", children=(Field("element", "float"),)),))
PAIRS = Field("c", "list", children=(Field("element", "struct", children=PAIR.children),))
MAP = Field("c", "map", children=(Field("key", "string"), Field("value", "int32")))
AB = pa.struct([("a", pa.int32()), ("b", pa.float64())])
NESTED: dict[str, tuple[Field, pa.DataType, Sequence[Any]]] = {
    "list": (LIST, pa.list_(pa.int32()), up_to(3, None, 0, 1)),
    "struct": (PAIR, AB, [{"a": a, "b": b} for a in (None, 0, 1) for b in (None, 0.0, -0.0)]),
    "list of lists": (
        LISTS,
        pa.list_(pa.list_(pa.float32())),
        up_to(2, None, [], [None], [0.0], [-0.0], [0.0, 0.0]),
    ),
    "list of structs": (
        PAIRS,
        pa.list_(AB),
        up_to(2, None, {"a": None, "b": None}, {"a": 0, "b": None}, {"a": None, "b": 0.0}),
    ),
    "map": (
        MAP,
        pa.map_(pa.string(), pa.int32()),
        [*(list(zip("ab", one, strict=False)) for one in up_to(2, None, 0, 1)), [("b", 0), ("a", 1)]],
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_no_two_of_all_small_nested_values_share_a_number(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str
) -> None:
    column, type_, values = NESTED[name]
    every = [None, *values]
    numbers = numbers_of(connection, column, stored(tmp_path / "all.parquet", pa.table({"c": pa.array(every, type_)})))
    assert len(set(numbers)) == len(every)


def test_pairs_of_equal_rows_do_not_cancel_each_other(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    column, table = one_column("int64", pa.int64(), [1, 1, 2, 2])
    _, other = one_column("int64", pa.int64(), [3, 3, 4, 4])
    files = [stored(tmp_path / f"{name}.parquet", one) for name, one in (("a", table), ("b", other))]
    sums = [
        row_sum(connection, portions_of(connection, group_of([column], [file], []), [file], None)) for file in files
    ]  # type: ignore[arg-type]
    assert sums[0] != sums[1]
    assert all(one.sum != 0 for one in sums)


def test_values_that_change_rows_are_noticed_although_their_sums_without_the_outer_hash_are_equal(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """DuckDB joins columns by exclusive or; where two values of each differ in other bits, a swap leaves their sum."""

    def alike(joined: str) -> list[tuple[int, int]]:
        """Return pairs of numbers that leave most bits of the joined hash as they are."""
        values = f"(SELECT n, {joined} AS h FROM range(2000) one(n))"
        bits = "bit_count(xor(one.h, other.h))"
        query = (
            f"SELECT one.n, other.n FROM {values} one JOIN {values} other ON one.n < other.n ORDER BY {bits} LIMIT 40"
        )
        return connection.execute(query).fetchall()

    def sums(a: tuple[int, int], b: tuple[int, int]) -> list[tuple[int, int]]:
        query = "SELECT sum(hash(hash(a), hash(b)))::HUGEINT FROM (VALUES (?, ?), (?, ?)) rows(a, b)"
        pairs = ((a[0], b[0], a[1], b[1]), (a[0], b[1], a[1], b[0]))
        return [connection.execute(query, [*pair]).fetchone()[0] for pair in pairs]  # type: ignore[index]

    firsts, seconds = alike("hash(hash(n), hash(0))"), alike("hash(hash(0), hash(n))")
    a, b = next((a, b) for a in firsts for b in seconds if len(set(sums(a, b))) == 1)
    columns = [Field("a", "int64"), Field("b", "int64")]
    one = stored(tmp_path / "1.parquet", pa.table({"a": list(a), "b": list(b)}))
    other = stored(tmp_path / "2.parquet", pa.table({"a": list(a), "b": list(reversed(b))}))
    found = read(connection, group_of(columns, [one], [other]))
    assert (found.ending, found.columns) == (ReadEnding.DIFFERENT, ())
    assert "2 rows of" in found.text


WHOLE = [Decimal(1), Decimal(-1), None]
DAY = dt.datetime(2020, 1, 1)  # noqa: DTZ001
OLDER: dict[str, tuple[str, pa.Array, pa.Array]] = {
    "integer": ("int32", pa.array([1, -1, None], pa.int8()), pa.array([1, -1, None], pa.int32())),
    "long": ("int64", pa.array([1, -(2**31), None], pa.int32()), pa.array([1, -(2**31), None], pa.int64())),
    "double of float": ("double", pa.array([0.5, -0.0, None], pa.float32()), pa.array([0.5, -0.0, None], pa.float64())),
    "double of integer": ("double", pa.array([5, -7, None], pa.int32()), pa.array([5.0, -7.0, None], pa.float64())),
    "decimal": ("decimal(20,3)", pa.array(WHOLE, pa.decimal128(9, 2)), pa.array(WHOLE, pa.decimal128(20, 3))),
    "decimal of integer": ("decimal(10,2)", pa.array([1, -1, None], pa.int32()), pa.array(WHOLE, pa.decimal128(10, 2))),
    "timestamp": ("timestamp", pa.array([DAY.date(), None]), pa.array([DAY, None], pa.timestamp("us"))),
    "text": ("string", pa.array([b"a\\x00", b"", None]), pa.array(["a\\x00", "", None])),
    "uuid": ("uuid", pa.array([bytes(16), None], pa.binary(16)), pa.array([bytes(16), None], pa.uuid())),
}


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
@pytest.mark.parametrize("name", OLDER)
def test_files_of_an_older_schema_have_the_sums_of_newer_ones(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, work: Work
) -> None:
    kind, *arrays = OLDER[name]
    files = []
    for number, flat in enumerate(arrays):
        storage = flat.storage if isinstance(flat, pa.ExtensionArray) else flat
        nested = pa.ListArray.from_arrays(pa.array(range(len(flat) + 1), pa.int32()), storage)
        files.append(stored(tmp_path / f"{number}.parquet", pa.table({"c": flat, "l": nested})))
    columns = [Field("c", kind), Field("l", "list", children=(Field("element", kind),))]
    found = read(connection, group_of(columns, files[:1], files[1:]), work)
    assert found.ending is ReadEnding.SAME, found


@pytest.mark.parametrize(
    ("kind", "type_", "value"),
    [
        ("int32", pa.int64(), 2**31),
        ("decimal(4,1)", pa.decimal128(4, 2), Decimal("1.25")),
        ("timestamp", pa.timestamp("ns"), 1),
        ("int64", pa.float64(), 1.5),
        ("string", pa.int64(), 1),
    ],
)
def test_what_does_not_fit_the_tables_type_is_no_value_of_it(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str, type_: pa.DataType, value: object
) -> None:
    column, table = one_column(kind, type_, [value])
    files = [stored(tmp_path / f"{name}.parquet", table) for name in "ab"]
    assert read(connection, group_of([column], files[:1], files[1:])).ending is ReadEnding.UNREADABLE


UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
DEFAULTS = {
    "int64": ("34", pa.array([34, 34], pa.int64())),
    "boolean": ("false", pa.array([False, False])),
    "double": ("-0.0", pa.array([-0.0, -0.0])),
    "decimal(9,2)": ('"14.20"', pa.array([Decimal("14.20")] * 2, pa.decimal128(9, 2))),
    "string": ('"it\'s"', pa.array(["it's", "it's"])),
    "binary": ('"00FF"', pa.array([b"\0\xff", b"\0\xff"])),
    "date": ('"2017-11-16"', pa.array([dt.date(2017, 11, 16)] * 2)),
    "timestamptz": ('"2017-11-16T22:31:08.000001+00:00"', pa.array([1510871468000001] * 2, pa.timestamp("us", "UTC"))),
    "uuid": (f'"{str(UUID).upper()}"', pa.array([UUID.bytes] * 2, pa.binary(16))),
}


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
@pytest.mark.parametrize("kind", DEFAULTS)
def test_what_a_file_lacks_is_its_initial_default_but_not_inside_a_struct_that_is_null(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str, work: Work
) -> None:
    text, values = DEFAULTS[kind]
    inside = Field("s", "struct", 3, children=(Field("x", "int64", 4), Field("d", kind, 5, default=text)))
    number, default = _field("x", pa.int64(), 4), _field("d", values.type, 5)
    null = pa.array([False, True])
    numbers = pa.array([1, None], pa.int64())
    before = pa.StructArray.from_arrays([numbers], fields=[number], mask=null)
    after = pa.StructArray.from_arrays([numbers, values], fields=[number, default], mask=null)
    old = pa.table([before], schema=pa.schema([_field("s", before.type, 3)]))
    new = pa.table([values, after], schema=pa.schema([_field("d", values.type, 2), _field("s", after.type, 3)]))
    files = stored(tmp_path / "old.parquet", old), stored(tmp_path / "new.parquet", new)
    columns = [Field("d", kind, 2, default=text), inside]
    found = read(connection, group_of(columns, files[:1], files[1:], FoundBy.ID), work)
    assert found.ending is ReadEnding.SAME, found


def _field(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


def test_structs_and_maps_that_a_file_lacks_are_null_or_hold_their_defaults(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    inner = (Field("x", "int64", 3, default="5"), Field("y", "string", 4))
    columns = [
        Field("s", "struct", 2, default="{}", children=inner),
        Field("n", "struct", 5, children=(Field("z", "double", 6),)),
        Field("m", "map", 7, children=(Field("key", "string", 8), Field("value", "int64", 9))),
        Field("p", "struct", 10, children=(Field("q", "int64", 11), Field("r", "int64", 12))),
    ]
    q, r = _field("q", pa.int64(), 11), _field("r", pa.int64(), 12)
    old = pa.table([pa.array([{"q": 1}], pa.struct([q]))], schema=pa.schema([_field("p", pa.struct([q]), 10)]))
    key = _field("key", pa.string(), 8).with_nullable(False)
    types = [
        ("s", pa.struct([_field("x", pa.int64(), 3), _field("y", pa.string(), 4)]), {"x": 5, "y": None}, 2),
        ("n", pa.struct([_field("z", pa.float64(), 6)]), None, 5),
        ("m", pa.map_(key, _field("value", pa.int64(), 9)), None, 7),
        ("p", pa.struct([q, r]), {"q": 1, "r": None}, 10),
    ]
    schema = pa.schema([_field(name, type_, number) for name, type_, _, number in types])
    new = pa.table([pa.array([value], type_) for _, type_, value, _ in types], schema=schema)
    files = stored(tmp_path / "old.parquet", old), stored(tmp_path / "new.parquet", new)
    for work in (Work.ROWS, Work.ROWS_AGAIN):
        found = read(connection, group_of(columns, files[:1], files[1:], FoundBy.ID), work)
        assert found.ending is ReadEnding.SAME, found


def test_variants_are_compared_by_what_they_hold(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    files = []
    for number, value in enumerate(("{'a': 1}", "{'a': 1}", "{'a': 2}")):
        path = tmp_path / f"{number}.parquet"
        connection.execute(f"COPY (SELECT {value}::VARIANT AS c) TO '{path}' (FORMAT parquet)")
        files.append(ProofFile(str(path), 0))
    column = Field("c", "variant")
    assert read(connection, group_of([column], files[:1], files[1:2])).ending is ReadEnding.SAME
    assert read(connection, group_of([column], files[:1], files[2:])).ending is ReadEnding.DIFFERENT
    assert read(connection, group_of([column], files[:1], files[1:2]), Work.ROWS_AGAIN).ending is ReadEnding.UNREADABLE


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
def test_lists_that_are_nested_too_deeply_are_unreadable(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, work: Work
) -> None:
    column, type_, value = Field("element", "float"), pa.float32(), 1.0
    for _ in range(MOST_NESTED_LISTS + 2):
        column, type_, value = Field("element", "list", children=(column,)), pa.list_(type_), [value]
    file = stored(tmp_path / "a.parquet", pa.table({"element": pa.array([value], type_)}))
    assert read(connection, group_of([column], [file], [file]), work).ending is ReadEnding.UNREADABLE


def test_lists_within_lists_are_left_alone_from_the_depth_at_which_planning_takes_seconds() -> None:
    column = Field("element", "float")
    for _ in range(MOST_NESTED_LISTS + 2):
        column = Field("element", "list", children=(column,))
    assert column_hash(absent(column)).startswith("hash(NULL")


def not_noticed() -> list[tuple[str, str, Any, Any]]:
    quiet, other = (
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000000, 0x7FF8000000000001)
    )
    return [("payload of NaN", "double", pa.array([quiet]), pa.array([other]))]


@pytest.mark.parametrize(("name", "kind", "one", "other"), not_noticed())
def test_what_the_first_reader_does_not_notice_the_second_does(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, kind: str, one: Any, other: Any
) -> None:
    """Both are values that no query tells apart; the second reader is not asked unless the first cannot read."""
    files = [stored(tmp_path / f"{index}.parquet", pa.table({"c": array})) for index, array in enumerate((one, other))]
    group = group_of([Field("c", kind)], files[:1], files[1:])
    assert read(connection, group).ending is ReadEnding.SAME, name
    assert read(connection, group, Work.ROWS_AGAIN).ending is ReadEnding.DIFFERENT, name


def test_a_type_that_no_reader_holds_is_not_guessed() -> None:
    with pytest.raises(CannotRead, match="geometry"):
        column_hash(absent(Field("c", "geometry", default='"x"')))
