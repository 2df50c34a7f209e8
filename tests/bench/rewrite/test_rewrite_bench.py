"""What the benchmark of one rewrite stands on, without Spark: its tables, and the timing of phases from outside."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.bench.rewrite.tables import DAY, Case, copied, make

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.delta.log import TableLog
from tests.bench.rewrite.phases import Phases


def test_copies_share_their_files_and_not_their_logs(tmp_path: Path) -> None:
    made = make(tmp_path, Case("small", 4, 20_000, 1, 1), seed=3)
    copy = copied(made, tmp_path / "copy")
    files = sorted(made.glob(f"day={DAY}/*.parquet"))
    assert len(files) == 4
    assert all(file.stat().st_ino == (copy / file.relative_to(made)).stat().st_ino for file in files)
    DeltaTable(str(copy)).delete()
    assert DeltaTable(str(made)).to_pyarrow_table().num_rows > 0


def test_phases_are_timed_from_outside_and_nothing_stays_changed() -> None:
    before, phases = TableLog.touched_paths, Phases()
    with phases.measured():
        assert TableLog.touched_paths is not before
        assert TableLog.touched_paths(None, after=1, until=1) == {}  # type: ignore[arg-type]
    assert TableLog.touched_paths is before
    assert phases.ms["see whether others touched the inputs"] > 0


def test_a_commit_is_split_where_its_file_appeared(tmp_path: Path) -> None:
    phases = Phases()
    phases.ms["commit"] = 500.0
    log = tmp_path / "_delta_log"
    log.mkdir()
    appeared = log / f"{3:020d}.json"
    appeared.touch()
    phases.split_commit(tmp_path, 3, appeared.stat().st_mtime + 0.2)
    assert phases.ms["commit"] == pytest.approx(300, abs=1)
