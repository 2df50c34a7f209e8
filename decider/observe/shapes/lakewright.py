"""Our own shape: a table by name or location, perhaps a version, one or a list of them.

Writers without a log may send a whole commit definition; what it says about files is taken as a hint only, because
the state of a table comes from its log alone. Misspelt fields are refused: they would be silently without effect.
"""

import re
from collections.abc import Mapping
from typing import Any

from decider.observe.delta_listing import MAX_VERSION
from decider.observe.locations import canonical_location
from decider.observe.shapes.hint import Hint, Taken, bounded, fields_of, text_of, wrong
from shared.errors import InvalidInput

FIELDS = ("table", "version", "operation", "added", "removed")
"""All fields of the shape; the last three belong to a commit definition."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}(?:\.[A-Za-z0-9_-]{1,128}){0,3}")
"""A name of up to four parts, as catalogs have them."""


def matches(body: object) -> bool:
    """Say whether a body looks like this shape."""
    return isinstance(body, list) or (isinstance(body, dict) and "table" in body)


def take(body: object) -> Taken:
    """Turn one event or a list of them into hints; raises InvalidInput naming the field that is wrong."""
    if isinstance(body, list):
        return Taken.of([_hint(item, f"[{index}].") for index, item in enumerate(bounded(body, "body"))])
    return Taken.of([_hint(body, "")])


def _hint(item: object, at: str) -> Hint:
    event = fields_of(item, at.rstrip(".") or "body")
    unknown = sorted(set(event) - set(FIELDS))
    if unknown:
        field = ascii(unknown[0])[1:-1] or "a field without a name"
        raise wrong(f"{at}{field}", event[unknown[0]], f"only the fields {', '.join(FIELDS)}")
    _check_definition(event, at)
    location, name = _table(text_of(event.get("table"), f"{at}table"), f"{at}table")
    return Hint(location, name, _version(event.get("version"), f"{at}version"))


def _table(text: str, field: str) -> tuple[str | None, str | None]:
    """Return location and name, one of them None: what has a slash or a colon is a place."""
    if "/" not in text and ":" not in text:
        if not _NAME.fullmatch(text):
            raise wrong(field, text, "a name such as db.table, or a URI")
        return None, text
    try:
        return canonical_location(text), None
    except InvalidInput as problem:
        raise InvalidInput(f"{field}: {problem}", field=field, allowed=problem.allowed) from problem


def _version(value: object, field: str) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= MAX_VERSION:
        raise wrong(field, value, "a whole number from 0 on")
    return value


def _check_definition(event: Mapping[str, Any], at: str) -> None:
    if event.get("operation") is not None:
        text_of(event["operation"], f"{at}operation")
    for name in ("added", "removed"):
        for index, item in enumerate(bounded(event.get(name) or [], f"{at}{name}")):
            text_of(fields_of(item, f"{at}{name}[{index}]").get("path"), f"{at}{name}[{index}].path")
