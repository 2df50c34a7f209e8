"""The check of the stress notices what it is there for: a lost or doubled row, a lost commit, and a missing file."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from shared.formats.iceberg.names import COMMIT_KEY
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin
from tests.iceberg_stress.check import TableCheck
from tests.iceberg_stress.operations import (
    OPERATION_KEY,
    Row,
    encoded,
    new_rows,
)
from tests.iceberg_stress.readers import pyiceberg_rows, referenced_files
from tests.iceberg_stress.world import REWROTE
from tests.iceberg_stress.writers import SCHEMA

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")

APPEND = {"kind": "append", "start": 0, "count": 6}


def test_jobs_that_rewrote_something_are_found_in_an_actors_log() -> None:
    lines = ['{"versions": [7, 8], "event": "job_finished"}', '{"versions": [], "event": "job_finished"}', "{}"]
    assert len(REWROTE.findall("\n".join(lines * 2))) == 2


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    return catalog.create_table("db.t", SCHEMA)


def append(table: Table, rows: list[Row], **summary: str) -> None:
    table.append(pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA), snapshot_properties=summary)


def problems(table: Table, *confirmed: str) -> list[str]:
    check = TableCheck(table, confirmed, {"spark": pyiceberg_rows, "pyiceberg": pyiceberg_rows})
    check.run()
    return check.problems


def test_what_writers_meant_and_readers_find_is_no_problem(table: Table) -> None:
    append(table, new_rows(APPEND), **{OPERATION_KEY: encoded(APPEND)})
    assert problems(table, encoded(APPEND)) == []


@pytest.mark.parametrize(
    ("rows", "problem"),
    [(new_rows(APPEND)[1:], "1 rows missing, 0 too many"), (new_rows(APPEND) * 2, "0 rows missing, 6 too many")],
)
def test_a_row_that_was_lost_or_doubled_is_named_with_its_snapshot(table: Table, rows: list[Row], problem: str) -> None:
    append(table, rows, **{OPERATION_KEY: encoded(APPEND)})
    found = problems(table)
    assert all(problem in one and "first wrong in snapshot" in one for one in found)
    assert len(found) == 2


def test_a_rewrite_that_changed_rows_or_was_made_twice_is_named(table: Table) -> None:
    append(table, new_rows(APPEND), **{OPERATION_KEY: encoded(APPEND)})
    mark = CommitMetadata(CommitOrigin("job-1", 7), partition="{}", round=1).encode()
    for number in range(2):
        append(table, [Row(number, 0, 0)], **{COMMIT_KEY: mark})
    found = problems(table)
    assert "t: rewrite job-1/7/1 has several snapshots" in found
    assert any("of rewrite job-1/7/1: 0 rows missing, 1 too many" in one for one in found)


def test_commits_that_were_lost_doubled_or_made_by_others_are_named(table: Table) -> None:
    for _ in range(2):
        append(table, new_rows(APPEND), **{OPERATION_KEY: encoded(APPEND)})
    append(table, [Row(1, 1, 0)])
    lost = encoded({**APPEND, "number": 9})
    found = problems(table, lost)
    assert f"t: no snapshot of {lost}, which was confirmed" in found
    assert any("2 snapshots of" in one for one in found)
    assert any("has no operation and no mark of ours" in one for one in found)


def test_a_file_that_is_referred_to_and_missing_is_named(table: Table) -> None:
    append(table, new_rows(APPEND), **{OPERATION_KEY: encoded(APPEND)})
    check = TableCheck(table, (), {"spark": lambda *_: Counter(new_rows(APPEND))})
    (data,) = [path for path in referenced_files(table) if path.suffix == ".parquet"]
    data.unlink()
    check.run()
    assert f"t: {data} is referred to, and is not there" in check.problems
    assert "t: was read by ['spark'] alone" in check.problems
