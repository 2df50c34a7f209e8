"""Executors of a cluster copy row groups, and nothing is lost, doubled or left if one of them is killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.stack import ROOT
from tests.support.time_limits import scaled

pytest.importorskip("psutil", reason="psutil is in the extra `standalone`")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.long("copies"),
]

LARGE_ROWS = 20 * 2**19


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All cases on one cluster of two executors: starting it costs more than any case."""
    command = [sys.executable, "-m", "tests.support.copy_on_cluster", str(tmp_path_factory.mktemp("cluster"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=scaled(600), check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found, indent=1))
    return found


def test_executors_get_the_classes_and_copy(cases: dict[str, Any]) -> None:
    found = cases["small"]
    assert (found["status"], found["copied"], found["rows"], found["left"]) == ("committed", True, [60, 60], [])


def test_a_killed_executor_costs_a_second_attempt_and_leaves_no_file(cases: dict[str, Any]) -> None:
    found = cases["killed"]
    assert found["partial"], "no file was begun when the executors were killed: this shows nothing"
    assert not set(found["partial"]) & set(found["outputs"]), "the copy had ended before the executors were killed"
    assert (found["status"], found["copied"], found["left"]) == ("committed", True, [])
    assert found["rows"] == [LARGE_ROWS, LARGE_ROWS]


def test_a_cancelled_copy_ends_on_its_executor_and_leaves_no_file(cases: dict[str, Any]) -> None:
    found = cases["cancelled"]
    assert "the table is unchanged" in found["error"]
    assert found["versions"][0] == found["versions"][1]


def test_the_programs_of_the_cluster_write_below_the_tests_folder_alone() -> None:
    import pyspark

    assert not (Path(pyspark.__file__).parent / "work").exists()
