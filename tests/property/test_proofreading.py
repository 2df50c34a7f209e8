"""Proofreading notices one change in any table, says which column, and finds nothing where nothing changed.

Equality is judged by the text of the rows that were written, not by a reader.
"""

import os
import random
from pathlib import Path

import duckdb
import pytest

from actor.proofread.model import FoundBy, ProofFile, Rewritten
from actor.proofread.process import answer, connect
from actor.proofread.task import Answer, ReadEnding, Task, Work
from tests.support.random_tables import changed, random_table, write_split

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
