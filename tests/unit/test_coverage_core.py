"""`make coverage` holds the core: only files that need a JVM are left out of it, and CI measures it on the way."""

import ast
import tomllib
from pathlib import Path

from tests.support.source_nodes import nodes_in

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
ONLY_REPORTS = "actor/presence.py"
JVM = (
    *("pyspark", "py4j", "actor.jvm", "actor.formats.iceberg.iceberg_scala"),
    *("actor.formats.iceberg.java_cells", "actor.formats.delta.delta_scala", "actor.formats.delta.job_table"),
)

READ_ELSEWHERE = {f"actor/proofread/{name}.py" for name in ("arrow_files", "process", "second_reader")}
"""Run in a process of their own, or on a thread of Arrow: no measurement follows them."""


def imported(path: Path) -> set[str]:
    nodes = nodes_in(path)
    return {node.module or "" for node in nodes[ast.ImportFrom]} | {
        alias.name for node in nodes[ast.Import] for alias in node.names
    }


def test_the_core_is_all_that_is_pure_and_what_runs_a_job() -> None:
    assert SETTINGS["run"]["source"] == ["shared", "decider/decide", "decider/state", "actor"]
    assert SETTINGS["run"]["branch"] is True
    assert SETTINGS["report"]["fail_under"] == 100


def test_only_files_that_need_a_jvm_or_another_process_are_left_out() -> None:
    omitted = set(SETTINGS["run"]["omit"]) - {ONLY_REPORTS} - READ_ELSEWHERE
    files = [path for pattern in omitted for path in ROOT.glob(pattern)]
    assert len(files) == len(set(files)) > 10
    for path in files:
        of_the_jvm = path.parent.name == "jvm" or any(name.startswith(JVM) for name in imported(path))
        assert of_the_jvm, path


def test_ci_runs_each_test_of_the_core_once_and_measured() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    coverage, whole = (makefile.partition(f"\n{name}:")[2].partition("\n\n")[0] for name in ("coverage", "test-all"))
    assert "-p tests.support.core_coverage" in coverage
    assert " $(CORE) " in coverage
    assert " coverage " in whole
    assert "$(patsubst %,--ignore=%,$(CORE) $(RIGS))" in whole
    assert "make test-all" in (ROOT / ".ci/run").read_text(encoding="utf-8")
