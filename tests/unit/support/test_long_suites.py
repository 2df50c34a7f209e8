"""A long test runs where its suite was asked for, and its skip names the target elsewhere."""

from itertools import combinations
from pathlib import Path

import pytest

from tests.support.long_suites import TARGETS, beyond, pairs_first

ROOT = Path(__file__).resolve().parents[3]
SUITE = """
import pytest

@pytest.mark.long("page")
def test_long():
    pass

@pytest.mark.long("s3")
def test_of_another_suite():
    pass

def test_short():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_inprocess("-p", "tests.support.long_suites", "-rs", *arguments)


def test_a_long_test_is_skipped_with_the_target_that_runs_it(suite: pytest.Pytester) -> None:
    result = run(suite)
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["*a long test: make test-page", "*a long test: make test-s3"])


def test_one_suite_or_all_run_beside_the_short_tests(suite: pytest.Pytester) -> None:
    run(suite, "--long", "page").assert_outcomes(passed=2, skipped=1)
    run(suite, "--long", "page", "--long", "s3").assert_outcomes(passed=3)
    run(suite, "--long=all").assert_outcomes(passed=3)


def test_only_files_with_a_mark_are_loaded_for_the_tests_that_have_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_other="raise AssertionError('loaded')\n")
    run(suite, "--long", "page", "-m", "long").assert_outcomes(passed=1, skipped=1, deselected=1)


def test_a_mark_that_its_file_spells_in_another_way_is_an_error(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_hidden="import pytest\npytestmark = pytest.mark.long('page')\ndef test_it(): pass\n")
    result = run(suite)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*its file does not spell page*"])


def test_an_unknown_suite_is_an_error(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_more='import pytest\n@pytest.mark.long("pages")\ndef test_it(): pass\n')
    result = run(suite)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no long suite is called pages*"])


def test_only_the_first_parameters_are_short() -> None:
    one, two, three = beyond(1, ["a", "b", ("c", 1)], "page")
    assert one == "a"
    assert (two.values, three.values) == (("b",), ("c", 1))
    assert [mark.name for mark in (*two.marks, *three.marks)] == ["long", "long"]


def test_half_of_all_combinations_has_each_choice_and_of_three_each_two_together() -> None:
    two = pairs_first((0, 1), (2, 3))
    assert (two[:2], len({*two})) == ([(0, 2), (1, 3)], 4)
    three = pairs_first((0, 1), (2, 3), (4, 5))
    assert len({*three}) == 8
    assert len({pair for one in three[:4] for pair in combinations(one, 2)}) == 12


def test_each_suite_has_a_target_that_asks_for_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for suite, target in TARGETS.items():
        own = makefile.partition(f"\n{target}: ")[2].partition("\n\n")[0]
        by_rule = makefile.partition(f"\nSUITE.{target.removeprefix('test-')} := ")[2].partition("\n")[0]
        assert f"--long {suite}" in own + by_rule, target
