"""Real Delta tables that are written and read by Zipf's law: one seeded history of commits, brought to any folder.

Data files are hard links of a few prepared ones, one for each size. Nothing here uses Delta's code.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shared.table import TableId, TableRef
from tests.bench.delta.table import PlayedTable
from tests.bench.fleet.simulation import EXPONENT, TENANTS

COLUMNS = {"id": "long", "value": "string"}
FILE_ROWS = (250, 1_000, 4_000, 16_000)
"""Rows of the prepared files: 14 KiB to 0.9 MiB."""

FILE_SHARES = (4, 3, 2, 1)
FILES_PER_COMMIT = 4
FIRST_FILES, FIRST_EXPONENT = 200, 0.5
"""Files of the largest table at the beginning, and how they become fewer with the rank: six in the thousandth."""

READS_PER_S = 10.0
"""Queries per second of the table that is read most."""


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """One table before it exists: its owner, how it is written and read per second, and which file its commits add."""

    tenant: int
    commits_per_s: float
    reads_per_s: float
    file: int


@dataclass(frozen=True, slots=True)
class DrawnCommit:
    """A commit of some files to a table, at a second of the clock."""

    at_s: float
    table: int
    files: int


@dataclass(frozen=True, slots=True)
class History:
    """The tables and their commits in order, the same for each order of dispatch."""

    tables: tuple[DrawnTable, ...]
    commits: tuple[DrawnCommit, ...]
    templates: tuple[Mapping[str, Any], ...]
    folder: Path

    def opens(self, until_s: float) -> float:
        """Return how many files readers open if nothing is rewritten."""
        return sum(
            commit.files * self.tables[commit.table].reads_per_s * (until_s - commit.at_s)
            for commit in self.commits
            if commit.at_s < until_s
        )


def draw(folder: Path, *, tables: int, seed: int, commits_per_s: float, seconds: float) -> History:
    """Write the prepared files into a folder, and draw tables and commits: all tables together get so many a second."""
    dice = Random(seed)
    rates = [1 / (rank + 1) ** EXPONENT for rank in range(tables)]
    whole = sum(rates)
    writes, reads = dice.sample(rates, tables), dice.sample(rates, tables)
    first = dice.sample([round(FIRST_FILES / (rank + 1) ** FIRST_EXPONENT) for rank in range(tables)], tables)
    tenants = [1 / (tenant + 1) for tenant in range(TENANTS)]
    drawn = tuple(
        DrawnTable(
            dice.choices(range(TENANTS), tenants)[0],
            commits_per_s * write / whole,
            max(0.001, round(READS_PER_S * read, 3)),
            dice.choices(range(len(FILE_ROWS)), FILE_SHARES)[0],
        )
        for write, read in zip(writes, reads, strict=True)
    )
    commits = [DrawnCommit(0.0, number, files) for number, files in enumerate(first)]
    commits += sorted(_commits(drawn, dice, seconds), key=lambda commit: commit.at_s)
    return History(drawn, tuple(commits), tuple(_prepared(folder, rows) for rows in FILE_ROWS), folder)


def _commits(tables: tuple[DrawnTable, ...], dice: Random, seconds: float) -> Iterator[DrawnCommit]:
    for number, table in enumerate(tables):
        now_s = dice.expovariate(table.commits_per_s)
        while now_s < seconds:
            yield DrawnCommit(now_s, number, dice.randint(1, FILES_PER_COMMIT))
            now_s += dice.expovariate(table.commits_per_s)


def _prepared(folder: Path, rows: int) -> dict[str, Any]:
    """Write one data file, and return the fields of an `add` without its path."""
    dice = Random(rows)
    values = pa.table({"id": range(rows), "value": [dice.randbytes(16).hex() for _ in range(rows)]})
    name = f"{rows}.parquet"
    pq.write_table(values, folder / name, compression="snappy")
    stats = {"numRecords": rows, "minValues": {"id": 0}, "maxValues": {"id": rows - 1}}
    return {
        "partitionValues": {},
        "size": (folder / name).stat().st_size,
        "modificationTime": 1_767_225_600_000,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


class RealTable:
    """A table of the history in a folder, and what was written to it."""

    def __init__(self, history: History, number: int, folder: Path) -> None:
        self.drawn = history.tables[number]
        self._history = history
        self.played = PlayedTable(
            folder / f"t{number}", {"lakewright.read-weight": f"{self.drawn.reads_per_s}"}, COLUMNS, ()
        )
        self.ref = TableRef(
            TableId(f"t{number}"), f"t{number}", self.played.path.as_uri(), f"tenant-{self.drawn.tenant}"
        )
        self.rows = self._appended = 0

    def commit(self, files: int) -> None:
        """Append so many files as another writer does."""
        rows = FILE_ROWS[self.drawn.file]
        adds = []
        for _ in range(files):
            name = f"part-{self._appended:06d}.parquet"
            os.link(self._history.folder / f"{rows}.parquet", self.played.path / name)
            adds.append({"path": name, **self._history.templates[self.drawn.file]})
            self._appended += 1
        self.played.append(adds)
        self.rows += rows * files
