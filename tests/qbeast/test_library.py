"""The engine of indexes on Qbeast's own library and real tables: exact files, checked commits, and the double rows."""

import shutil
from pathlib import Path

import pytest

from tests.support.qbeast_process import QbeastProcess

pytestmark = [pytest.mark.spark, pytest.mark.long("qbeast")]

ROWS = 400
CUBE = 50


@pytest.fixture(scope="module")
def appended(qbeast: QbeastProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of five appends that no test changes."""
    path = tmp_path_factory.mktemp("tables") / "t"
    for number in range(5):
        qbeast.append(path=path.as_uri(), first=number * ROWS, rows=ROWS, cube_size=CUBE)
    return path


def copy(table: Path, to: Path) -> str:
    """Return the URI of a copy: a table's log names its files relative to itself."""
    return shutil.copytree(table, to / "copy").as_uri()


def test_the_self_test_passes(qbeast: QbeastProcess, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "qbeast0" / "server"
    assert qbeast.self_test(folder=folder.as_uri()) > 0


def test_a_job_merges_blocks_and_keeps_every_row(qbeast: QbeastProcess, appended: Path, tmp_path: Path) -> None:
    table = copy(appended, tmp_path)
    rows, before = qbeast.checksum(path=table), qbeast.index(path=table)
    done = qbeast.run(path=table)
    assert done["commits"]
    assert qbeast.index(path=table)["blocks"] < before["blocks"]
    assert qbeast.checksum(path=table) == rows
    assert qbeast.run(path=table)["commits"] == []


def test_the_library_by_itself_doubles_rows_that_others_rewrote_meanwhile_and_that_raises_an_alarm(
    qbeast: QbeastProcess, appended: Path, tmp_path: Path
) -> None:
    table = copy(appended, tmp_path)
    noticed = qbeast.provoke(path=table, is_checked=False)
    users = qbeast.users(path=table)
    assert len(users) > len(set(users)) == 5 * ROWS, "the hazard is real: rows are there twice"
    assert noticed.startswith("Corrupt: ")
    assert "rows are there twice" in noticed
    assert "RESTORE TABLE" in noticed
    version = int(noticed.rpartition("VERSION AS OF ")[2])
    qbeast.sql(text=f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {version}")
    assert qbeast.users(path=table) == list(range(5 * ROWS)), "what the alarm says puts it right"


def test_the_check_inside_the_transaction_keeps_doubled_rows_from_being_committed(
    qbeast: QbeastProcess, appended: Path, tmp_path: Path
) -> None:
    table = copy(appended, tmp_path)
    noticed = qbeast.provoke(path=table, is_checked=True)
    assert qbeast.users(path=table) == list(range(5 * ROWS))
    # The second optimizer rewrote everything, so nothing was left to do after the refused commit.
    assert noticed == "complete=True commits=[]"


def test_a_job_that_is_cancelled_while_the_library_works_commits_nothing(
    qbeast: QbeastProcess, appended: Path, tmp_path: Path
) -> None:
    table = copy(appended, tmp_path)
    before = qbeast.index(path=table)
    assert "cancelled before its commit" in qbeast.cancelled(path=table)
    assert qbeast.index(path=table) == before


def test_a_commit_whose_outputs_do_not_count_their_rows_is_refused(qbeast: QbeastProcess, appended: Path) -> None:
    table = appended.as_uri()
    assert qbeast.checked(path=table, stats='{"numRecords":ROWS}') == "accepted"
    for stats in ("", "{}", '{"minValues":{"user":1}}'):
        noticed = qbeast.checked(path=table, stats=stats)
        assert noticed.startswith("PermanentError: "), noticed
        assert "has no numRecords" in noticed
    assert "the outputs have 1 rows" in qbeast.checked(path=table, stats='{"numRecords":1}')


def test_columns_that_came_later_keep_their_values(qbeast: QbeastProcess, tmp_path: Path) -> None:
    table = (tmp_path / "t").as_uri()
    for number in range(6):
        qbeast.append(path=table, first=number * ROWS, rows=ROWS, cube_size=CUBE, late=number % 2 == 1)
    rows = qbeast.checksum(path=table)
    assert qbeast.late(path=table) == 3 * ROWS
    assert qbeast.run(path=table)["commits"]
    assert qbeast.late(path=table) == 3 * ROWS
    assert qbeast.checksum(path=table) == rows


def test_rows_of_other_writers_and_deletes_stay_right_beside_an_optimized_index(
    qbeast: QbeastProcess, appended: Path, tmp_path: Path
) -> None:
    table = copy(appended, tmp_path)
    qbeast.append_plainly(path=table, first=5 * ROWS, rows=30)
    qbeast.sql(text=f"DELETE FROM delta.`{table}` WHERE user % 10 = 3")
    wanted = [user for user in range(5 * ROWS + 30) if user % 10 != 3]
    assert qbeast.users(path=table) == wanted
    for number in range(3):
        qbeast.append(path=table, first=10_000 + number * ROWS, rows=ROWS, cube_size=CUBE)
    qbeast.run(path=table)
    assert qbeast.users(path=table) == [*wanted, *range(10_000, 10_000 + 3 * ROWS)]
