"""A writer's journal: what it was about to do, on disk before it does it, and what it was answered.

One line of JSON each, written in one piece and synced. So whatever kills the writer, every commit that carries one of
its nonces has its record here.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.operations import Operation


class Journal:
    """The file of one writer."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def intend(self, operation: Operation) -> None:
        """Record an operation before it is tried."""
        self._write({"event": "intent", "operation": operation.encode()})

    def committed(self, nonce: str, version: int) -> None:
        """Record that the writer was told that its operation was accepted as `version`, or found nothing to do."""
        self._write({"event": "committed", "nonce": nonce, "version": version})

    def refused(self, nonce: str, error: str) -> None:
        """Record that the writer was told that its operation failed."""
        self._write({"event": "refused", "nonce": nonce, "error": error})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record).encode() + b"\n")
        os.fsync(self._file.fileno())


@dataclass(frozen=True, slots=True)
class Answer:
    """What a writer was told: `version` None means refused, with the `error`."""

    version: int | None
    error: str = ""


@dataclass(slots=True)
class Journals:
    """All writers' journals in a folder, read as they grow."""

    folder: Path
    operations: dict[str, Operation] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    _read: dict[Path, int] = field(default_factory=dict)

    def refresh(self) -> None:
        """Read what was written since the last call."""
        for path in sorted(self.folder.glob("*.journal")):
            for record in self._new_records(path):
                if record["event"] == "intent":
                    operation = Operation.decode(record["operation"])
                    self.operations[operation.nonce] = operation
                else:
                    self.answers[record["nonce"]] = Answer(record.get("version"), record.get("error", ""))

    def _new_records(self, path: Path) -> Iterator[dict[str, Any]]:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    return  # Still on its way, or the last words of a writer that was killed.
                self._read[path] = self._read.get(path, 0) + len(line)
                yield json.loads(line)
