"""The stress for a minute: `python -m tests.iceberg_stress` runs it for any time, with any seed."""

import subprocess
import sys

import pytest

from tests.support.iceberg_rest_lake import ICEBERGS, OURS
from tests.support.stack import ROOT
from tests.support.time_limits import scaled

MOST_S = 5400.0
"""The stress ends by itself when it hangs; this is for a process that does not."""


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.e2e
@pytest.mark.timeout(5500)
@pytest.mark.long("iceberg")
@pytest.mark.parametrize("server", [OURS, ICEBERGS])
def test_no_row_is_lost_or_doubled_while_writers_work_and_actors_are_killed(server: str) -> None:
    """It needs a process of its own for its Spark; it prints its seed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.iceberg_stress", "--server", server],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=scaled(MOST_S),
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
