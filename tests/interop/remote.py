"""Engines that live in an environment of their own, spoken to as if they were here (see `serve` for the other end)."""

import subprocess
from pathlib import Path
from typing import Any, Self

from tests.interop.engines.protocol import Predicate
from tests.interop.operations import EVERYTHING, Append, Operation, Overwrite
from tests.interop.serve import receive, send
from tests.interop.table_case import Case
from tests.interop.values import Rows
from tests.support.time_limits import scaled

_ENDING_S = 30.0  # An engine has nothing to do when it is asked to end.
_ROOT = Path(__file__).resolve().parents[2]


class RemoteError(Exception):
    """What an engine raised in its own process."""


class Remote:
    """A reader and writer by the interpreter of another environment; which of both depends on the engine."""

    def __init__(self, python: Path, engine: str, name: str, offers: frozenset[str] = frozenset()) -> None:
        self.name = name
        self.offers = offers
        self._command = [str(python), "-m", "tests.interop.serve", engine]
        self._process: subprocess.Popen[bytes] | None = None

    def rows(self, location: Path, case: Case) -> Rows:
        rows: Rows = self._ask("rows", case, location)
        return rows

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        return tuple(self._ask("keys", case, location, predicate))

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        return int(self._ask("files_read", case, location, predicate))

    def create(self, case: Case, location: Path) -> None:
        self._ask("create", case, location)

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        self._ask("append", case, location, keys)

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        self._ask("perform", case, operation, location)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the engine's process, which ends by itself when no one speaks to it any more."""
        if self._process is not None:
            self._process.communicate(timeout=scaled(_ENDING_S))
            self._process = None

    def _ask(self, method: str, case: Case, *arguments: Any) -> Any:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, (method, case.name, arguments))
            good, answer = receive(process.stdout)
        except (EOFError, BrokenPipeError):
            process.communicate(timeout=scaled(_ENDING_S))
            code, self._process = process.returncode, None
            raise RemoteError(f"{self.name} died with exit code {code} over {method}") from None
        if not good:
            raise RemoteError(": ".join(answer))
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._process


class RemoteDeltaRs(Remote):
    """Another version of deltalake, which can hold a table as it was read."""

    def hold(self, case: Case, location: Path) -> None:
        self._ask("hold", case, location)


def engines_of(python: Path) -> tuple[tuple[Remote, ...], tuple[Remote, ...], RemoteDeltaRs]:
    """Return the readers and writers of the other environment, and its deltalake as a creator."""
    deltalake = RemoteDeltaRs(python, "deltalake", "deltalake, newest safe", EVERYTHING)
    readers = (
        Remote(python, "dataset", "deltalake, newest safe (Arrow dataset)"),
        Remote(python, "datafusion", "deltalake, newest safe (DataFusion)"),
        Remote(python, "chdb", "chdb"),
        Remote(python, "daft", "daft"),
        Remote(python, "polars-kernel", "polars (delta-kernel-rs)"),
    )
    some = frozenset({Append.name})
    writers = (
        deltalake,
        Remote(python, "chdb-writer", "chdb", some),
        Remote(python, "daft-writer", "daft", some | {Overwrite.name}),
    )
    return readers, writers, deltalake
