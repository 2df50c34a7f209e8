"""A hint says that a table may have changed, and nothing else; a shape that is not known is refused in words.

Whoever sends an event must learn at once whether it was understood. So a body of the wrong form is an error that
names the field, while a good event that concerns nobody here is counted with the reason.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shared.errors import InvalidInput

MAX_BATCH = 10_000
"""Events in one body; a bucket sends far fewer, and every one of them costs a look-up."""

MAX_BODY_BYTES = 1024 * 1024
"""Bytes of one body: 10,000 notifications are longer, but no sender known makes batches that large."""

SHOWN_CHARS = 60
"""Characters of a wrong value that an error quotes."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Where to look: a canonical location or a registered name, and the version that is said to exist, if any."""

    location: str | None = None
    name: str | None = None
    version: int | None = None


class Ignored(StrEnum):
    """Why an event that was understood led to no hint."""

    NOT_A_COMMIT = "not_a_commit"
    UNKNOWN_EVENT = "unknown_event"
    TEST_EVENT = "test_event"
    BAD_KEY = "bad_key"


@dataclass(frozen=True, slots=True)
class Taken:
    """The hints of one body, and how many of its events were ignored for which reason."""

    hints: tuple[Hint, ...] = ()
    ignored: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Hint | Ignored]) -> "Taken":
        """Sort outcomes of single events into hints, each once and in order, and counts."""
        hints: dict[Hint, None] = {}
        ignored: Counter[str] = Counter()
        for outcome in outcomes:
            if isinstance(outcome, Ignored):
                ignored[outcome.value] += 1
            else:
                hints[outcome] = None
        return cls(tuple(hints), tuple(sorted(ignored.items())))


def wrong(field: str, found: object, expected: str) -> InvalidInput:
    """Return the error for a field that holds something else than it must."""
    text = "nothing" if found is None else ascii(found)
    shortened = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    return InvalidInput(f"{field} is {shortened}, expected {expected}", field=field, allowed=expected)


def fields_of(value: object, field: str) -> Mapping[str, Any]:
    """Return a JSON object, or raise InvalidInput naming the field."""
    if not isinstance(value, dict):
        raise wrong(field, value, "an object")
    return value


def text_of(value: object, field: str) -> str:
    """Return a text that is not empty, or raise InvalidInput naming the field."""
    if not isinstance(value, str) or not value:
        raise wrong(field, value, "a text")
    return value


def bounded(value: object, field: str) -> list[Any]:
    """Return a list of at most `MAX_BATCH` events, or raise InvalidInput naming the field."""
    if not isinstance(value, list):
        raise wrong(field, value, "a list")
    if len(value) > MAX_BATCH:
        raise InvalidInput(
            f"{field} has {len(value)} events, expected at most {MAX_BATCH}", field=field, allowed=f"{MAX_BATCH} events"
        )
    return value
