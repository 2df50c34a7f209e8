"""Tables of every type with values at their edges, and of every kind and alphabet of partition values."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from tests.interop.feature_cases import FEATURE_CASES
from tests.interop.table_case import Case, Column, cycle

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(text: str) -> int:
    """Return an instant of the proleptic Gregorian calendar in microseconds since 1970, UTC."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def days(text: str) -> int:
    """Return a day of the proleptic Gregorian calendar in days since 1970."""
    return micros(text) // 86_400_000_000


TIMESTAMPS = tuple(
    micros(text)
    for text in (
        "0001-01-01T00:00:00",
        "1582-10-04T23:59:59.999999",
        "1582-10-15T00:00:00",
        "1677-09-21T00:12:43.145224",  # The first that fits into nanoseconds, and the last that does not.
        "1677-09-21T00:12:43.145225",
        "1969-12-31T23:59:59.999999",
        "2024-02-29T12:34:56.789012",
        "2262-04-11T23:47:16.854775",  # The last that fits into nanoseconds, and the first that does not.
        "2262-04-11T23:47:16.854776",
        "9999-12-31T23:59:59.999999",
    )
)
DATES = tuple(
    days(text) for text in ("0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "9999-12-31")
)
FLOATS = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324, 1.7976931348623157e308)
FLOATS_32 = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 1e-45, 3.4028234663852886e38)
STRINGS = ("", "plain", "a b", "Zürich", "日本", "😀", "it's", 'say "hi"', "line\nbreak", "x" * 100)

