"""A process of the demonstration ends when it is asked to, and is killed where it does not."""

import signal
import subprocess
import sys

from services.demo.processes import end_process
from tests.support.time_limits import scaled

PROGRAM = "import signal, sys, time; signal.signal(signal.SIGTERM, {}); print('up', flush=True); time.sleep(600)"
WILLING, DEAF = PROGRAM.format("lambda *_: sys.exit(3)"), PROGRAM.format("signal.SIG_IGN")


def started(code: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"up\n"
    return process


def test_a_process_ends_by_itself_when_it_is_asked() -> None:
    process = started(WILLING)
    end_process(process, scaled(60))
    assert process.returncode == 3


def test_a_process_that_does_not_end_in_time_is_killed() -> None:
    process = started(DEAF)
    end_process(process, 0.2)
    assert process.returncode == -signal.SIGKILL
