"""Tests wait for a condition with a deadline; they never sleep a fixed time and hope."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(what: str, condition: Callable[[], T], *, seconds: float = 20.0) -> T:
    """Return the first truthy answer of `condition`; fail, naming `what`, if there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        if answer := condition():
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """True while the process exists and is not a zombie that nobody has reaped yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - gone between the calls
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not os.path.isdir("/proc/self")  # noqa: PTH112 - macOS has no /proc: the signal above decided
