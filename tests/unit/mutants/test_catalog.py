"""Every mutant still applies, and a trial of one tells killed from survived; running them is `make mutants`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.catalog import DoesNotApply, Mutant, check, load, not_applying
from tests.mutants.trial import HANGS, TEST_TIMEOUT_S, Copy, Fate

TREE = Path(__file__).parents[3]
MUTANTS = load()
ONE = Mutant("area.one", "code.py", "return a < b", "return a <= b", "a rule", ("test_code.py::test_less",))
CODE = "def less(a, b):\n    return a < b\n"


def test_each_mutant_applies_and_its_tests_exist() -> None:
    problems = not_applying(MUTANTS, TREE)
    assert not problems, "\n".join(problems)


def test_there_are_mutants_of_each_part_that_must_not_break() -> None:
    assert len(MUTANTS) >= 40
    assert {mutant.name.partition(".")[0] for mutant in MUTANTS} >= {
        *("fence", "live", "memory", "commit", "rows", "outputs", "worker"),  # the actor
        *("core", "state", "queue", "intake"),
    }


def tree(path: Path, code: str = CODE) -> Path:
    (path / "code.py").write_text(code)
    (path / "test_code.py").write_text("def test_less():\n    assert True\n")
    return path


def test_only_the_line_is_changed_and_its_indentation_is_kept(tmp_path: Path) -> None:
    check(ONE, tree(tmp_path))
    assert ONE.mutated(CODE) == "def less(a, b):\n    return a <= b\n"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"old": "return a > b"}, "has 0 lines"),
        ({"old": "return a"}, "has 0 lines"),  # A part of a line is not a line.
        ({"file": "other.py"}, "no file other.py"),
        ({"new": "return a < b"}, "changes nothing"),
        ({"new": "return a <"}, "does not parse"),
        ({"new": ""}, "does not parse"),
        ({"new": "return a < c"}, r"unknown names \['c'\]"),
        ({"tests": ("test_code.py::test_more",)}, "does not exist"),
        ({"tests": ("test_code.py",)}, "does not exist"),
        ({"after": "def more(a, b):"}, "has 0 lines"),
    ],
)
def test_what_cannot_show_anything_does_not_apply(tmp_path: Path, change: dict[str, object], expected: str) -> None:
    with pytest.raises(DoesNotApply, match=expected):
        check(replace(ONE, **change), tree(tmp_path))


def test_a_line_that_is_there_twice_is_reported_apart_by_one_above_it(tmp_path: Path) -> None:
    twice = CODE + "def same(a, b):\n    return a < b\n"
    with pytest.raises(DoesNotApply, match="has 2 lines"):
        check(ONE, tree(tmp_path, twice))
    second = replace(ONE, after="def same(a, b):")
    assert second.mutated(twice) == CODE + "def same(a, b):\n    return a <= b\n"
    assert replace(ONE, after="def less(a, b):").mutated(twice).startswith("def less(a, b):\n    return a <= b\n")


HEAD, WHOLE = '["code.py".a]\n', 'old = ""\nnew = ""\ntests = ["t"]\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD, "lacks"),
        (HEAD + WHOLE.replace('"t"', ""), "names no tests"),
        (HEAD + WHOLE + 'why = ""', "unknown keys"),
        (HEAD + HEAD, "declare"),
        ('[a]\nfile = "code.py"', "is no mutant"),
        (HEAD + WHOLE + HEAD.replace("code", "more") + WHOLE, "two mutants"),
    ],
)
def test_an_entry_that_is_not_complete_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "area.toml").write_text(text)
    with pytest.raises(ValueError, match=expected):
        load(tmp_path)


def test_a_rule_is_that_of_the_tests_name_unless_it_is_stated(tmp_path: Path) -> None:
    entries = [
        f'["code.py".{name}]\nold = ""\nnew = ""\n{rule}tests = ["t.py::test_less_is_less"]\n'
        for name, rule in (("a", ""), ("b", 'rule = "Less is not equal."\n'))
    ]
    (tmp_path / "area.toml").write_text("".join(entries))
    assert [mutant.rule for mutant in load(tmp_path)] == ["less is less", "Less is not equal."]


TEST = "test_code.py::test_less"
TRIED = Mutant("area.one", "code.py", "return a < b", "return a <= b", "a rule", (TEST,))


@pytest.mark.parametrize(
    ("end", "fate"),
    [
        ("failed", Fate.KILLED),
        ("timed out", Fate.KILLED),
        ("passed", Fate.SURVIVED),
        ("skipped", Fate.ERROR),
        ("setup failed", Fate.ERROR),
    ],
)
@pytest.mark.parametrize(("usual_s", "least_s"), [(0.1, TEST_TIMEOUT_S[False]), (10.0, 10.0 * HANGS)])
def test_a_test_hangs_that_takes_many_times_what_it_takes_without_the_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, fate: Fate, usual_s: float, least_s: float
) -> None:
    """A limit that is the same for all would take a slow test on a busy machine for a killed mutant."""
    (tmp_path / "code.py").write_text("def less(a, b):\n    return a < b\n")
    limits = list[float]()

    def run(_: Copy, tests: Any, __: float, each_s: float) -> Any:
        limits.append(each_s)
        return dict.fromkeys(tests, end), {}, ""

    monkeypatch.setattr(Copy, "run", run)
    copy = Copy.__new__(Copy)
    copy.root = tmp_path
    assert copy.try_one(TRIED, 600, {TEST: usual_s}).fate is fate
    assert limits == [least_s]
