"""Walks through a table's files: generators that yield what is to be read next, and are sent the files' bytes.

So decider and actor walk by the same code, and it does not know how either reads.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

READ_AT_ONCE = 16
"""Files of one read: enough to hide the latency of a store."""


@dataclass(frozen=True, slots=True)
class Read:
    """Files to read; `length`: only so many bytes of each, 0 for all. A missing file is None."""

    paths: tuple[str, ...]
    length: int = 0


Bodies = Sequence[bytes | None]
Reading = Generator[Read, Bodies, None]


def chunks(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """Yield items in groups of `READ_AT_ONCE`."""
    found = tuple(items)
    for start in range(0, len(found), READ_AT_ONCE):
        yield found[start : start + READ_AT_ONCE]
