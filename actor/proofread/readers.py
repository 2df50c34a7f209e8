"""The processes that read for one actor: one for each caller at a time, kept between groups, and ended with its job."""

import subprocess
import sys
import tempfile
import threading
import weakref
from multiprocessing.connection import Pipe
from pathlib import Path

from actor.proofread.task import Answer, Task
from shared.errors import RetryableError

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from actor.proofread.process import main; "
    "main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
"""Allocators of threads and of Arrow reserve addresses without using them, and addresses are what is limited."""

_PACKAGES = str(Path(__file__).parents[2])


class ReaderDied(Exception):  # noqa: N818
    """The process of a reader ended in the middle of a task."""


class _Reader:
    """A process; `is_cancelled`: it was ended on purpose."""

    def __init__(self, most_bytes: int) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="lakewright-proofread-", ignore_cleanup_errors=True)
        self._pipe, end = Pipe()
        self.is_cancelled = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM, _PACKAGES, str(end.fileno()), str(most_bytes), self._scratch.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(end.fileno(),),
            # Alone, so that a signal to the actor's group does not end it in the middle of a group.
            start_new_session=True,
            env={**_ENVIRONMENT, "HOME": self._scratch.name},
        )
        end.close()

    def ask(self, task: Task) -> Answer:
        """Return the answer to a task; raises ReaderDied."""
        try:
            self._pipe.send(task)
            answer: Answer = self._pipe.recv()
        except (EOFError, OSError):
            raise ReaderDied(f"it ended with {self._process.wait()}") from None
        return answer

    def is_alive(self) -> bool:
        """Return whether the process can be asked."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process at once, from any thread."""
        self._process.kill()

    def end(self) -> None:
        """End the process, and remove what it left."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()
        self._scratch.cleanup()


class Readers:
    """Processes by the job that they read for."""

    def __init__(self, most_bytes: int) -> None:
        """most_bytes: address space of one process, which includes Python and DuckDB."""
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._idle: list[_Reader] = []
        weakref.finalize(self, _end_all, self._idle)  # Also if it is never closed; at the latest as Python ends.
        self._busy: dict[_Reader, str] = {}
        self._is_closed = False

    def ask(self, task: Task, tag: str, *, alone: bool = False) -> Answer:
        """Return what a process answers; raises ReaderDied, and RetryableError if the job was canceled.

        alone: in a process of its own, which has all of its memory free, and keeps nothing afterwards.
        """
        with self._lock:
            reader = self._start() if alone else self._living()
            self._busy[reader] = tag
        try:
            answer = reader.ask(task)
        except BaseException:
            self._give_back(reader, is_usable=False)
            if reader.is_cancelled:
                raise RetryableError("proofreading was canceled with its job") from None
            raise
        self._give_back(reader, is_usable=not (reader.is_cancelled or alone))
        return answer

    def _living(self) -> _Reader:
        """Return a process that waits for work; those that died meanwhile are cleared away."""
        while self._idle:
            reader = self._idle.pop()
            if reader.is_alive():
                return reader
            reader.end()
        return self._start()

    def _start(self) -> _Reader:
        return _Reader(self._most_bytes)

    def cancel(self, tag: str) -> None:
        """End the processes that read for this job, alone or with others."""
        with self._lock:
            for reader in [one for one, its in self._busy.items() if tag in its.split()]:
                reader.is_cancelled = True
                reader.kill()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._is_closed = True
            for reader in self._busy:
                reader.is_cancelled = True
                reader.kill()
        _end_all(self._idle)

    def _give_back(self, reader: _Reader, *, is_usable: bool) -> None:
        with self._lock:
            del self._busy[reader]
            is_kept = is_usable and not self._is_closed
            if is_kept:
                self._idle.append(reader)
        if not is_kept:
            reader.end()


def _end_all(readers: list[_Reader]) -> None:
    while readers:
        readers.pop().end()
