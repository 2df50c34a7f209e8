"""No child outlives its supervisor: a process between the two notices the supervisor's end, even by kill -9.

`python parent_watchdog.py COMMAND...` runs the command in this process's group. Standard input is a pipe
whose other end the supervisor holds: when it closes, the whole group is killed. That works wherever there are pipes,
macOS included; Linux's parent-death signal would not reach a JVM that a child started. SIGTERM and SIGINT are passed
on as SIGTERM to the command alone, so that it ends its own helpers in its own order.

Standard library only: three of these run for each standalone.
"""

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence

_USAGE = 64  # EX_USAGE of sysexits.h
_SIGNALLED = 128  # A shell's exit code of a command that a signal ended: 128 + its number.


def main(command: Sequence[str]) -> int:
    """Run the command until it ends or the supervisor does; the command's exit code, 128 + n for signal n."""
    if not command:
        print("usage: parent_watchdog.py COMMAND...", file=sys.stderr)
        return _USAGE
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, _only_wake)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error}", file=sys.stderr)
        return 127
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while child.poll() is None:
            for key, _ in selector.select():
                if key.fd == wake_read:
                    _pass_on(child, os.read(wake_read, 512))
                elif not os.read(0, 512):
                    os.killpg(0, signal.SIGKILL)
    return child.returncode if child.returncode >= 0 else _SIGNALLED - child.returncode


def _only_wake(number: int, frame: object) -> None:
    """Signals are handled in the loop, where they arrive as bytes through the wake-up pipe."""


def _pass_on(child: "subprocess.Popen[bytes]", signals: bytes) -> None:
    if signal.SIGTERM in signals or signal.SIGINT in signals:
        child.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
