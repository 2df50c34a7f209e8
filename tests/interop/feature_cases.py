"""Tables with each feature of Delta that a rewrite must keep, and with pairs of them; most only Spark can make."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from tests.interop.engines.protocol import Predicate
from tests.interop.operations import Model
from tests.interop.table_case import KEY, Batch, Case, Column, Statement, cycle
from tests.interop.values import plain

_INSTANT = 1_704_067_200_500_000
"""2024-01-01 00:00:00.5 UTC, in microseconds."""

_BASE = (
    Column("amount", pa.decimal128(12, 2), "DECIMAL(12,2)", cycle(Decimal("1.10"), Decimal("-2.00"), None)),
    Column("at", pa.timestamp("us", tz="UTC"), "TIMESTAMP", cycle(_INSTANT, 253402300799999999, None)),
)
_CITY = Column("city", pa.string(), "STRING", cycle("a b", "Zürich"))
DV = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
TRACKED = {"delta.enableRowTracking": "true"}
_DELETE = Statement("DELETE FROM {table} WHERE id IN (1, 6)", deletes=(1, 6))


def _case(name: str, *columns: Column, city: bool = False, **more: Any) -> Case:
    own = (*_BASE, *columns, *((_CITY,) if city else ()))
    return Case(name, own, partition_by=("city",) if city else (), **{"creators": ("spark",)} | more)


def _steps(*after: Statement, before: tuple[Statement, ...] = ()) -> tuple[Batch | Statement, ...]:
    return (*before, Batch(0), Batch(1), Batch(2), *after)


_GENERATED = Column("twice", pa.int64(), "BIGINT", lambda key: 2 * key, "GENERATED ALWAYS AS (id * 2)", written=False)
_IDENTITY = Column(
    "number", pa.int64(), "BIGINT", lambda key: key, "GENERATED ALWAYS AS IDENTITY (START WITH 0)", written=False
)
_NTZ = Column("local", pa.timestamp("us"), "TIMESTAMP_NTZ", cycle(_INSTANT, -62135596800000000, None))
_SPACED = Column("größe in €", pa.int32(), "INT", cycle(1, None, 3))
_DEFAULT = Column("kind", pa.string(), "STRING", cycle("none"), "DEFAULT 'none'", written=False)
_CHARS = (
    Column("c4", pa.string(), "CHAR(4)", cycle("ab  ", "abcd")),
    Column("v8", pa.string(), "VARCHAR(8)", cycle("Zürich", "", None)),
)
_WIDENED = Column("n", pa.int64(), "BIGINT", cycle(1, 2, None))
_WIDEN = {"delta.enableTypeWidening": "true"}
_CHECKED = Statement("ALTER TABLE {table} ADD CONSTRAINT positive CHECK (id >= 0)")

FEATURE_CASES = (
    _case("deletion vectors", properties=DV, steps=_steps(_DELETE)),
    _case("deletion vectors, partitioned", city=True, properties=DV, steps=_steps(_DELETE)),
    _case("deletion vectors and column mapping, none yet", _SPACED, properties=DV | MAPPED),
    _case("column mapping by name", _SPACED, city=True, properties=MAPPED),
    _case("column mapping by id", _SPACED, city=True, properties=MAPPED | {"delta.columnMapping.mode": "id"}),
    _case("row tracking", city=True, properties=TRACKED),
    _case("generated column", _GENERATED, city=True),
    _case("identity column", _IDENTITY),
    _case("check constraint", city=True, steps=_steps(before=(_CHECKED,))),
    _case("not null", Column("must", pa.int32(), "INT", cycle(1, 2), "NOT NULL"), city=True),
    _case("append only", city=True, properties={"delta.appendOnly": "true"}, creators=("spark", "deltalake")),
    _case("change data feed", city=True, properties={"delta.enableChangeDataFeed": "true"}),
    _case("timestamp without zone", _NTZ, city=True, creators=("spark", "deltalake")),
    _case(
        "type widening",
        _WIDENED,
        city=True,
        properties=_WIDEN,
        columns_at_start={"n": "INT"},
        steps=(Batch(0), Batch(1), Statement("ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT"), Batch(2)),
    ),
    _case(
        "v2 checkpoint",
        city=True,
        properties={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    ),
    _case("checkpoint at every commit", city=True, properties={"delta.checkpointInterval": "1"}),
    _case("in-commit timestamps", city=True, properties={"delta.enableInCommitTimestamps": "true"}),
    _case("column default", _DEFAULT, properties={"delta.feature.allowColumnDefaults": "supported"}),
    _case("char and varchar", *_CHARS, city=True),
    _case(
        "column added late",
        Column("late", pa.string(), "STRING", lambda key: "x" if key in (4, 5) else None, written=False),
        city=True,
        columns_at_start={"late": ""},
        steps=(
            Batch(0),
            Statement("ALTER TABLE {table} ADD COLUMNS (late STRING)"),
            Batch(1),
            Statement("UPDATE {table} SET late = 'x' WHERE id IN (4, 5)"),
        ),
    ),
    _case("shallow clone", city=True, cloned=True, may_be_refused=True),
    _case("few columns with statistics", city=True, properties={"delta.dataSkippingNumIndexedCols": "1"}),
    _case("deletion vectors and column mapping", _SPACED, city=True, properties=DV | MAPPED, steps=_steps(_DELETE)),
    _case("deletion vectors and row tracking", city=True, properties=DV | TRACKED, steps=_steps(_DELETE)),
    _case(
        "row tracking and column mapping by id",
        _SPACED,
        city=True,
        properties=TRACKED | MAPPED | {"delta.columnMapping.mode": "id"},
    ),
    _case(
        "column mapping and change data feed",
        _SPACED,
        city=True,
        properties=MAPPED | {"delta.enableChangeDataFeed": "true"},
    ),
    _case(
        "type widening and deletion vectors",
        _WIDENED,
        properties=_WIDEN | DV,
        columns_at_start={"n": "INT"},
        steps=(Batch(0), Statement("ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT"), Batch(1), Batch(2), _DELETE),
    ),
    _case(
        "v2 checkpoint, deletion vectors, row tracking and in-commit timestamps",
        city=True,
        properties=DV
        | TRACKED
        | {
            "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": "3",
            "delta.enableInCommitTimestamps": "true",
        },
        steps=_steps(_DELETE),
    ),
    _case("timestamp without zone and column mapping", _NTZ, _SPACED, city=True, properties=MAPPED),
)

assert KEY == "id"  # The statements above name it.


_MOST_VALUES = 4


def predicates_of(case: Case) -> tuple[Predicate, ...]:
    """Return some predicates for each column that all engines can compare; floats only for equality, for NaN's sake."""
    return tuple(predicate for column in case.all_columns for predicate in _for_column(case, column))


