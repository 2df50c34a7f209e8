"""Rows that a removal by key leaves are those that the reader's own search leaves, over all files of the partition."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from actor.proofread.model import OLDER, Field, NewestRows, ProofFile, Rewritten
from actor.proofread.task import ReadEnding, Work
from tests.support.proofread_groups import group_of, read, stored
from tests.unit.actor.proofread.test_deleted_rows import FILE_PATH, POSITION, position_deletes

Row = tuple[str | None, int | None, bool | None, int]
"""Key, sequence, mark of a deletion, and a number that no other row has."""

COLUMNS = (Field("k", "string"), Field("s", "int64"), Field("m", "boolean"), Field("n", "int64"))
TYPES = {"k": pa.string(), "s": pa.int64(), "m": pa.bool_(), "n": pa.int64()}
NEWEST = NewestRows(("k",), ("s",), "m")


def file(path: Path, rows: Sequence[Row], **types: pa.DataType) -> ProofFile:
    columns = zip(*rows, strict=True) if rows else ((),) * 4
    arrays = {name: pa.array(values, types.get(name, TYPES[name])) for name, values in zip(TYPES, columns, strict=True)}
    return stored(path, pa.table(arrays))


def staying(files: dict[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """What the rule says, row by row: the oracle."""
    newest: dict[str, tuple[int, bool, str, int]] = {}
    for name, rows in files.items():
        for place, (key, sequence, mark, _) in enumerate(rows):
            if key is not None and sequence is not None:
                rank = (sequence, bool(mark), name, -place)
                newest[key] = max(newest.get(key, rank), rank)
    return {
        name: [
            row
            for place, row in enumerate(rows)
            if None in row[:2] or (newest[str(row[0])] == (row[1], bool(row[2]), name, -place) and not row[2])
        ]
        for name, rows in files.items()
    }


def removed(tmp_path: Path, files: dict[str, Sequence[Row]], kept: dict[str, list[Row]]) -> Rewritten:
    """The removal that rewrites the files that lose rows, by this answer."""
    given = {name: file(tmp_path / name, rows) for name, rows in files.items()}
    replaced = [name for name in files if len(kept[name]) < len(files[name])]
    out = file(tmp_path / "out", [row for name in replaced for row in kept[name]])
    beside = tuple(given[name] for name in files if name not in replaced)
    inputs = [replace(given[name], deletes=(OLDER,)) for name in replaced]
    return replace(group_of(COLUMNS, inputs, [out]), newest=replace(NEWEST, beside=beside))


@pytest.mark.parametrize("seed", range(8))
def test_what_stays_is_what_the_rule_says_and_one_row_more_less_or_other_is_noticed(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, seed: int
) -> None:
    dice, numbers = random.Random(seed), iter(range(10_000))
    files: dict[str, Sequence[Row]] = {
        name: [
            (dice.choice("aaabcdé") if dice.random() < 0.9 else None, dice.choice([1, 2, 3, None]),
             dice.choice([None, False, False, True]), next(numbers))
            for _ in range(dice.randrange(1, 12))
        ]
        for name in ("a b", "a!b", "z", "b")
    }  # fmt: skip
    kept = staying(files)
    group = removed(tmp_path, files, kept)
    for work in (Work.ROWS, Work.ROWS_AGAIN):
        assert read(connection, group, work).ending is ReadEnding.SAME
    lost = next(name for name in files if len(kept[name]) < len(files[name]))
    gone = next(row for row in files[lost] if row not in kept[lost])
    right = [row for name in files if len(kept[name]) < len(files[name]) for row in kept[name]]
    for wrong in ([*right, gone], right[1:] if right else [gone], [*right[1:], gone]):
        out = file(tmp_path / "wrong", wrong)
        for work in (Work.ROWS, Work.ROWS_AGAIN):
            assert read(connection, replace(group, outputs=(out,)), work).ending is ReadEnding.DIFFERENT


def test_an_older_row_in_a_file_that_was_not_replaced_is_noticed(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    replaced = file(tmp_path / "a", [("x", 1, None, 1), ("y", 1, None, 2)])
    out = file(tmp_path / "out", [("y", 1, None, 2)])
    for newer, is_left in ([("x", 2, None, 3)], False), ([("x", 2, None, 3), ("x", 1, None, 4)], True):
        newest = replace(NEWEST, beside=(file(tmp_path / "b", newer),))
        group = replace(group_of(COLUMNS, [replace(replaced, deletes=(OLDER,))], [out]), newest=newest)
        for work in (Work.ROWS, Work.ROWS_AGAIN):
            found = read(connection, group, work)
            assert found.ending is (ReadEnding.DIFFERENT if is_left else ReadEnding.SAME)
            assert ("1 older rows are left" in found.text) is is_left


def test_deleted_rows_supersede_nothing_wherever_they_are(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    older, newer = (
        file(tmp_path / "a", [("x", 1, None, 1), ("x", 0, None, 0)]),
        file(tmp_path / "b", [("x", 2, None, 2)]),
    )
    gone = position_deletes(tmp_path / "pos", newer.path, [0], (FILE_PATH, POSITION))
    out = file(tmp_path / "out", [("x", 1, None, 1)])
    newest = replace(NEWEST, beside=(replace(newer, deletes=(gone,)),))
    group = replace(group_of(COLUMNS, [replace(older, deletes=(OLDER,))], [out]), newest=newest)
    assert read(connection, group).ending is ReadEnding.SAME
    alive = replace(group, newest=replace(NEWEST, beside=(newer,)))
    assert read(connection, alive).ending is ReadEnding.DIFFERENT
    assert read(connection, replace(alive, outputs=())).ending is ReadEnding.SAME


def test_keys_of_text_are_equal_by_their_bytes_however_files_store_them(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """A byte that DuckDB would escape, a narrower sequence, and a file that lacks the key."""
    as_bytes = file(tmp_path / "a", [("é".encode(), 1, None, 1)], k=pa.binary(), s=pa.int32())  # type: ignore[list-item]
    text = file(tmp_path / "b", [("é", 2, None, 2)])
    keyless = stored(tmp_path / "c", pa.table({"s": [9], "n": [3]}))
    newest = replace(NEWEST, beside=(text, keyless))
    group = replace(group_of(COLUMNS, [replace(as_bytes, deletes=(OLDER,))], []), newest=newest)
    assert read(connection, group).ending is ReadEnding.SAME


def test_where_positions_are_hidden_nothing_is_compared(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    hidden = stored(tmp_path / "a", pa.table({"k": ["x"], "s": [1], "filename": ["f"]}))
    columns = (*COLUMNS[:2], Field("filename", "string"))
    one = replace(hidden, deletes=(OLDER,))
    group = replace(group_of(columns, [one], []), newest=NewestRows(("k",), ("s",)))
    assert read(connection, group).ending is ReadEnding.UNREADABLE


def test_deletes_of_a_file_are_its_own_beside_older_rows(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    one = file(tmp_path / "a", [("x", 1, None, 1), ("x", 2, None, 2), ("y", 1, None, 3)])
    gone = position_deletes(tmp_path / "pos", one.path, [1], (FILE_PATH, POSITION))
    out = file(tmp_path / "out", [("x", 1, None, 1), ("y", 1, None, 3)])
    group = replace(group_of(COLUMNS, [replace(one, deletes=(gone, OLDER))], [out]), newest=NEWEST)
    assert read(connection, group).ending is ReadEnding.SAME
