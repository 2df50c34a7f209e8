"""Result of one check: what was found, where, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

ANSWER_TIMEOUT_S = 3.0
"""Longest wait for a server's answer; one that takes longer is not usable either."""


class FindingLevel(StrEnum):
    """How a finding is meant: `warn` works but should be changed, `fail` does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result; `action` is empty if nothing is to be done."""

    check: str
    status: FindingLevel
    what: str
    where: str = ""
    action: str = ""


def failed(findings: Iterable[Finding]) -> bool:
    """Return whether one of them is a failure."""
    return any(finding.status is FindingLevel.FAIL for finding in findings)
