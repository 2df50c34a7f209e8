"""Programs that use a core each and are no children of this process: the others, to whom background work gives way."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_S = 300
"""A burner whose test was killed ends by itself."""


@contextmanager
def burners(count: int) -> Iterator[tuple[int, ...]]:
    """Start programs, and end them; yields their process ids."""
    burn = f"import signal; signal.alarm({LONGEST_S})\nwhile True: pass"
    # The shell ends at once, so that the program it started is another's child.
    command = ["sh", "-c", '"$0" -c "$1" >/dev/null 2>&1 & echo $!', sys.executable, burn]
    started: list[int] = []
    try:
        started.extend(
            int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(count)
        )
        yield tuple(started)
    finally:
        for one in started:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


def ticks_of(process: int) -> int:
    """Return the ticks that a process has used; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