_INNER = pa.struct([("text", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
_NESTED = pa.struct([("a", pa.int32()), ("inner", _INNER)])
_MAP = pa.map_(pa.string(), pa.struct([("n", pa.int64())]))


def _with_null(values: tuple[object, ...]) -> tuple[object, ...]:
    return (*values, None)


def _edge(name: str, arrow: pa.DataType, sql: str, values: tuple[object, ...]) -> Column:
    return Column(name, arrow, sql, cycle(*_with_null(values)))


def _integers(bits: int) -> tuple[int, ...]:
    return (-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1)


_EVERY_TYPE = (
    _edge("b", pa.bool_(), "BOOLEAN", (True, False)),
    _edge("i8", pa.int8(), "TINYINT", _integers(8)),
    _edge("i16", pa.int16(), "SMALLINT", _integers(16)),
    _edge("i32", pa.int32(), "INT", _integers(32)),
    _edge("i64", pa.int64(), "BIGINT", _integers(64)),
    _edge("f32", pa.float32(), "FLOAT", FLOATS_32),
    _edge("f64", pa.float64(), "DOUBLE", FLOATS),
    _edge("dec9", pa.decimal128(9, 2), "DECIMAL(9,2)", tuple(map(Decimal, ("-9999999.99", "0.00", "9999999.99")))),
    _edge("s", pa.string(), "STRING", STRINGS),
    _edge("d", pa.date32(), "DATE", DATES),
    _edge("ts", pa.timestamp("us", tz="UTC"), "TIMESTAMP", TIMESTAMPS),
    _edge(
        "nested",
        _NESTED,
        "STRUCT<a: INT, inner: STRUCT<text: STRING, at: TIMESTAMP>>",
        (
            {"a": 1, "inner": {"text": "Zürich", "at": TIMESTAMPS[0]}},
            {"a": None, "inner": {"text": "", "at": TIMESTAMPS[-1]}},
            {"a": 2, "inner": None},
        ),
    ),
    _edge("ints", pa.list_(pa.int32()), "ARRAY<INT>", ([], [1, None, 3], [2**31 - 1])),
    _edge("stamps", pa.list_(pa.timestamp("us", tz="UTC")), "ARRAY<TIMESTAMP>", ([TIMESTAMPS[0], None], [])),
    _edge("m", _MAP, "MAP<STRING, STRUCT<n: BIGINT>>", ([], [("k", {"n": 1}), ("日本", {"n": None})])),
)

ALPHABETS = (
    "a b",
    "Zürich",
    "日本",
    "100%",
    "x/y",
    "a:b",
    "a=b",
    "a+b",
    "it's",
    'say "hi"',
    "a%20b",
    "a\\b",
    "😀",
    "#1?x&y",
    "{brace}",
    "tab\there",
    "line\nbreak",
    "..",
    "plain",
    None,
)


def _partitioned(
    name: str,
    arrow: pa.DataType,
    sql: str,
    values: tuple[object, ...],
    *,
    column: str = "p",
    may_be_refused: bool = False,
) -> Case:
    return Case(
        f"partitions of {name}",
        (Column(column, arrow, sql, cycle(*values)), Column("v", pa.float64(), "DOUBLE", cycle(1.5, None))),
        partition_by=(column,),
        batches=2,
        batch_rows=len(values),
        may_be_refused=may_be_refused,
    )


_INSTANTS = tuple(
    micros(text)
    for text in ("2024-01-01T00:00:00.5", "2024-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2262-04-11T23:47:17")
)

PARTITION_CASES = (
    _partitioned("few alphabets", pa.string(), "STRING", ("a b", "Zürich", "x/y", "100%", "plain", None)),
    _partitioned("strings", pa.string(), "STRING", ALPHABETS),
    _partitioned("the empty string", pa.string(), "STRING", ("", "x")),
    _partitioned("timestamps", pa.timestamp("us", tz="UTC"), "TIMESTAMP", (*_INSTANTS, None)),
    _partitioned("dates", pa.date32(), "DATE", (days("2024-02-29"), days("1582-10-15"), days("9999-12-31"), None)),
    _partitioned(
        "decimals", pa.decimal128(38, 2), "DECIMAL(38,2)", (Decimal("1.10"), Decimal("-0.01"), Decimal("9" * 36), None)
    ),
    _partitioned("booleans", pa.bool_(), "BOOLEAN", (True, False, None)),
    _partitioned("doubles", pa.float64(), "DOUBLE", (1.5, -0.5, 1e300, 1e-7, None)),
    _partitioned("floats", pa.float32(), "FLOAT", (1.5, -0.5, None)),
    _partitioned("longs", pa.int64(), "BIGINT", (2**63 - 1, -(2**63), 0, None)),
    _partitioned("bytes and shorts", pa.int8(), "TINYINT", (127, -128, None)),
    _partitioned("strings by a column größe", pa.string(), "STRING", ("a b", "ü", "z"), column="größe"),
    _partitioned("strings by a column 100%", pa.string(), "STRING", ("a b", "ü", "z"), column="100%"),
    # To Hadoop a path that begins with this name has a scheme: of deltalake's table Spark, and so we, can read nothing.
    _partitioned(
        "strings by a column a:b+c", pa.string(), "STRING", ("a b", "ü", "z"), column="a:b+c", may_be_refused=True
    ),
    Case(
        "two partition columns",
        (
            Column("city", pa.string(), "STRING", cycle("Zürich", "a b")),
            Column("day", pa.date32(), "DATE", cycle(days("2024-01-01"), days("2024-01-01"), days("2024-01-02"), None)),
        ),
        partition_by=("city", "day"),
    ),
)

_BINARY = (_edge("bin", pa.binary(), "BINARY", (b"", b"\x00", b"\xff\xfe", bytes(range(256)))),)
_DECIMALS = (
    _edge("dec18", pa.decimal128(18, 9), "DECIMAL(18,9)", tuple(map(Decimal, ("-999999999.999999999", "0.000000001")))),
    _edge("dec38", pa.decimal128(38, 0), "DECIMAL(38,0)", (Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(1))),
)

_PLAIN = (Column("n", pa.int32(), "INT", cycle(1, 2, 3, None)),)

# Binary and wide decimals are apart, because each makes some engine fail on the whole table.
TYPE_CASES = (
    Case("every type", _EVERY_TYPE, batches=2, batch_rows=12, creators=("spark", "spark, INT96", "deltalake")),
    Case("binary", _BINARY, batches=2, batch_rows=5),
    Case("wide decimals", _DECIMALS, batches=2, batch_rows=4),
    Case("plain, ZSTD", _PLAIN, creators=("spark, ZSTD", "deltalake, ZSTD")),
    Case("plain", _PLAIN),
    Case("a place with blanks", _PLAIN, folder="a b ü"),
    Case("a place with an escape in its name", _PLAIN, folder="a%20b"),
)

CASES = {case.name: case for case in (*TYPE_CASES, *PARTITION_CASES, *FEATURE_CASES)}
