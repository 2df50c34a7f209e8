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
    MOST_ROWS,
    OPERATION_KEY,
    SQL_WEIGHTS,
    Made,
    Row,
    apply,
    difference,
    encoded,
    new_rows,
    rows_of,
)
from tests.iceberg_stress.readers import pyiceberg_rows, referenced_files
from tests.iceberg_stress.world import REWROTE
from tests.iceberg_stress.writers import SCHEMA, UNHURRIED_S, Ledger, Permitted

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")

APPEND = {"kind": "append", "start": 0, "count": 6}


def test_a_writer_does_what_it_may_and_hurries_as_long_as_it_may_do_all() -> None:
    permitted = Permitted()
    assert (permitted.of(SQL_WEIGHTS), permitted.pause_s(0.5)) == (SQL_WEIGHTS, 0.5)
    permitted.only({"append", "merge", "spec"})
    assert (permitted.of(SQL_WEIGHTS), permitted.pause_s(0.5)) == ({"append": 8, "merge": 3}, UNHURRIED_S)
    assert permitted.of({"values": 3}) == {}


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


def test_each_operation_changes_the_rows_that_it_names() -> None:
    rows = apply(encoded(APPEND), Counter())
    assert rows == Counter(Row(number, number % 3, 0) for number in range(6))
    assert apply(None, rows) == rows
    assert apply(encoded({"kind": "delete", "of": 5, "is": 1}), rows) == rows - Counter([Row(1, 1, 0)])
    updated = apply(encoded({"kind": "update", "of": 5, "is": 1}), rows)
    assert updated - rows == Counter([Row(1, 1, 1)])
    merged = apply(encoded({"kind": "merge", "start": 5, "count": 2}), rows)
    assert merged - rows == Counter([Row(5, 2, 10), Row(6, 0, 0)])
    overwritten = apply(encoded({"kind": "overwrite", "start": 9, "count": 3, "g": 0}), rows)
    assert overwritten == rows - Counter([Row(0, 0, 0), Row(3, 0, 0)]) + Counter([Row(9, 0, 0)])
    with pytest.raises(ValueError, match="unknown"):
        apply('{"kind":"other"}', rows)


def test_the_rows_of_a_snapshot_follow_from_its_own_parents() -> None:
    second = encoded({**APPEND, "start": 6})
    snapshots = {1: Made(None, encoded(APPEND)), 2: Made(1, second), 3: Made(1, None)}
    assert rows_of(snapshots, 2).total() == 12
    assert rows_of(snapshots, 3) == rows_of(snapshots, 1)
    assert difference(rows_of(snapshots, 2), rows_of(snapshots, 1)).startswith("6 rows missing, 0 too many")


def test_a_ledger_gives_no_id_and_no_number_twice() -> None:
    ledger = Ledger()
    texts = [ledger.begin({**APPEND, "start": ledger.ids()}) for _ in range(3)]
    assert len(set(texts)) == 3
    first, second = (new_rows({**APPEND, "start": ledger.ids(), "count": MOST_ROWS}) for _ in range(2))
    assert not {row.id for row in first} & {row.id for row in second}


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
