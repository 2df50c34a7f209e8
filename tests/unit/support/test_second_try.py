"""A second try is for tests that may be late; a law that broke once is broken."""

import json
from pathlib import Path

import pytest

from tests.support import second_try

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
