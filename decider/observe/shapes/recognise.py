"""A body is recognised by what it holds, or read as the shape that its sender promised; anything else is refused.

To add a source, write its module and its line in the table below. The order matters: the first that matches wins,
so a shape that contains another stands before it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from decider.observe.shapes import lakewright, minio, s3
from decider.observe.shapes.hint import MAX_BODY_BYTES, Taken, wrong
from shared.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of event: the source's name in the API, how it looks, and how it is read."""

    source: str
    looks: str
    matches: Callable[[object], bool]
    take: Callable[[object, Mapping[str, str]], Taken]


SHAPES = (
    Shape("minio", '{"EventName", "Key", "Records": […]}', minio.matches, minio.take),
    Shape("s3", '{"Records": [{"eventName", "s3": {"bucket", "object"}}]}', s3.matches, s3.take),
    Shape(
        "lakewright",
        '{"table": "db.t" or a URI, "version"?} or a list of them',
        lakewright.matches,
        lambda body, _: lakewright.take(body),
    ),
)
"""Every shape that is understood."""


def recognise(body: bytes, *, source: str | None = None, bucket_locations: Mapping[str, str] = s3.NO_BUCKETS) -> Taken:
    """Turn a request's body into hints; `source` demands a shape by name, None recognises it.

    Raises InvalidInput, and nothing else, for whatever is not understood: it says what was found and what would do.
    """
    return recognise_value(parsed(body), source=source, bucket_locations=bucket_locations)


def recognise_value(
    body: object, *, source: str | None = None, bucket_locations: Mapping[str, str] = s3.NO_BUCKETS
) -> Taken:
    """Turn decoded JSON into hints, as `recognise` does."""
    if source is not None:
        demanded = next((shape for shape in SHAPES if shape.source == source), None)
        if demanded is None:
            raise wrong("source", source, "one of " + ", ".join(shape.source for shape in SHAPES))
        return demanded.take(body, bucket_locations)
    for shape in SHAPES:
        if shape.matches(body):
            return shape.take(body, bucket_locations)
    found = f"an object with the fields {sorted(body)}" if isinstance(body, dict) else body
    raise wrong("body", found, "one of " + "; ".join(f"{shape.source}: {shape.looks}" for shape in SHAPES))


def parsed(body: bytes) -> object:
    """Return the JSON value of a body; raises InvalidInput if it is too long, not UTF-8 or not JSON."""
    if len(body) > MAX_BODY_BYTES:
        raise InvalidInput(
            f"the body has {len(body)} bytes, expected at most {MAX_BODY_BYTES}",
            field="body",
            allowed=f"{MAX_BODY_BYTES} bytes",
        )
    try:
        value: object = json.loads(body.decode())
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"the body is not JSON in UTF-8: {problem}", field="body", allowed="JSON") from problem
    return value
