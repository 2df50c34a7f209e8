"""In CI a test that is skipped without being on the list fails: green must not mean that no test ran.

A laptop may lack what a test needs. CI has it all but for what `.ci/allowed-skips.toml` names, so whatever else is
skipped there has lost its server, its jars or its binary.
"""

import os
import tomllib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

LIST = ".ci/allowed-skips.toml"


@dataclass(frozen=True, slots=True)
class AllowedSkip:
    """One entry: shell patterns of the test's id and of the reason."""

    tests: str
    reason: str

    def allows(self, test: str, reason: str) -> bool:
        return fnmatchcase(test, self.tests) and fnmatchcase(reason, self.reason)


def read_list(text: str) -> tuple[AllowedSkip, ...]:
    """Return the entries; each must say why."""
    entries = tomllib.loads(text).get("skip", [])
    for entry in entries:
        if set(entry) != {"tests", "reason", "why"} or not all(entry.values()):
            raise pytest.UsageError(f"{LIST}: an entry has `tests`, `reason` and `why`, none of them empty: {entry}")
    return tuple(AllowedSkip(entry["tests"], entry["reason"]) for entry in entries)


class SkipsInCI:
    """Turns reports of skips that are not on the list into failures."""

    def __init__(self, allowed: Sequence[AllowedSkip]) -> None:
        self._allowed = tuple(allowed)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Judge one phase of a test; an expected failure is no skip, although it is reported as one."""
        report = yield
        if not hasattr(report, "wasxfail"):
            self._judge(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Judge a whole module: `importorskip` at its top."""
        report = yield
        self._judge(report)
        return report

    def _judge(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or not isinstance(report.longrepr, tuple):
            return
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not any(one.allows(report.nodeid, reason) for one in self._allowed):
            report.outcome = "failed"
            report.longrepr = (
                f"{report.nodeid} was skipped in CI: {reason}\n"
                f"Make what it needs available, or list the skip, with the reason, in {LIST}."
            )


def pytest_configure(config: pytest.Config) -> None:
    """Judge skips in CI only."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        config.pluginmanager.register(SkipsInCI(read_list((config.rootpath / LIST).read_text("utf-8"))))
