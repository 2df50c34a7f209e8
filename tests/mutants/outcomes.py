"""A pytest plugin: writes how each test ended and what its longest case took, and refuses to test any other source.

Used by `trial`, which runs pytest in a copy of the source tree, with an installed package of the same name beside it.
"""

import json
import os
import sys
from pathlib import Path

import pytest

FILE_VARIABLE = "LAKEWRIGHT_MUTANTS_OUTCOMES"
PACKAGES = ("shared", "actor", "decider", "services")
_TIMED_OUT = "from pytest-timeout"
"""What pytest-timeout says: a hang, or a slow test on a busy machine."""

_outcomes: dict[str, str] = {}
_took_s: dict[str, float] = {}
_codes: list[int] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the outcome of a test's call; a test whose set-up does not pass has shown nothing."""
    test = report.nodeid.partition("[")[0]
    _took_s[test] = max(_took_s.get(test, 0.0), report.duration)
    outcome = (
        report.outcome if report.when == "call" else "passed" if report.passed else f"{report.when} {report.outcome}"
    )
    if report.failed and _TIMED_OUT in report.longreprtext:
        outcome = "timed out"
    if report.when == "call" or outcome != "passed":
        rank = ("passed", "setup skipped", "skipped", "teardown failed", "setup failed", "timed out", "failed")
        _outcomes[test] = max(_outcomes.get(test, "passed"), outcome, key=rank.index)


def pytest_sessionfinish(exitstatus: int) -> None:
    """Write the outcomes to the file that the environment names."""
    here = Path.cwd().resolve()
    for name in PACKAGES:
        module = sys.modules.get(name)
        origin = None if module is None or module.__file__ is None else Path(module.__file__).resolve()
        if origin is not None and not origin.is_relative_to(here):
            raise pytest.UsageError(f"{name} was imported from {origin}, not from the copy in {here}")
    Path(os.environ[FILE_VARIABLE]).write_text(json.dumps([_outcomes, _took_s]), encoding="utf-8")
    _codes.append(int(exitstatus))


def pytest_unconfigure() -> None:
    """End at once: a mutant may have left a thread that waits for ever, and Python would wait for it."""
    if _codes:
        sys.stdout.flush()
        os._exit(_codes[0])
