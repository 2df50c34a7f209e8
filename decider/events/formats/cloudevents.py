"""CloudEvents 1.0 wrap any other event: in one JSON object, in a list of them, or with their attributes in headers.

Names of attributes with hyphens, which the specification forbids and some senders use, are accepted. Source:
CloudEvents 1.0, "JSON Event Format" and "HTTP Protocol Binding".
"""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.formats import azure, gcs
from decider.events.table_hint import IgnoredReason, Outcome

HEADER = "ce-"
"""Prefix of an attribute's name in a header in binary mode."""


def matches(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "specversion" in event


def parse(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn an event into the hints that its data hold; raises InvalidInput naming the field."""
    version = context.text(event, "specversion")
    if not version.startswith("1."):
        raise wrong(context.place("specversion"), version, "1.0")
    context.text(event, "id")
    context.text(event, "source")
    kind = context.text(event, "type")
    data, field = _data(event, context)
    if kind.startswith(azure.STORAGE):
        yield azure.blob(kind, data, context.within(field))
    elif kind == gcs.FINALIZED:
        yield gcs.finalized(data, context.within(field))
    elif data is None:
        yield IgnoredReason.UNKNOWN_EVENT
    else:
        yield from context.unwrap(data, field)


def from_headers(headers: Mapping[str, str], data: object) -> Fields | None:
    """Return the event that headers and body make up in binary mode, None without such headers; names in lower case."""
    if f"{HEADER}specversion" not in headers:
        return None
    attributes = {
        name.removeprefix(HEADER): unquote(value) for name, value in headers.items() if name.startswith(HEADER)
    }
    return {**attributes, "data": data}


def _data(event: Fields, context: ReadContext) -> tuple[object, str]:
    """Return the data and the field that holds them; a text is JSON once more, as some senders encode it twice."""
    if event.get("data_base64") is not None:
        return context.json(context.base64(event, "data_base64"), "data_base64"), "data_base64"
    data = event.get("data")
    return (context.json(data, "data") if isinstance(data, str) else data), "data"
