"""Rows that are over are deleted ones for the reader, by the bound that the caller states; null is never over."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from actor.proofread.model import DeleteForm, Deletes, Field, ProofFile
from actor.proofread.task import ReadEnding
from tests.support.proofread_groups import group_of, read, stored
from tests.unit.actor.proofread.test_deleted_rows import FILE_PATH, POSITION, position_deletes

KINDS: dict[str, tuple[pa.DataType, str, list[Any]]] = {
    "date": (pa.date32(), "2026-03-09", [date(2026, 3, 8), date(2026, 3, 9), None]),
    "timestamp": (
        pa.timestamp("us"),
        "2026-03-09 23:59:59",
        [datetime(2026, 3, 9, 23, 59, 58, 999_999), datetime(2026, 3, 9, 23, 59, 59), None],  # noqa: DTZ001 - no zone
    ),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        "2026-03-10 11:59:59Z",
        [datetime(2026, 3, 10, 11, 59, 58, 999_999, UTC), datetime(2026, 3, 10, 11, 59, 59, tzinfo=UTC), None],
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def file(path: Path, kind: str, rows: Sequence[int]) -> ProofFile:
    """A file of these rows of the kind's: the first is over."""
    type_, _, values = KINDS[kind]
    times = pa.array([values[row] for row in rows], type_)
    return stored(path, pa.table({"n": pa.array(rows, pa.int64()), "t": times}))


def over(kind: str) -> Deletes:
    return Deletes(DeleteForm.OVER, text=json.dumps(["t", KINDS[kind][1]]))


def ending(
    connection: duckdb.DuckDBPyConnection, kind: str, inputs: Sequence[ProofFile], outputs: Sequence[ProofFile]
) -> ReadEnding:
    deleted = [replace(one, deletes=(*one.deletes, over(kind))) for one in inputs]
    return read(connection, group_of((Field("n", "int64"), Field("t", kind)), deleted, outputs)).ending


def test_what_stays_is_what_is_not_over(connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str) -> None:
    given = [file(tmp_path / "a", kind, [0, 1, 2, 0]), file(tmp_path / "b", kind, [0])]
    assert ending(connection, kind, given, [file(tmp_path / "right", kind, [1, 2])]) is ReadEnding.SAME
    for name, rows in (("lost", [1]), ("left", [0, 1, 2]), ("twice", [1, 1, 2])):
        assert ending(connection, kind, given, [file(tmp_path / name, kind, rows)]) is ReadEnding.DIFFERENT, name


def test_whole_files_go_only_if_all_their_rows_are_over(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    old = file(tmp_path / "old", kind, [0, 0])
    assert ending(connection, kind, [old], []) is ReadEnding.SAME
    for row in (1, 2):
        younger = file(tmp_path / f"with {row}", kind, [0, row])
        assert ending(connection, kind, [old, younger], []) is ReadEnding.DIFFERENT


def test_rows_that_are_hidden_already_are_not_among_those_that_stay(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    one = file(tmp_path / "a", kind, [0, 1, 2])
    gone = position_deletes(tmp_path / "pos", one.path, [1], (FILE_PATH, POSITION))
    hidden = replace(one, deletes=(gone,))
    assert ending(connection, kind, [hidden], [file(tmp_path / "out", kind, [2])]) is ReadEnding.SAME


def test_a_file_without_the_column_has_no_row_that_is_over(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    older = stored(tmp_path / "a", pa.table({"n": pa.array([2, 2], pa.int64())}))
    assert ending(connection, kind, [older], [file(tmp_path / "out", kind, [2, 2])]) is ReadEnding.SAME
    assert ending(connection, kind, [older], []) is ReadEnding.DIFFERENT


@pytest.mark.parametrize("row", [0, 1])
def test_rows_of_before_the_column_are_as_old_as_its_initial_default(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str, row: int
) -> None:
    older = stored(tmp_path / "a", pa.table({"n": pa.array([1, 1], pa.int64())}))
    columns = (Field("n", "int64"), Field("t", kind, default=json.dumps(KINDS[kind][2][row].isoformat())))
    group = group_of(columns, [replace(older, deletes=(over(kind),))], [file(tmp_path / "out", kind, [1, 1])][:row])
    assert read(connection, group).ending is ReadEnding.SAME
