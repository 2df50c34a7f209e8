"""Bytes that a table held in its store over time, and would have held under another retention of removed files.

Live bytes are as in the log, rewrites included; a removed file counts until the retention has passed.
Files that no commit names are not known. Pure: time comes from the commits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DAY_S = 86_400
RETENTIONS_S = (0, DAY_S, 7 * DAY_S, 30 * DAY_S)
"""Retentions that a what-if compares beside the one in force: none, a day, Delta's default, a month."""


@dataclass(frozen=True, slots=True)
class StorageStep:
    """Changes of one commit: its time in milliseconds since 1970, the bytes that it added and those it removed.

    files: by how many live files there are more; rewritten_bytes: bytes that it rewrote without changing data.
    """

    at_ms: int
    added_bytes: int
    removed_bytes: int
    files: int = 0
    rewritten_bytes: int = 0


@dataclass(frozen=True, slots=True)
class HeldStorage:
    """Bytes held under one retention: mean over time, most at any moment, and at the last commit."""

    retention_s: int
    mean_bytes: int
    peak_bytes: int
    end_bytes: int


def held_storage(initial_bytes: int, steps: Sequence[StorageStep], retention_s: int) -> HeldStorage:
    """Return the bytes held between the first and the last commit; `initial_bytes` were live before the first.

    A vacuum is assumed to delete each file at the moment at which it may.
    """
    begin_ms = min((step.at_ms for step in steps), default=0)
    end_ms = max((step.at_ms for step in steps), default=0)
    # At one moment the new files are there before the old ones are gone.
    changes = sorted(_changes(steps, retention_s * 1000), key=lambda change: (change[0], -change[1]))
    held = peak = end = initial_bytes
    area, at_ms = 0, begin_ms
    for change_ms, change_bytes in changes:
        if change_ms > end_ms:
            break
        area += held * (change_ms - at_ms)
        at_ms, held = change_ms, held + change_bytes
        peak, end = max(peak, held), held
    mean = end if end_ms == begin_ms else (area + held * (end_ms - at_ms)) // (end_ms - begin_ms)
    return HeldStorage(retention_s, mean, peak, end)


def _changes(steps: Iterable[StorageStep], retention_ms: int) -> Iterable[tuple[int, int]]:
    """Yield times in milliseconds, and by how many bytes the store changes then."""
    for step in steps:
        yield step.at_ms, step.added_bytes
        if step.removed_bytes:
            yield step.at_ms + retention_ms, -step.removed_bytes
