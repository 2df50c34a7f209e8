"""Our own shape: a table by name or location, perhaps a version; a list of them is a batch.

Writers may send a whole commit definition. It is checked and taken as a hint only, because the state of a table comes
from its log alone: what a sender claims of files could be forged, doubled or late, and a table without a log could not
be committed to anyway. Unknown fields are rejected: a misspelled one would have no effect.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.table_hint import Outcome
from decider.events.table_names import table_hint
from shared.table import MAX_VERSION

FIELDS = ("table", "version", "operation", "added", "removed")
"""All fields of the shape; the last three belong to a commit definition."""


def matches(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "table" in event


def parse(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn one event into a hint; raises InvalidInput naming the field that is wrong."""
    unknown = sorted(set(event) - set(FIELDS))
    if unknown:
        field = ascii(unknown[0])[1:-1] or "a field without a name"
        raise wrong(context.place(field), event[unknown[0]], f"only the fields {', '.join(FIELDS)}")
    context.optional_text(event, "operation")
    for name in ("added", "removed"):
        if event.get(name) is not None:
            _check_files(event[name], context.within(name))
    version = _whole_number(event, "version", context)
    yield table_hint(context.text(event, "table"), context.place("table"), version)


def _check_files(files: object, context: ReadContext) -> None:
    for index, item in enumerate(context.objects(files)):
        place = context.item(index)
        file = place.fields(item)
        place.text(file, "path")
        _whole_number(file, "size", place)
        if file.get("partition_values") is not None:
            place.fields(file["partition_values"], "partition_values")


def _whole_number(event: Fields, field: str, context: ReadContext) -> int | None:
    value = event.get(field)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= MAX_VERSION:
        raise wrong(context.place(field), value, "a whole number from 0 on")
    return value
