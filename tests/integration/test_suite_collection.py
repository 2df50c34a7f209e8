"""The suite can be collected with fewer plugins than `make test` loads."""

import subprocess
import sys
from pathlib import Path

from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]


def test_the_suite_is_collected_without_xdist() -> None:
    """A debugger wants one process; without the plugin its marker `xdist_group` is unknown and must not be set."""
    fewer = ["-p", "no:xdist", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *fewer, "-q", "--collect-only", "tests/e2e/test_crashes.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=scaled(120), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_crashes.py" in done.stdout
