"""A small disk for the tables, which a balloon fills: a tmpfs in a mount namespace of our own, gone when we end."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.time_limits import scaled

SIZE_MB = 256
"""Room for the tables of twenty minutes many times over, and filled in a second; more for a longer soak."""
SECONDS_OF_SIZE = 1200.0
INSIDE = "LAKEWRIGHT_SOAK_NAMESPACE"
"""Set in the process that runs inside its own namespace."""
_CHUNKS = (1 << 20, 1 << 16, 1 << 12, 1)


def wrapper_of_namespace() -> tuple[list[str], str]:
    """Return the command that runs another one in a mount namespace of its own, and why that is refused here, if so."""
    wrapper = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        wrapper += ["--user", "--map-root-user"]
    try:
        tried = subprocess.run([*wrapper, "true"], capture_output=True, text=True, timeout=scaled(20), check=False)
    except OSError as problem:
        return wrapper, f"unshare cannot be run: {problem}"
    return wrapper, f"unshare is refused: {tried.stderr.strip()}" if tried.returncode else ""


def enter_namespace() -> str:
    """Replace this process by the same one in a mount namespace of its own; return why not where that is refused."""
    if os.environ.get(INSIDE):
        return ""
    wrapper, refused = wrapper_of_namespace()
    if refused:
        return refused
    os.environ[INSIDE] = "1"
    os.execvp(wrapper[0], [*wrapper, sys.executable, "-m", "tests.soak", *sys.argv[1:]])  # noqa: S606
    raise AssertionError("execvp returns by an exception only")


def mount_small(folder: Path, seconds: float = SECONDS_OF_SIZE) -> str:
    """Mount a small file system for tables of so many seconds at an empty folder; return why not if refused."""
    if not os.environ.get(INSIDE):
        return "not in a namespace of our own"
    size_mb = round(SIZE_MB * max(1.0, seconds / SECONDS_OF_SIZE))
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "soak", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(20), check=False)
    return f"mount is refused: {done.stderr.strip()}" if done.returncode else ""


class Balloon:
    """A file that takes all room that is left."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".balloon"

    def fill(self) -> None:
        """Grow until nothing is left; called again it takes what others have freed."""
        with self._path.open("ab") as file:
            for size in _CHUNKS:
                self._grow(file.fileno(), bytes(size))

    def release(self) -> None:
        """Give the room back."""
        self._path.unlink(missing_ok=True)

    @staticmethod
    def _grow(descriptor: int, chunk: bytes) -> None:
        while True:
            try:
                os.write(descriptor, chunk)
            except OSError:
                return