def _for_column(case: Case, column: Column) -> list[Predicate]:
    kind = column.arrow
    if kinds.is_nested(kind) or kinds.is_binary(kind):
        return []
    rows = [case.python_row(key)[column.name] for number in range(case.batches) for key in case.batch(number)]
    values = list(dict.fromkeys(value for value in rows if value is not None))
    if kinds.is_boolean(kind):
        return [Predicate(column.name, "=", value) for value in values]
    if kinds.is_floating(kind):
        return [Predicate(column.name, "=", value) for value in values if value and abs(value) < 10]
    if not values:
        return []
    values.sort()
    chosen = list(dict.fromkeys([values[0], values[-1], *values[1:-1]]))[:_MOST_VALUES]
    return [
        *(Predicate(column.name, "=", value) for value in chosen),
        Predicate(column.name, ">=", values[-1]),
        Predicate(column.name, ">", values[-1], is_impossible=True),
        Predicate(column.name, "<", values[0], is_impossible=True),
    ]


def expected_keys(case: Case, model: Model, predicate: Predicate) -> tuple[int, ...]:
    """Return the keys of the rows that satisfy a predicate."""
    wanted = plain(case.column(predicate.column).arrow, predicate.value)
    return tuple(sorted(key for key, row in model.items() if _holds(row[predicate.column], predicate.op, wanted)))


def _holds(value: object, op: str, wanted: object) -> bool:
    if value is None:
        return False
    match op:
        case "=":
            return value == wanted
        case ">=":
            return bool(value >= wanted)  # type: ignore[operator]
        case ">":
            return bool(value > wanted)  # type: ignore[operator]
        case _:
            return bool(value < wanted)  # type: ignore[operator]
