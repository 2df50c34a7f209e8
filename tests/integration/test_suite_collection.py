"""The suite can be collected with fewer plugins than `make test` loads."""

import re
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


def test_tests_that_share_a_jvm_run_in_one_process() -> None:
    """A JVM for each process would cost a minute of CPU each; a long test shows its group, and is skipped."""
    test = "tests/contract/test_spark_after_timeout.py"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup", "-v", test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=scaled(120), check=False)
    assert re.search(rf"SKIPPED {test}::.*@spark-0", done.stdout), done.stdout + done.stderr
