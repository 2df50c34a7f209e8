"""What the bench of RisingWave's figures stands on, without Spark: files, their rows, goals, and measured processes."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from tests.bench.machine import exit_code
from tests.bench.rivals.deleted_table import (
    DELETED_ROWS,
    ROW_BYTES,
    SMALL_ROWS,
    Case,
    case_of,
    files_of,
    joined,
    make,
    read,
)
from tests.bench.rivals.process_tree import TreeMeter, children_killed_after
from tests.bench.rivals.risingwave import ENCODED, OURS, SPARK, Played, goals
from tests.support.iceberg_folder import Written


def test_a_case_names_its_files_of_each_kind() -> None:
    assert case_of("174", 1_000 * ROW_BYTES) == Case(174, 0, 0, 1_000)
    assert case_of("3+2+1", 1) == Case(3, 2, 1, SMALL_ROWS)
    assert case_of("3+2+1", 1).smaller(2) == Case(2, 2, 1, SMALL_ROWS)


def live_rows(commits: list[list[Written]]) -> pa.Table:
    """Return the rows of commits of a data file and its deletes each, by reading them one after the other."""
    rows: dict[int, dict[str, object]] = {}
    for commit in commits:
        read = {one.content: pq.read_table(one.path.removeprefix("file://")).to_pylist() for one in commit}
        for key in read.get(DataFileContent.EQUALITY_DELETES, ()):
            rows.pop(key["id"], None)
        deleted = {place["pos"] for place in read.get(DataFileContent.POSITION_DELETES, ())}
        rows |= {row["id"]: row for at, row in enumerate(read[DataFileContent.DATA]) if at not in deleted}
    return pa.Table.from_pylist(list(rows.values()))


@pytest.mark.parametrize("case", [Case(6, 4, 5, 100), Case(3, 0, 3, 100), Case(3, 3, 0, 100), Case(2, 0, 0, 100)])
def test_the_rows_of_a_table_are_those_that_no_file_deletes(tmp_path: Path, case: Case) -> None:
    draw = random.Random(1)
    live = live_rows([files_of(tmp_path, case, number, number, draw) for number in range(case.data)])
    text = "SELECT count(*), sum(hash(id, dt, ts, country)) FROM live"
    assert joined(tmp_path, case) == duckdb.connect().register("live", live).execute(text).fetchone()
    assert live.num_rows <= case.data * case.rows - case.positions * DELETED_ROWS


def test_readers_of_iceberg_find_the_same_rows_and_files(tmp_path: Path) -> None:
    rows = make(tmp_path / "t", Case(12, 10, 11, 100), 1)
    assert read(tmp_path / "t") == (rows, 12, 21)


@pytest.mark.parametrize(
    ("ours", "encoded", "with_deletes", "mib", "code"),
    [(2, 9, 9, 2048, 0), (3, 9, 9, 2048, 1), (2, 11, 9, 2048, 1), (2, 9, 11, 2048, 1), (2, 9, 9, 2049, 1)],
)
def test_ours_copies_cheaply_and_encodes_and_deletes_as_cheaply_as_spark_within_its_memory(
    ours: float, encoded: float, with_deletes: float, mib: float, code: int
) -> None:
    done = [
        Played("174", OURS, 2, cpu_s=ours),
        Played("174", ENCODED, 2, cpu_s=encoded),
        Played("174", SPARK, 2, cpu_s=10),
        Played("9+9+9", OURS, 1, cpu_s=with_deletes, peak_mib=mib),
        Played("9+9+9", SPARK, 1, cpu_s=10),
    ]
    assert len(goals(done)) == 4
    assert exit_code(goals(done)) == code


def test_a_side_without_figures_is_compared_with_nothing() -> None:
    done = [Played("9+9+9", OURS, 1, cpu_s=9, peak_mib=1), Played("9+9+9", SPARK, 1, note="out of memory")]
    assert [limit.what for limit in goals(done)] == ["peak memory in MiB with 9+9+9 files"]


@pytest.mark.parametrize("has_own", [False, True])
def test_the_meter_counts_processes_that_have_ended(has_own: bool) -> None:
    busy = "import time; at = time.process_time()\nwhile time.process_time() < at + 0.3: pass"
    with TreeMeter(has_own=has_own) as meter:
        subprocess.run([sys.executable, "-c", busy], check=True)
    assert meter.cpu_s >= 0.3
    assert meter.peak_mib > 1


def test_what_takes_too_long_is_killed_and_nothing_that_was_there_before() -> None:
    """As the Redis that all tests of a process share."""
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(sleeping) as earlier:
        with children_killed_after(0.2) as is_over:
            code = subprocess.run(sleeping, check=False).returncode
        assert is_over.is_set()
        assert (code, earlier.poll()) == (-signal.SIGKILL, None)
        earlier.kill()
