"""What a compactor has to be for the laboratory: whoever adds one writes a file in `rivals`, and nothing else.

A process that compacts tables again and again until `stop` appears, by the interpreter of the rival's environment.

`python -m tests.jepsen.rival MODULE NAME FOLDER SEED THREADS TABLE...`; it imports what that environment has.
"""

import importlib
import pkgutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Rivals in environments of their own have none of the packages that this needs.
    from tests.soak.household import Household

RIVALS = Path(__file__).parent / "rivals"

TARGET_BYTES = 256 * 1024
"""Size of the files that every compactor makes: far above what a table here has, so that each of them finds work."""

PAUSE_S = 0.3
"""Mean pause of a compactor that is told when to run, between two runs."""


BY_DELTALAKE, BY_SPARK, BY_PYICEBERG = "deltalake", "Spark", "pyiceberg"
"""Who writes the tables; the last one writes to Iceberg, the others to Delta."""
CATALOG = "LAKEWRIGHT_JEPSEN_CATALOG"
"""Variable with the options of the Iceberg catalog, as JSON."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rival works; `tables`: folders of Delta tables, or names in the catalog."""

    home: "Household"
    tables: Sequence[str]


class AbsentError(Exception):
    """A rival cannot run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A compactor. `writers`: who writes its tables; `spark_conf`: settings of Spark as the writer, NAME=VALUE.

    `is_ours`: whether its harm is ours, so that the command fails. `rewrites`: whether it replaces files at all.
    """

    name: str
    title: str
    writers: str = BY_DELTALAKE
    spark_conf: tuple[str, ...] = ()
    is_ours: bool = False
    rewrites: bool = True

    def version(self) -> str:
        """Return which release runs; raises AbsentError where it cannot."""
        raise NotImplementedError

    def begin(self, place: "Place", seed: int) -> Sequence[str]:
        """Start all workers, wait until they work, and return their names in the household."""
        raise NotImplementedError

    def start_again(self, place: "Place", name: str) -> None:
        """Start a worker again that was killed."""
        raise NotImplementedError

    def is_ready(self, place: "Place", name: str) -> bool:
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

    `module` has `compactor(work_folder)`, which returns what compacts a table of the place. `python`: the interpreter
    of its environment; `threads`: how many compact at once in each of its `processes`.
    """

    module: str
    python: str = sys.executable
    processes: int = 2
    threads: int = 1

    def begin(self, place: "Place", seed: int) -> Sequence[str]:
        from tests.support.waiting import until

        names = [f"compactor_{number}" for number in range(self.processes)]
        for number, name in enumerate(names):
            self._start(place, name, seed + number)
        until(
            f"{self.title} is ready",
            lambda: all(place.home.raise_if_ended(name) or self.is_ready(place, name) for name in names),
            seconds=120,
        )
        return names

    def start_again(self, place: "Place", name: str) -> None:
        self._start(place, name, len(place.home.stack.processes))

    def is_ready(self, place: "Place", name: str) -> bool:
        return (place.home.folder / f"{name}.ready").exists()

    def failures(self, log: str) -> Counter[str]:
        from tests.jepsen.rival import FAILED

        return Counter(line.removeprefix(FAILED) for line in log.splitlines() if line.startswith(FAILED))

    def _start(self, place: "Place", name: str, seed: int) -> None:
        home = place.home
        (home.folder / f"{name}.ready").unlink(missing_ok=True)
        arguments = ["-m", "tests.jepsen.rival", self.module, name, str(home.folder), str(seed)]
        arguments += [str(self.threads), *place.tables]
        home.running[name] = home.stack.start(name, arguments, python=self.python)


FAILED = "failed: "
"""Begins a line of the log for each call that failed."""
ERROR_CHARS = 160


def compact(one: Callable[[str], object], tables: Sequence[str], random: Random, stop: Path) -> None:
    """Compact one table after the other, in an order of chance."""
    while not stop.exists():
        time.sleep(random.uniform(0, 2) * PAUSE_S)
        try:
            one(random.choice(tables))
        except Exception as problem:  # noqa: BLE001 - a lost race is no failure; what it did is seen in the table
            text = " ".join(f"{type(problem).__name__}: {problem}".split())
            print(f"{FAILED}{text[:ERROR_CHARS]}", flush=True)


def main(module: str, name: str, folder: Path, seed: int, threads: int, tables: Sequence[str]) -> None:
    one = importlib.import_module(module).compactor(folder / name)
    with suppress(Exception):  # What a JVM loads and compiles for its first call belongs to its start.
        one(tables[0])
    (folder / f"{name}.ready").touch()
    working = [
        threading.Thread(target=compact, args=(one, tables, Random(seed * 100 + number), folder / "stop"))
        for number in range(threads)
    ]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()


if __name__ == "__main__":
    module, name, folder, seed, threads, *tables = sys.argv[1:]
    main(module, name, Path(folder), int(seed), int(threads), tables)
