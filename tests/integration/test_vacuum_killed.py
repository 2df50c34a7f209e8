"""A vacuum killed with kill -9, twice: the third run does the rest, and nothing that is needed is gone."""

import subprocess
import sys
from pathlib import Path

from deltalake import DeltaTable

from shared.jobs.options import VacuumOptions
from tests.support.aged_table import contents, data_files, files_needed, history, remove_long_ago, versions
from tests.support.local_vacuum import LocalTable, run_locally
from tests.support.stack import ROOT
from tests.support.waiting import until

FILES = 200


def start(table: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.support.vacuum_process", str(table)], cwd=ROOT)


def test_a_vacuum_killed_twice_is_finished_by_the_third_run(tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table, days=12)
    remove_long_ago(table, FILES)
    newest, before = versions(table)[-1], contents(table, 7)
    needed = files_needed(table, before)
    left = [len(data_files(table))]
    for _ in range(2):
        vacuum = start(table)
        until("the vacuum deletes", lambda: len(data_files(table)) < left[-1] - 10)
        vacuum.kill()
        vacuum.wait()
        left.append(len(data_files(table)))
        assert versions(table)[-1] == newest, "no end is committed before the end"
        assert needed <= data_files(table)
    assert len(needed) < left[2] < left[1] < left[0]
    rest = run_locally(LocalTable(table), VacuumOptions(with_orphans=True))
    assert rest.is_complete
    assert rest.figures["files_deleted"] == left[2] - len(needed)
    assert data_files(table) == needed
    assert contents(table, 7, after=newest) == before
    assert DeltaTable(table).history(1)[0]["operation"] == "VACUUM END"
