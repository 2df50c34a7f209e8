"""Tasks without Spark's SQL place the rows of an index as Spark does: same counts, weights, ranges and files."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.job_table import JobTable
from actor.formats.delta.log import TableLog
from actor.formats.qbeast import task_rows
from actor.formats.qbeast.delta_index import DeltaIndex
from actor.formats.qbeast.index_rows import IndexRows, Places
from actor.formats.qbeast.task_rows import TaskRows, find_task_rows
from actor.ports import TableJob
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block
from shared.formats.qbeast.placement import rows_of_cubes
from shared.formats.qbeast.transformations import Coordinate
from shared.jobs.payload import INDEX
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.index_tables import FileBlocks, IndexTable
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark
nightly = pytest.mark.long("care")

Make = Callable[[random.Random], Any]
ZONE = "Europe/Berlin"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def among(*odd: Any, other: Make) -> Make:
    """Make one of the odd values, or null, half of the time."""
    return lambda rng: rng.choice([None, *odd]) if rng.random() < 0.5 else other(rng)


LINES: dict[str, tuple[pa.DataType, str, tuple[float, float], Make]] = {
    "tiny": (pa.int8(), "IntegerDataType", (-128, 127), among(-128, 0, 127, other=lambda r: r.randint(-128, 127))),
    "small": (pa.int16(), "IntegerDataType", (-9, 9), among(0, other=lambda r: r.randint(-9, 9))),
    "int": (pa.int32(), "IntegerDataType", (-(2**31), 2**31 - 1), among(-(2**31), other=lambda r: r.randint(-9, 9))),
    "long": (pa.int64(), "LongDataType", (-1e6, 1e6), among(0, -1, other=lambda r: r.randint(-(10**6), 10**6))),
    "real": (pa.float32(), "FloatDataType", (-7.5, 8), among(-0.0, 0.0, other=lambda r: r.uniform(-7, 8))),
    "double": (pa.float64(), "DoubleDataType", (-1, 1), among(-0.0, 1e-300, other=lambda r: r.uniform(-1, 1))),
    "price": (
        pa.decimal128(12, 3),
        "DecimalDataType",
        (-1000, 1000),
        among(Decimal("-0.001"), other=lambda r: Decimal(r.randint(-(10**6), 10**6)).scaleb(-3)),
    ),
    "large": (
        pa.decimal128(30, 5),
        "DecimalDataType",
        (-1e20, 1e20),
        among(Decimal("-99999999999999999999.99999"), other=lambda r: Decimal(r.randint(-(10**25), 10**25)).scaleb(-5)),
    ),
    "day": (
        pa.date32(),
        "DateDataType",
        (-(10**13), 10**13),
        among(date(1900, 1, 1), other=lambda r: date(1900, 1, 1) + timedelta(r.randint(0, 90000))),
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        "TimestampDataType",
        (-(10**13), 10**13),
        among(
            EPOCH - timedelta(microseconds=1),
            other=lambda r: EPOCH + timedelta(microseconds=r.randint(-(10**15), 10**15)),
        ),
    ),
}
"""Columns on lines: type, the library's name of it, the ends of the line, and values."""

