"""A test that timed out may have left anything half done: whatever the session shares ends with it, and starts again.

A time limit is a signal, which can come in the middle of a call into the JVM. py4j's connection is out of step from
then on: each later call is given the answer of the one before it. So the JVM is killed at once, and after the test
every shared fixture (Spark, Redis, deciders) is torn down; the next test sets up its own. A JVM that died by itself
is replaced in the same way.
"""

import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

from tests.support.time_limits import scaled

JVM_ENDS_S = 60
"""A killed process is gone at once, but the machine may be busy."""

TIMED_OUT = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note a timeout where it happens: the test may catch its exception."""
    answer = yield
    fail = signal.getsignal(signal.SIGALRM)
    if not callable(fail):  # The limit is kept by a thread, which ends the whole process.
        return answer

    def noted(number: int, frame: FrameType | None) -> None:
        try:
            fail(number, frame)  # Returns if a debugger is attached: then nothing was interrupted.
        except BaseException:
            item.stash[TIMED_OUT] = True
            kill_jvm()
            raise

    signal.signal(signal.SIGALRM, noted)
    return answer


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """After an interrupted test tear down what outlives tests, too: without a next test there is nothing to keep."""
    if item.stash.get(TIMED_OUT, False) and (process := _jvm_process()):
        process.wait(scaled(JVM_ENDS_S))  # Whoever tears down finds it dead, not dying.
    try:
        return (yield)
    finally:
        if item.stash.get(TIMED_OUT, False) or is_jvm_dead():
            item.session._setupstate.teardown_exact(None)


def kill_jvm() -> None:
    """Kill the JVM that PySpark started in this process, if there is one."""
    if process := _jvm_process():
        process.kill()  # Not waited for: this may run inside of another wait for the same process.


def is_jvm_dead() -> bool:
    """True if PySpark started a JVM that has ended since, without having been stopped."""
    process = _jvm_process()
    return process is not None and process.poll() is not None


def _jvm_process() -> Any:
    """PySpark keeps the gateway in a class; a process that never loaded it has no JVM."""
    loaded = sys.modules.get("pyspark.core.context")
    gateway = loaded.SparkContext._gateway if loaded else None
    return gateway and gateway.proc
