"""Events of Azure's Event Grid about blobs; Delta commits on ADLS by a rename, so there the new name counts.

Before the first event, Event Grid sends a code that the response must repeat. The URL of a blob names account,
container and path, the last percent-encoded. Source: "Azure Blob Storage as an Event Grid source", "Endpoint validation
with Event Grid event schema".
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.object_keys import hint_of_key
from decider.events.table_hint import IgnoredReason, Outcome, ValidationHandshake

VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent"
STORAGE = "Microsoft.Storage."
URL_FIELDS = {"Microsoft.Storage.BlobCreated": "url", "Microsoft.Storage.BlobRenamed": "destinationUrl"}
"""The events after which a blob exists, and the field that names it."""

MAX_CODE_CHARS = 256
"""A code has 36 characters; the length of the response must be bounded."""

_URL = re.compile(r"https://([a-z0-9-]+)\.(?:blob|dfs)\.([a-z0-9.-]+)/([^/?#]+)/([^?#]+)", re.ASCII | re.DOTALL)


def matches(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "eventType" in event and "data" in event


def parse(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn one event into a hint or a code to send back; raises InvalidInput naming the field."""
    kind = context.text(event, "eventType")
    data = context.fields(event.get("data"), "data")
    if kind == VALIDATION:
        yield _echo(data, context.within("data"))
    else:
        yield blob(kind, data, context.within("data"))


def _echo(data: Fields, context: ReadContext) -> ValidationHandshake:
    code = context.text(data, "validationCode")
    if len(code) > MAX_CODE_CHARS:
        raise wrong(context.place("validationCode"), code, f"at most {MAX_CODE_CHARS} characters")
    return ValidationHandshake(code)


def blob(kind: str, data: object, context: ReadContext) -> Outcome:
    """Return what an event about a blob is, in either of Event Grid's schemas; raises InvalidInput for a wrong URL."""
    field = URL_FIELDS.get(kind)
    if field is None:
        return IgnoredReason.UNKNOWN_EVENT
    text = context.text(context.fields(data), field)
    match = _URL.fullmatch(text)
    if match is None:
        raise wrong(context.place(field), text, "https://<account>.blob.core.windows.net/<container>/<path> or .dfs.")
    account, domain, container, encoded = match.groups()
    try:
        key = unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        return IgnoredReason.BAD_KEY
    place = f"abfss://{container}@{account}.dfs.{domain}"
    return hint_of_key(context.buckets.get(f"{account}/{container}", place), key)