TEXTS = among("", "z", "\U0001f40b", "é" * 20, other=lambda r: "".join(r.choices("abßw", k=r.randint(0, 9))))
OUTSIDE: dict[str, Any] = {
    "real": float("nan"),
    "double": float("-inf"),
    "day": date(1899, 12, 31),
    "instant": datetime(1899, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
}
"""Values without a place on a line."""


def line(name: str) -> Coordinate:
    _, kind, (low, high), _ = LINES[name]
    zone = ZONE if name == "day" else ""
    return Coordinate("linear", name, kind, float(low), 1 / (float(high) - float(low)), float(high) / 2, zone=zone)


HASHED = ("text", "flag", "long", "real", "double", "price", "large", "tiny")
LEVELS = 3
BINS = Coordinate("histogram", "text", values=("", "a", "b", "w", "ß", "é"))
COORDINATES = {
    "lines": tuple(map(line, LINES)),
    "hashes": tuple(Coordinate("hashing", name, null="-7") for name in HASHED),
    "bins": (BINS, line("long"), Coordinate("constant", "price"), Coordinate("constant", "flag")),
}


def write(path: Path, seed: int, files: int = 3, **odd: Any) -> None:
    """Write random rows; odd: one value more of some columns, in a file of its own."""
    rng = random.Random(seed)
    schema = pa.schema(
        [(name, kind) for name, (kind, *_) in LINES.items()] + [("text", pa.string()), ("flag", pa.bool_())]
    )
    for number in range(files):
        makers = {name: made[-1] for name, made in LINES.items()} | {"text": TEXTS}
        rows = [{name: make(rng) for name, make in makers.items()} for _ in range(150)]
        for row in rows:
            row["flag"] = rng.choice([True, False, None])
        if number == files - 1:
            rows += [dict.fromkeys(schema.names) | {name: value} for name, value in odd.items()]
        write_deltalake(path, pa.Table.from_pylist(rows, schema), mode="append")


@contextmanager
def opened(lab: DeltaLab, path: Path) -> Iterator[DeltaIndex]:
    engine, job = lab.engine, TableJob(INDEX, str(path), Policy(index=True), CommitOrigin("law", 1))
    with engine._sessions.lease(tag="law") as owned, engine._sessions.bound(owned) as session:
        log = TableLog(engine._scala, session, str(path))
        parts = engine._scala, log, engine.proofreader, engine._settings.boundary, job, Control(), 0
        index = DeltaIndex(JobTable(*parts, DeltaCaches()))
        index.snapshot()
        yield index


def both(index: DeltaIndex, coordinates: Sequence[Coordinate]) -> tuple[IndexRows, IndexRows, Sequence[LoggedFile]]:
    """Return the rows of all files as tasks read them, and as Spark does."""
    inputs = index.table.live
    tasks = index.table.tasks()
    stored = tasks.format.storage(inputs)
    found = find_task_rows(index.table.scala, tasks, coordinates, index.table.group(inputs), stored)
    assert found is not None
    return found, index._by_spark(inputs, coordinates), inputs


def places(rows: IndexRows, names: Sequence[str], rng: random.Random) -> list[Places]:
    """Return rows deep in the space, and an index with blocks that knows some of their cubes."""
    deep = Places({"": LEVELS}, levels=True)
    known = rng.sample(sorted(rows_of_cubes(rows.counted(deep))), 20)
    width = len(known[0]) // LEVELS
    above = {cube[: level * width] for cube in known for level in range(LEVELS)}
    weights = {cube: rng.randint(MIN_WEIGHT, MAX_WEIGHT) for cube in sorted(above.union(known))}
    blocks = {name: [Block(cube, 0, weight, 1) for cube, weight in weights.items()] for name in names}
    return [deep, Places({"": 1} | dict.fromkeys(known, 2), levels=True), Places(weights), Places(weights, blocks)]


@pytest.mark.parametrize("kind", COORDINATES)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=nightly)])
def test_rows_are_counted_and_weighed_alike(lab: DeltaLab, kind: str, seed: int) -> None:
    path = lab.directory / kind
    write(path, seed)
    lab.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    lab.sql(f"DELETE FROM delta.`{path}` WHERE small = 3")
    with opened(lab, path) as index:
        by_tasks, by_spark, inputs = both(index, COORDINATES[kind])
        assert any(one.file.dv_id for one in inputs)
        assert by_tasks.total() == by_spark.total() < 450
        for where in places(by_spark, [one.file.path for one in inputs], random.Random(seed)):
            found = by_tasks.counted(where)
            assert found == by_spark.counted(where)
            assert len(found) > len(inputs)


@pytest.mark.parametrize("odd", [None, *OUTSIDE])
def test_ranges_are_alike_and_values_without_a_place_are_found(lab: DeltaLab, odd: str | None) -> None:
    write(lab.directory / "t", 3, **({odd: OUTSIDE[odd]} if odd else {}))
    with opened(lab, lab.directory / "t") as index:
        by_tasks, by_spark, _ = both(index, COORDINATES["lines"])
        found, wanted = ([sorted(rows.ranges().items())] for rows in (by_tasks, by_spark))
        assert found == wanted
        outside = [name for _, ranges in found[0] for name, one in zip(LINES, ranges, strict=True) if one["outside"]]
        assert outside == [odd] * (odd is not None)


def rewritten(lab: DeltaLab, name: str, at: str, zone: str) -> tuple[FileBlocks, list[str]]:
    """Append plainly to a golden table, delete some rows, and optimize; returns its files' blocks and its rows."""
    table = IndexTable(DeltaLab(lab.spark, lab.engine, lab.directory / at), name)
    lab.sql(f"INSERT INTO {table.name} SELECT /*+ COALESCE(1) */ * FROM {table.name} WHERE id < 700")
    lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    lab.sql(f"DELETE FROM {table.name} WHERE id % 10 = 3")
    rows = table.rows()
    assert table.run(budget_bytes=0, zone=zone).commits
    assert table.rows() == rows
    return table.blocks(), rows


@pytest.mark.parametrize(
    "name", ["hashes", *(pytest.param(one, marks=nightly) for one in ("two", "histogram", "seven"))]
)
def test_files_have_the_same_blocks_by_both_ways(lab: DeltaLab, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows, written = TaskRows.write, list[int]()

    def counted(*given: Any) -> list[LoggedFile]:
        found = write_rows(*given)
        written.append(len(found))
        return found

    monkeypatch.setattr(TaskRows, "write", counted)
    zone = "UTC" if name == "seven" else ""
    by_tasks = rewritten(lab, name, "tasks", zone)
    count = len(written)
    assert count
    monkeypatch.setattr(task_rows, "MOST_BYTES", -1)
    assert rewritten(lab, name, "spark", zone) == by_tasks
    assert len(written) == count
