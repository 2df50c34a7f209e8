"""A process that compacts tables again and again until `stop` appears, by the interpreter of the rival's environment.

`python -m tests.jepsen.compacting MODULE NAME FOLDER SEED THREADS TABLE...`; it imports what that environment has.
"""

import importlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.jepsen.rival import PAUSE_S

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
