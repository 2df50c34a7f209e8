"""A hundred thousand files are deleted at a bounded rate, with progress, under a lease that is renewed all the time."""

import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.ports import TableJob
from actor.vacuum.steps import VacuumLimits
from shared.jobs.payload import VACUUM
from shared.jobs.vacuum_options import VacuumOptions
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control
from tests.support.removed_files import LIVE, with_removed_files

pytestmark = pytest.mark.spark

FILES = 100_000
PER_S = 1_000.0


class Watched(Control):
    """Keeps when each point was reached."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[float, int]] = []

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        super().reached(point, done, total)
        if point == "deleting":
            self.times.append((time.monotonic(), done))


def test_a_hundred_thousand_files_are_deleted_at_a_bounded_rate(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "many"
    names = with_removed_files(table, FILES)
    engine = DeltaEngine(lab.spark, EngineSettings(vacuum=VacuumLimits(files_per_s=PER_S)))
    control, started_s = Watched(), time.monotonic()
    job = TableJob(VACUUM, table.as_uri(), Policy(), CommitOrigin("job", 7), options=VacuumOptions().encode())
    done = engine.run_table_job(job, control)
    elapsed_s = time.monotonic() - started_s
    figures = done.figures
    assert (figures["files_deleted"], figures["bytes_freed"]) == (FILES, FILES * len(b"long gone"))
    assert not any((table / name).exists() for name in names)
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == LIVE
    begun_s = control.times[0][0]
    assert [count for _, count in control.times] == list(range(0, FILES, 100))
    assert control.changes == len(control.times) + 2, "one check of the lease before each change"
    for at_s, count in control.times:
        assert count <= (at_s - begun_s) * PER_S + 100, "never ahead of the rate by more than a batch"
    print(f"\n{FILES:,} files in {elapsed_s:.0f} s, bound {FILES / PER_S:.0f} s")
