"""The suite can be collected with fewer plugins than `make test` loads."""

import subprocess
import sys
from pathlib import Path

from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[3]


def test_the_suite_is_collected_without_xdist() -> None:
    """A debugger wants one process; without the plugin its marker `xdist_group` is unknown and must not be set."""
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-q", "--collect-only", "tests/e2e", "tests/load"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=scaled(120), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_crashes.py" in done.stdout
