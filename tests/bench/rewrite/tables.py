"""Tables to rewrite, made once without Spark and copied by hard links, so that both sides get the very same files."""

import os
import random
import shutil
from array import array
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import ColumnProperties, WriterProperties, write_deltalake

BYTES_PER_ROW = 56
NESTED_BYTES_PER_ROW = BYTES_PER_ROW + 120
DAY = "2026-01-01"
OTHER_DAYS = ("2026-01-02", "2026-01-03")
TEXT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Case:
    """Files of one partition that become `groups` files; `rounds` rewrites of each kind are timed.

    goal: time as a share of OPTIMIZE's. is_nested: with lists of structs of lists, and maps.
    """

    name: str
    files: int
    file_bytes: int
    groups: int
    rounds: int
    goal: float = 1.0
    is_nested: bool = False


def make(folder: Path, case: Case, seed: int) -> Path:
    """Write the table of a case: a commit for each file, and a few small files in other partitions."""
    dice = random.Random(seed)
    path = folder / f"{case.name}-made"
    for number in range(case.files):
        rows = case.file_bytes // (NESTED_BYTES_PER_ROW if case.is_nested else BYTES_PER_ROW)
        append(path, dice, DAY, rows=rows, is_nested=case.is_nested)
        if number % 5 == 0:
            append(path, dice, dice.choice(OTHER_DAYS), rows=1_000, is_nested=case.is_nested)
    return path


def append(
    path: Path, dice: random.Random, day: str, *, rows: int, dictionaries: bool = True, is_nested: bool = False
) -> None:
    """Commit one file as a foreign writer does, of numbers and texts that hardly compress."""
    values = {
        "id": _numbers(dice, rows),
        "account": _numbers(dice, rows),
        "at": _numbers(dice, rows),
        "amount": _numbers(dice, rows),
        "name": _texts(dice, rows),
        "day": pa.array([day]).take(pa.array([0] * rows)),
        **(_nested(dice, rows) if is_nested else {}),
    }
    write_deltalake(
        str(path),
        pa.table(values),
        mode="append",
        partition_by=["day"],
        target_file_size=2**32,
        writer_properties=WriterProperties(
            compression="SNAPPY",
            default_column_properties=None if dictionaries else ColumnProperties(dictionary_enabled=False),
        ),
    )


def copied(table: Path, to: Path) -> Path:
    """Return a copy of a table that shares its data files, which no one changes, and has a log of its own."""
    shutil.copytree(table, to, copy_function=_link)
    shutil.rmtree(to / "_delta_log")
    shutil.copytree(table / "_delta_log", to / "_delta_log")
    return to


def _link(source: str, target: str) -> None:
    os.link(source, target)


def _nested(dice: random.Random, rows: int) -> dict[str, pa.Array]:
    """Two structs in each row's list, each with a list of two numbers, and a map of two entries."""
    pairs = _every_second(rows)
    numbers = pa.ListArray.from_arrays(_every_second(2 * rows), _numbers(dice, 4 * rows))
    structs = pa.StructArray.from_arrays([_texts(dice, 2 * rows), numbers], ["name", "numbers"])
    entries = pa.MapArray.from_arrays(pairs, _texts(dice, 2 * rows), _numbers(dice, 2 * rows))
    return {"parts": pa.ListArray.from_arrays(pairs, structs), "marks": entries}


def _every_second(lists: int) -> pa.Array:
    return pa.array(range(0, 2 * lists + 1, 2), pa.int32())


def _numbers(dice: random.Random, rows: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(dice.randbytes(8 * rows))])


def _texts(dice: random.Random, rows: int) -> pa.Array:
    ends = array("i", range(0, TEXT_BYTES * (rows + 1), TEXT_BYTES))
    letters = dice.randbytes(TEXT_BYTES // 2 * rows).hex().encode()
    return pa.Array.from_buffers(pa.utf8(), rows, [None, pa.py_buffer(ends), pa.py_buffer(letters)])
