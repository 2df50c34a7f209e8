"""Writes the groups of a rewrite, several at once: after a failure, or when asked to stop, no further one is begun."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

G = TypeVar("G")
W = TypeVar("W")


def attempt_all(
    groups: Sequence[G],
    write: Callable[[G], W],
    *,
    threads: int,
    should_stop: Callable[[], bool],
    spares_others: Callable[[Exception], bool] = lambda _failure: False,
) -> list[W | Exception | None]:
    """Return for each group what was written, what it failed with, or None if it was not begun.

    threads: groups that are written at once. spares_others: whether a failure says nothing of other groups.
    """
    failed = threading.Event()

    def attempt(group: G) -> W | Exception | None:
        if failed.is_set() or should_stop():
            return None
        try:
            return write(group)
        except Exception as failure:  # noqa: BLE001 - returned, and raised or explained by the caller
            if not spares_others(failure):
                failed.set()
            return failure

    threads = min(threads, len(groups))
    if threads <= 1:
        return [attempt(group) for group in groups]
    with ThreadPoolExecutor(threads, thread_name_prefix="lakewright-write") as pool:
        return list(pool.map(attempt, groups))
