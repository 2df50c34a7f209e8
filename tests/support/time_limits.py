"""Time limits of tests follow the machine: one factor, measured once for a run, scales them all.

A limit says how long something takes at most on two free cores; it is there so that a hang ends, not to measure. On a
busy or slow machine the same work takes longer, so each limit passes through `scaled`, and pytest's own through
`scaled_timeouts`. The process that starts the run measures and hands the factor down in the environment, to the
workers of pytest-xdist, too; who sets the variable chooses the factor (1: limits as written).
"""

import os
import time

VARIABLE = "LAKEWRIGHT_TEST_TIME_FACTOR"

NOMINAL_SPIN_S = 0.20
"""What the spin takes on one free core of the machine that the limits were chosen on."""

MOST = 16.0
"""More than this is no machine to run tests on: a hang of five minutes would last longer than an hour and a quarter."""

_SPINS = 12_000_000


def scaled(seconds: float) -> float:
    """Return a limit for this machine, in seconds, from one for two free cores."""
    return seconds * factor()


def factor(processes: int = 1) -> float:
    """Return the factor of this run, at least 1; measure it unless that was done. `processes`: that run its tests."""
    if VARIABLE not in os.environ:
        load = max(load_per_core(), processes / (os.cpu_count() or 1))
        os.environ[VARIABLE] = f"{factor_of(spin_s(), load):.2f}"
    return float(os.environ[VARIABLE])


def factor_of(measured_spin_s: float, load: float) -> float:
    """Return how much slower than nominal this machine is: what it does now, or did in the last minute, is worse."""
    return min(MOST, max(1.0, measured_spin_s / NOMINAL_SPIN_S, load))


def spin_s() -> float:
    """Return the seconds that a fixed piece of work takes, waiting for a core included."""
    started = time.perf_counter()
    for _ in range(_SPINS):
        pass
    return time.perf_counter() - started


def load_per_core() -> float:
    """Return how many processes wanted each core, on average over the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)
