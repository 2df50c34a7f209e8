"""Each delete file of Parquet deletes the rows that it names, in the data files that it applies to, and in no other."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from actor.proofread.model import DeleteForm, Deletes, Field, FoundBy, ProofFile
from actor.proofread.parquet_deletes import insert_parquet_deletes
from actor.proofread.sql import DEAD
from tests.support.proofread_groups import group_of, stored

IDS = {"k": 1, "t": 2, "file_path": 2147483546, "pos": 2147483545}
KINDS = {"k": pa.int64(), "t": pa.string(), "file_path": pa.string(), "pos": pa.int64()}
COLUMNS = (Field("k", "int64", 1), Field("t", "string", 2))
ROWS = 12

Row = Mapping[str, Any]


def write(path: Path, names: Sequence[str], rows: Sequence[Row]) -> ProofFile:
    fields = [pa.field(name, KINDS[name], metadata={"PARQUET:field_id": str(IDS[name])}) for name in names]
    return stored(path, pa.Table.from_pylist(list(rows), pa.schema(fields)))


def draw_rows(draw: random.Random, names: Sequence[str], count: int) -> list[dict[str, Any]]:
    values = {"k": [None, 1, 2, 3], "t": [None, "", "a"]}
    return [{name: draw.choice(values[name]) for name in names} for _ in range(count)]


@pytest.mark.parametrize("seed", range(30))
def test_random_delete_files_apply_to_the_files_that_name_them(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, seed: int
) -> None:
    """Not all that are newer than a file apply to it: bounds of columns leave some of them out."""
    draw = random.Random(seed)
    data = [draw_rows(draw, ["k", "t"], ROWS) for _ in range(5)]
    files = [
        write(tmp_path / f"{number}.parquet", draw.choice([("k", "t"), ("t", "k")]), data[number])
        for number in range(5)
    ]
    dead, applied = set[tuple[str, int]](), [list[Deletes]() for _ in files]
    for number in range(draw.randrange(1, 14)):
        path = tmp_path / f"deletes-{number}.parquet"
        chosen = [place for place in range(5) if draw.random() < 0.7]
        if draw.random() < 0.4:
            places = [(draw.choice(files).path, draw.randrange(ROWS)) for _ in range(4)]
            write(path, ["pos", "file_path"], [{"file_path": f"file:{one}", "pos": at} for one, at in places])
            deletes = Deletes(DeleteForm.POSITIONS, str(path), rows=4)
            dead |= {(files[place].path, at) for place in chosen for one, at in places if one == files[place].path}
        else:
            names = draw.choice([("k",), ("t",), ("k", "t"), ("t", "k")])
            keys = draw_rows(draw, names, draw.randrange(1, 3))
            write(path, names, keys)
            deletes = Deletes(DeleteForm.EQUALITY, str(path), key_ids=tuple(IDS[name] for name in names))
            dead |= {
                (files[place].path, at)
                for place in chosen
                for at, row in enumerate(data[place])
                if {name: row[name] for name in names} in keys
            }
        for place in chosen:
            applied[place].append(deletes if draw.random() < 0.5 else replace(deletes))
    named = [replace(file, deletes=tuple(own)) for file, own in zip(files, applied, strict=True)]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {DEAD} (place VARCHAR, row BIGINT)")
    insert_parquet_deletes(connection, group_of(COLUMNS, named, [], FoundBy.ID), named)
    assert {*connection.execute(f"SELECT DISTINCT place, row FROM {DEAD}").fetchall()} == dead
