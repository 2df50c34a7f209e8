"""In CI a skip is a failure unless it is on the list; a second try is only for tests that may be late."""

import json
from pathlib import Path

import pytest

from tests.support import second_try
from tests.support.allowed_skips import LIST, AllowedSkip, read_list

ROOT = Path(__file__).resolve().parents[3]

SUITE = """
import pytest

def test_without_a_server():
    pytest.skip("no server")

def test_without_a_daemon():
    pytest.skip("no daemon")

@pytest.mark.skipif(True, reason="no marker's server")
def test_by_a_marker():
    assert False

@pytest.fixture
def server():
    pytest.skip("no fixture's server")

def test_by_a_fixture(server):
    assert False

@pytest.mark.xfail(reason="known")
def test_expected_to_fail():
    assert False

def test_runs():
    assert True
"""
ALLOWED = '[[skip]]\ntests = "test_suite.py::test_without_a_*"\nreason = "no dae*"\nwhy = "there is none"\n'


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("CI", "true")
    pytester.makeconftest('pytest_plugins = ["tests.support.allowed_skips"]')
    (pytester.path / LIST).parent.mkdir()
    (pytester.path / LIST).write_text(ALLOWED)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_inprocess("-rA", *arguments)


def test_in_ci_only_listed_skips_are_skips(suite: pytest.Pytester) -> None:
    result = run(suite)
    # A skip of a fixture or marker fails in the setup, which pytest calls an error.
    result.assert_outcomes(passed=1, skipped=1, failed=1, errors=2, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for skipped, reason in (
        ("without_a_server", "no server"),
        ("by_a_marker", "no marker's server"),
        ("by_a_fixture", "no fixture's server"),
    ):
        result.stdout.fnmatch_lines([f"*test_suite.py::test_{skipped} was skipped in CI: {reason}"])
    result.stdout.fnmatch_lines([f"*or list the skip, with the reason, in {LIST}."])


def test_in_ci_a_module_that_skips_itself_is_a_failure(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_module='import pytest\npytest.importorskip("no_such_package")')
    result = run(suite, "test_module.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*test_module.py was skipped in CI: could not import 'no_such_package'*"])


def test_elsewhere_a_skip_is_a_skip(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI")
    result = run(suite)
    result.assert_outcomes(passed=1, skipped=4, xfailed=1)


def test_an_entry_of_the_list_says_why() -> None:
    with pytest.raises(pytest.UsageError, match="`why`"):
        read_list('[[skip]]\ntests = "a"\nreason = "b"\n')


def test_the_list_allows_neither_the_object_store_nor_the_chart_to_be_skipped() -> None:
    allowed = read_list((ROOT / LIST).read_text("utf-8"))
    assert AllowedSkip("*", "a long test: make *") in allowed
    for test in ("tests/integration/test_object_store_minio.py::test_x", "tests/unit/test_deployment.py::test_x"):
        assert not any(one.allows(test, f"no {program}: ...") for one in allowed for program in ("minio", "helm"))


FLAKY = """
from pathlib import Path

def test_late():
    seen = Path(__file__).with_suffix(".seen")
    is_second = seen.exists()
    seen.touch()
    assert is_second

def test_wrong():
    assert False
"""


def _failed(root: Path, *tests: str) -> None:
    kept = root / ".pytest_cache/v/cache/lastfailed"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps(dict.fromkeys(tests, True)))


@pytest.fixture
def flaky(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with tests of which one passes the second time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for folder in ("integration", "contract"):
        file = pytester.path / "tests" / folder / f"test_{folder}.py"
        file.parent.mkdir(parents=True)
        file.write_text(FLAKY)
    pytester.makeini("[pytest]\n")
    return pytester.path


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        (["tests/integration/test_integration.py::test_late"], 0),
        (["tests/integration/test_integration.py::test_late@spark-0"], 0),
        (["tests/integration/test_integration.py::test_late", "tests/integration/test_integration.py::test_wrong"], 1),
        (["tests/contract/test_contract.py::test_late"], 1),
        (["tests/integration/test_integration.py::test_late", "tests/contract/test_contract.py::test_late"], 1),
        ([f"tests/integration/test_integration.py::test_{n}" for n in range(second_try.MOST + 1)], 1),
        ([], 1),
    ],
)
def test_a_late_test_passes_alone_and_anything_else_stays_failed(
    flaky: Path, pytester: pytest.Pytester, tests: list[str], status: int
) -> None:
    _failed(flaky, *tests)
    for test in tests[:1]:
        pytester.inline_run(test.partition("@")[0])
    assert second_try.main([], flaky, lambda arguments: int(pytester.inline_run(*arguments).ret)) == status


def test_the_tests_run_again_with_the_options_of_the_long_suites() -> None:
    one = f"{Path(__file__).relative_to(Path.cwd())}::test_tests_of_ends_of_processes_get_no_second_try"
    assert second_try.run_pytest(["-q", "--collect-only", "--long", "contracts", one]) == 0


def test_tests_of_ends_of_processes_get_no_second_try(tmp_path: Path) -> None:
    file = tmp_path / "tests/integration/test_ends.py"
    file.parent.mkdir(parents=True)
    file.write_text('import pytest\npytestmark = pytest.mark.long("crashes")\n')
    assert not second_try.may_be_late("tests/integration/test_ends.py::test_end", tmp_path)
