"""A worker each of whose clocks is an hour behind; they are set back before any module could take hold of them.

What the worker reads must be among these clocks (`test_clocks.py` looks), or the fault would prove nothing.
"""

import sys
import time
from collections.abc import Callable
from importlib import import_module

BEHIND_S = 3_600
CLOCKS = {"time": 1, "time_ns": 1_000_000_000, "monotonic": 1, "monotonic_ns": 1_000_000_000}
"""Each clock of the time module that is set back, and its units in a second."""


def set_back() -> None:
    """Replace the clocks of this process."""
    for name, unit in CLOCKS.items():
        setattr(time, name, _behind(getattr(time, name), BEHIND_S * unit))


def _behind(true: Callable[[], float], by: int) -> Callable[[], float]:
    return lambda: true() - by


if __name__ == "__main__":
    set_back()
    import_module("tests.chaos.worker").main(sys.argv[1:])
