"""The frame that every contender runs in: put so many no-op jobs, or work on them and count in shared memory.

Started with the contender's own Python: `contender.py enqueue URL COUNT` or `contender.py work URL WORKERS FILE SLOT`.
Nothing but the standard library is imported, so that any environment will do. The count is written to a mapped file: a
counter in Redis would cost each contender one more round trip per job.
"""

import itertools
import mmap
import struct
import sys
from collections.abc import Callable

SLOTS = 16


class Done:
    """Counts finished jobs of this process; threads may call it."""

    def __init__(self, path: str, slot: int) -> None:
        with open(path, "r+b") as file:  # noqa: PTH123 - mmap wants the descriptor
            self._memory = mmap.mmap(file.fileno(), SLOTS * 8)
        self._offset = slot * 8
        self._numbers = itertools.count(1)

    def __call__(self) -> None:
        struct.pack_into("<q", self._memory, self._offset, next(self._numbers))


_done: list[Done] = []


def no_op() -> None:
    """Do the job's whole work: count it."""
    _done[0]()


def run(enqueue: Callable[[str, int], None], work: Callable[[str, int], None]) -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["enqueue", url, count]:
            enqueue(url, int(count))
        case ["work", url, workers, path, slot]:
            _done.append(Done(path, int(slot)))
            work(url, int(workers))
        case _:
            sys.exit("usage: contender.py enqueue URL COUNT | work URL WORKERS FILE SLOT")
