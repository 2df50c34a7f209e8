"""What a compactor has to be for the laboratory: whoever adds one writes a file in `rivals`, and nothing else."""

import importlib
import pkgutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Rivals in environments of their own have none of the packages that this needs.
    from tests.soak.household import Household

RIVALS = Path(__file__).parent / "rivals"

TARGET_BYTES = 256 * 1024
"""Size of the files that every compactor makes: far above what a table here has, so that each of them finds work."""

PAUSE_S = 0.3
"""Mean pause of a compactor that is told when to run, between two runs."""


class AbsentError(Exception):
    """A rival cannot run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A compactor. `by_spark`: Spark writes the table, not deltalake; `spark_conf`: its settings for that, NAME=VALUE.

    `is_ours`: whether its harm is ours, so that the command fails.
    """

    name: str
    title: str
    by_spark: bool = False
    spark_conf: tuple[str, ...] = ()
    is_ours: bool = False

    def version(self) -> str:
        """Return which release runs; raises AbsentError where it cannot."""
        raise NotImplementedError

    def begin(self, home: "Household", seed: int) -> Sequence[str]:
        """Start all workers beside the tables, wait until they work, and return their names in the household."""
        raise NotImplementedError

    def start_again(self, home: "Household", name: str) -> None:
        """Start a worker again that was killed."""
        raise NotImplementedError

    def is_ready(self, home: "Household", name: str) -> bool:
        """Whether a worker compacts, which a JVM does a while after its start."""
        raise NotImplementedError

    def services(self) -> Sequence[str]:
        """Return the names of what runs besides the workers, and counts for its cost."""
        return ()

    def failures(self, log: str) -> Counter[str]:
        """Return the kinds of failures of which a worker's log tells, and how often each came."""
        raise NotImplementedError


def known() -> list[Rival]:
    """Return the rivals of all files, ours first."""
    modules = [
        importlib.import_module(f"tests.jepsen.rivals.{one.name}") for one in pkgutil.iter_modules([str(RIVALS)])
    ]
    found = [rival for module in modules for rival in module.RIVALS]
    return sorted(found, key=lambda rival: (not rival.is_ours, rival.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Looping(Rival):
    """A compactor that is called again and again, in processes of its own.

    `module` has `compactor(work_folder)`, which returns what compacts the table in a folder. `python`: the interpreter
    of its environment; `threads`: how many compact at once in each of its `processes`.
    """

    module: str
    python: str = sys.executable
    processes: int = 2
    threads: int = 1

    def begin(self, home: "Household", seed: int) -> Sequence[str]:
        from tests.support.waiting import until

        names = [f"compactor_{number}" for number in range(self.processes)]
        for number, name in enumerate(names):
            self._start(home, name, seed + number)
        until(f"{self.title} is ready", lambda: all(self.is_ready(home, name) for name in names), seconds=120)
        return names

    def start_again(self, home: "Household", name: str) -> None:
        self._start(home, name, len(home.stack.processes))

    def is_ready(self, home: "Household", name: str) -> bool:
        home.raise_if_ended(name)
        return (home.folder / f"{name}.ready").exists()

    def failures(self, log: str) -> Counter[str]:
        from tests.jepsen.compacting import FAILED

        return Counter(line.removeprefix(FAILED) for line in log.splitlines() if line.startswith(FAILED))

    def _start(self, home: "Household", name: str, seed: int) -> None:
        (home.folder / f"{name}.ready").unlink(missing_ok=True)
        tables = [str(home.stack.tables / spec.place) for spec in home.specs]
        arguments = ["-m", "tests.jepsen.compacting", self.module, name, str(home.folder), str(seed)]
        arguments += [str(self.threads), *tables]
        home.running[name] = home.stack.start(name, arguments, python=self.python)
