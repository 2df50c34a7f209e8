"""A vacuum of a local table as a process of its own, which a test may kill; slow, so that there is time for it."""

import sys
from pathlib import Path

from actor.vacuum.steps import VacuumLimits
from shared.jobs.options import VacuumOptions
from tests.support.local_vacuum import LocalTable, run_locally

SLOW = VacuumLimits(batch=5, files_per_s=50.0)


if __name__ == "__main__":
    run_locally(LocalTable(Path(sys.argv[1])), VacuumOptions(with_orphans=True), limits=SLOW)
