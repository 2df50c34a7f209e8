"""What `make coverage` holds is the core: only files that need a JVM are left out of it, and none is left out twice."""

import ast
import tomllib
from pathlib import Path

from tests.support.source_nodes import nodes_in

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
ONLY_REPORTS = "actor/presence.py"
JVM = ("pyspark", "py4j", "actor.jvm")


def imported(path: Path) -> set[str]:
    nodes = nodes_in(path)
    return {node.module or "" for node in nodes[ast.ImportFrom]} | {
        alias.name for node in nodes[ast.Import] for alias in node.names
    }


def test_the_core_is_all_that_is_pure_and_what_runs_a_job() -> None:
    assert SETTINGS["run"]["source"] == ["shared", "decider/decide", "decider/state", "actor"]
    assert SETTINGS["run"]["branch"] is True
    assert SETTINGS["report"]["fail_under"] == 100


def test_only_files_that_need_a_jvm_are_left_out() -> None:
    omitted = set(SETTINGS["run"]["omit"]) - {ONLY_REPORTS}
    files = [path for pattern in omitted for path in ROOT.glob(pattern)]
    assert len(files) == len(set(files)) > 10
    for path in files:
        of_the_jvm = path.parent.name == "jvm" or any(name.startswith(JVM) for name in imported(path))
        assert of_the_jvm, path
