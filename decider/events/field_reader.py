"""Reads event fields with their path in the body, so that every error names that path.

An event may be wrapped in others, such as an S3 notification in an SNS message in an SQS record. The path grows with
each wrapping, and so does the depth, which is bounded.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from decider.events.table_hint import MAX_BATCH, Outcome, too_many
from shared.errors import InvalidInput

MAX_WRAPPINGS = 4
"""Wrappings of one event: CloudEvents around a queue's record around a topic's message around a notification."""

SHOWN_CHARS = 60
"""Characters of a wrong value that an error quotes."""

SHOWN_FIELDS = 12
"""Names of fields that an error quotes of an object that is not known."""

Fields = Mapping[str, Any]
"""A JSON object."""

NO_BUCKETS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ReadContext:
    """Path of a value in the body, URI prefixes of buckets, and the parser of wrapped events."""

    parse_wrapped: Callable[[object, "ReadContext"], Iterable[Outcome]]
    buckets: Mapping[str, str]
    at: str = ""
    depth: int = 0

    def place(self, field: str) -> str:
        """Return the position of a field of this value in the body."""
        return f"{self.at}.{field}" if self.at else field

    def within(self, field: str) -> "ReadContext":
        """Return how a part of this value is read."""
        return replace(self, at=self.place(field))

    def item(self, index: int) -> "ReadContext":
        """Return how an item of this list is read."""
        return replace(self, at=f"{self.at}[{index}]")

    def unwrap(self, value: object, field: str) -> Iterable[Outcome]:
        """Read an event that is wrapped in this one; raises InvalidInput if too many wrappings are around it."""
        inner = replace(self.within(field), depth=self.depth + 1)
        if inner.depth > MAX_WRAPPINGS:
            raise wrong(inner.at, value, f"at most {MAX_WRAPPINGS} events wrapped in each other")
        return self.parse_wrapped(value, inner)

    def fields(self, value: object, field: str = "") -> Fields:
        """Return a JSON object, or raise InvalidInput naming its place."""
        if not isinstance(value, dict):
            raise wrong(self._named(field), value, "an object")
        return value

    def text(self, event: Fields, field: str) -> str:
        """Return a field's text that is not empty, or raise InvalidInput naming its place."""
        value = event.get(field)
        if not isinstance(value, str) or not value:
            raise wrong(self.place(field), value, "a text")
        return value

    def one_of(self, event: Fields, field: str, known: Iterable[str]) -> str:
        """Return a field's text that is one of the known words, or raise InvalidInput naming its place."""
        value = self.text(event, field)
        words = tuple(known)
        if value not in words:
            raise wrong(self.place(field), value, "one of " + ", ".join(words))
        return value

    def optional_text(self, event: Fields, field: str) -> str | None:
        """Return a field's text, None where it is missing or null; raises InvalidInput naming its place."""
        return None if event.get(field) is None else self.text(event, field)

    def objects(self, value: object, field: str = "") -> list[Any]:
        """Return a list of at most `MAX_BATCH` values, or raise InvalidInput naming its place."""
        if not isinstance(value, list):
            raise wrong(self._named(field), value, "a list")
        if len(value) > MAX_BATCH:
            raise too_many(self._named(field), f"{len(value)} events")
        return value

    def json(self, text: str | bytes, field: str) -> object:
        """Return the JSON value in a text, or raise InvalidInput naming its position."""
        return parsed(text, self._named(field))

    def base64(self, event: Fields, field: str) -> bytes:
        """Return the base64-encoded bytes of a field, or raise InvalidInput naming its position."""
        text = self.text(event, field)
        try:
            return b64decode(text, validate=True)
        except (binascii.Error, ValueError) as problem:
            raise wrong(self.place(field), text, "base64") from problem

    def _named(self, field: str) -> str:
        return (self.place(field) if field else self.at) or "body"


def wrong(field: str, found: object, expected: str) -> InvalidInput:
    """Return the error for a field that holds something else than it must."""
    return InvalidInput(f"{field} is {_shown(found)}, expected {expected}", field=field, allowed=expected)


def parsed(text: str | bytes, field: str) -> object:
    """Return the JSON value of a text; raises InvalidInput naming the field if it is not UTF-8 or not JSON."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        raise InvalidInput(
            f"{'the body' if field == 'body' else field} is not JSON in UTF-8: {problem}", field=field, allowed="JSON"
        ) from problem
    return value


def _shown(found: object) -> str:
    """Return a value as an error quotes it; what is nested is only counted, however deep it goes."""
    match found:
        case None:
            return "nothing"
        case dict():
            names = ", ".join(ascii(name)[1:-1][:SHOWN_CHARS] for name in sorted(found)[:SHOWN_FIELDS])
            return f"an object with the fields {names}" if names else "an object without fields"
        case list():
            return f"a list of {len(found)}"
        case str():
            text = ascii(found[: SHOWN_CHARS + 1])
        case _:
            text = ascii(found)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
