"""The runner tells killed from survived, shows nothing where nothing was shown, and leaves the source alone."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TREE = Path(__file__).parents[2]

CODE = """\
def less(a, b):
    return a < b


def twice(a):
    return a + a


def first(a):
    return a[0]
"""
TESTS = """\
import pytest
from code_under_test import first, less, twice


def test_less():
    assert less(1, 2) and not less(2, 1)


def test_equal():
    assert not less(1, 1)


def test_twice():
    assert twice(2) == 4


def test_fails():
    assert twice(2) == 5


def test_skipped():
    pytest.skip("no server")
"""


def run(tmp_path: Path, *entries: str, more: Sequence[str] = ()) -> tuple[int, str, dict[str, str]]:
    tree, changes, result = tmp_path / "tree", tmp_path / "changes", tmp_path / "result.json"
    (tree / "tests" / "mutants").mkdir(parents=True, exist_ok=True)
    changes.mkdir(exist_ok=True)
    result.unlink(missing_ok=True)
    (tree / "code_under_test.py").write_text(CODE)
    (tree / "test_it.py").write_text(TESTS)
    (tree / "tests" / "mutants" / "outcomes.py").write_text((TREE / "tests/mutants/outcomes.py").read_text())
    (changes / "area.toml").write_text("\n".join(entries))
    command = [sys.executable, "-m", "tests.mutants", f"--tree={tree}", f"--changes={changes}", f"--json={result}"]
    done = subprocess.run([*command, "--jobs=2", *more], cwd=TREE, capture_output=True, text=True, check=False)
    assert (tree / "code_under_test.py").read_text() == CODE
    fates = {one["name"]: one["fate"] for one in json.loads(result.read_text())} if result.exists() else {}
    return done.returncode, done.stdout + done.stderr, fates


def entry(name: str, old: str, new: str, *tests: str) -> str:
    fields = {"old": old, "new": new, "rule": "a rule", "tests": [f"test_it.py::{test}" for test in tests]}
    return f'["code_under_test.py".{name}]\n' + "\n".join(
        f"{key} = {json.dumps(value)}" for key, value in fields.items()
    )


EQUAL = entry("equal", "return a < b", "return a <= b", "test_equal")
SWAPPED = entry("swapped", "return a < b", "return a > b", "test_less")


def test_mutants_that_their_tests_notice_are_killed_and_all_is_well(tmp_path: Path) -> None:
    code, output, fates = run(tmp_path, EQUAL, SWAPPED)
    assert (code, fates) == (0, {"area.equal": "killed", "area.swapped": "killed"}), output


def test_a_survivor_is_named_and_what_shows_nothing_is_an_error_and_the_run_fails(tmp_path: Path) -> None:
    code, output, fates = run(
        tmp_path,
        EQUAL,
        entry("survives", "return a + a", "return a * 2", "test_twice"),
        entry("noticed-by-one-of-two", "return a < b", "return a <= b", "test_equal", "test_less"),
        entry("not-collected", "def first(a):", "def last(a):", "test_less"),
    )
    assert code == 1, output
    assert fates == {
        "area.equal": "killed",
        "area.survives": "SURVIVED",
        "area.noticed-by-one-of-two": "SURVIVED",
        "area.not-collected": "ERROR",
    }
    assert "SURVIVED area.survives: a rule" in output
    assert "passed: test_it.py::test_less" in output


def test_tests_that_do_not_pass_without_the_mutant_are_refused(tmp_path: Path) -> None:
    fails, skipped = (entry(test, "return a + a", "return 5", test) for test in ("test_fails", "test_skipped"))
    code, output, fates = run(tmp_path, EQUAL, fails, skipped)
    assert (code, fates) == (1, {}), output
    assert "test_it.py::test_fails: failed" in output
    assert "test_it.py::test_skipped: skipped" in output


def test_a_mutant_that_no_longer_applies_is_refused(tmp_path: Path) -> None:
    code, output, fates = run(tmp_path, EQUAL, entry("old", "return a << b", "return a", "test_less"))
    assert (code, fates) == (1, {}), output
    assert "area.old: code_under_test.py has 0 lines" in output


def test_a_mutant_that_was_killed_is_tried_again_only_after_a_change_or_if_a_person_asks(tmp_path: Path) -> None:
    survives = entry("survives", "return a + a", "return a * 2", "test_twice")
    code, output, fates = run(tmp_path, EQUAL, survives)
    assert fates == {"area.equal": "killed", "area.survives": "SURVIVED"}, output
    code, output, fates = run(tmp_path, EQUAL, survives)
    assert (code, fates) == (1, {"area.survives": "SURVIVED"}), output
    assert "2 mutants, 1 of them killed by an earlier run" in output
    code, output, fates = run(tmp_path, EQUAL)
    assert (code, fates) == (0, {}), output
    code, output, fates = run(tmp_path, EQUAL, more=["--again"])
    assert (code, fates) == (0, {"area.equal": "killed"}), output
    code, output, fates = run(tmp_path, EQUAL.replace("<=", "!="))
    assert fates == {"area.equal": "SURVIVED"}, output
