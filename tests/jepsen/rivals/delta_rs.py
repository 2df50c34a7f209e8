"""`optimize.compact` of deltalake: the release of this environment, and the newest, in an environment of its own."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.jepsen.rival import TARGET_BYTES, AbsentError, Looping

NEWEST = Path(__file__).resolve().parents[3] / ".cache" / "jepsen" / "bin" / "python"
"""Interpreter of the environment that tests/jepsen/engines.lock describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRs(Looping):
    """Two processes that compact."""

    module: str = __name__

    def version(self) -> str:
        return metadata.version("deltalake")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestDeltaRs(DeltaRs):
    """The same with the interpreter of another environment."""

    python: str = str(NEWEST)

    def version(self) -> str:
        text = "from importlib import metadata; print(metadata.version('deltalake'))"
        try:
            return subprocess.run([self.python, "-c", text], capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            raise AbsentError("its environment is not there: `make jepsen` installs it") from None


RIVALS = (
    DeltaRs("deltalake", "deltalake `optimize.compact`"),
    NewestDeltaRs("deltalake-newest", "deltalake `optimize.compact`, newest"),
)


def compactor(_: Path) -> Callable[[str], Any]:
    """Return what compacts a table."""
    from deltalake import DeltaTable

    return lambda table: DeltaTable(table).optimize.compact(target_size=TARGET_BYTES)
