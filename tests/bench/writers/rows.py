"""A writer that changes one row after the other while files are rewritten, and the rows that have to be there then."""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from actor.rewrite.ports import Failures
from shared.errors import Conflict

TEXT = "concat_ws('', transform(sequence(1, 16), k -> sha2(concat(id, ':', k), 256)))"
"""1 KiB for each id that hardly compresses, as Spark computes it."""

_LOOK_EVERY_S = 0.02

STEPS_AFTERWARDS = 3
"""Statements that follow when all files are rewritten: one of each kind."""

Rows = dict[int, tuple[int, str]]
"""Number of the last change of each id, and the digest of its text."""


def digest(text: str) -> str:
    """Return what is kept of a text."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def new_rows(ids: range) -> Rows:
    """Return the rows of `TEXT`, made in Python."""
    texts = ("".join(hashlib.sha256(f"{one}:{k}".encode()).hexdigest() for k in range(1, 17)) for one in ids)
    return {one: (0, digest(text)) for one, text in zip(ids, texts, strict=True)}


def differences(expected: Rows, found: pa.Table) -> int:
    """Return how many rows of the columns id, v and the digest of t a reader lost, doubled or changed."""
    seen = Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
    wanted = Counter((one, *row) for one, row in expected.items())
    return (seen - wanted).total() + (wanted - seen).total()


MERGES = 2
"""The turn of a MERGE among three statements."""


def change(turn: int, one: int, rows: Rows, number: int) -> tuple[str, Callable[[], object]]:
    """Return a statement on one id, in turn a DELETE, an UPDATE and a MERGE, and what it does to the rows."""
    if turn % 3 == 0:
        return f"DELETE FROM {{t}} WHERE id = {one}", lambda: rows.pop(one, None)
    if turn % 3 == 1:
        new = {one: (number, rows[one][1])} if one in rows else {}
        return f"UPDATE {{t}} SET v = {number} WHERE id = {one}", lambda: rows.update(new)
    merge = (
        f"MERGE INTO {{t}} t USING (SELECT {one}L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {number} "
        f"WHEN NOT MATCHED THEN INSERT (id, v, t) VALUES (s.id, {number}, '')"
    )
    text = rows[one][1] if one in rows else digest("")
    return merge, lambda: rows.update({one: (number, text)})


class Writer(threading.Thread):
    """Takes so many steps, one every `every_s` seconds; one that conflicts is counted as aborted, and not repeated.

    between: steps from one rewrite to the next, at least.
    """

    def __init__(
        self, step: Callable[[int], Any], failures: Failures, steps: int, every_s: float, between: int = 0
    ) -> None:
        super().__init__(name="writer", daemon=True)
        self._step, self._failures, self._steps = step, failures, steps
        self._every_s, self._between = every_s, between
        self._has_begun = threading.Event()
        self.done = self.aborted = 0
        self.error: Exception | None = None

    def run(self) -> None:
        while self.done < self._steps and self.error is None:
            began = time.monotonic()
            try:
                self._step(self.done)
            except Exception as error:  # noqa: BLE001 - raised in the main thread unless it is a conflict
                self.aborted += is_conflict(self._failures, error)
                self.error = None if is_conflict(self._failures, error) else error
            self.done += 1
            self._has_begun.set()
            time.sleep(max(0.0, self._every_s - (time.monotonic() - began)))

    def begin(self) -> None:
        """Start, and wait until the first step is made."""
        self.start()
        self._has_begun.wait()

    def wait_for_rewrite(self, number: int) -> None:
        """Wait until it is time for a rewrite, or the writer has ended."""
        while self.done < number * self._between and self.is_alive():
            time.sleep(_LOOK_EVERY_S)

    def end(self) -> None:
        """Wait for a few more steps; raises what a step failed with other than a conflict."""
        self._steps = min(self._steps, self.done + STEPS_AFTERWARDS)
        self.join()
        if self.error is not None:
            raise self.error


def aborts_until_done(failures: Failures, work: Callable[[], object]) -> int:
    """Do something, again where it was aborted for what others had committed; return how often that was."""
    aborted = 0
    while True:
        try:
            work()
        except Exception as error:
            if not is_conflict(failures, error):
                raise
            aborted += 1
        else:
            return aborted


def is_conflict(failures: Failures, error: Exception) -> bool:
    """Return whether a statement or command was aborted for what others had committed."""
    return isinstance(failures.refused(error, "the table"), Conflict)
