"""Tests wait for a condition with a deadline; they never sleep a fixed time and hope."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

from tests.support.time_limits import scaled

T = TypeVar("T")


SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.1
"""What is soon true is soon seen; what takes long is not slowed down by being requested a hundred times a second."""


def comes_true(condition: Callable[[], T], *, seconds: float) -> T | None:
    """Return the first truthy answer of `condition`; None if there is none within `seconds` of a free machine."""
    deadline = time.monotonic() + scaled(seconds)
    pause_s = SHORTEST_PAUSE_S
    while True:
        if answer := condition():
            return answer
        if time.monotonic() >= deadline:
            return None
        time.sleep(pause_s)
        pause_s = min(1.1 * pause_s, LONGEST_PAUSE_S)


def until(what: str, condition: Callable[[], T], *, seconds: float = 20.0) -> T:
    """Return the first truthy answer of `condition`; fail, naming `what`, if there is none in time."""
    answer = comes_true(condition, seconds=seconds)
    assert answer, f"not within {scaled(seconds):.0f} s: {what}"
    return answer


def is_running(pid: int) -> bool:
    """True while the process exists and is not a zombie that no one has reaped yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - gone between the calls
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not os.path.isdir("/proc/self")  # noqa: PTH112 - macOS has no /proc: the signal above decided
