"""A callback of Airflow, in the shape that our guide pastes into a DAG: which task ended how, and what it wrote.

Airflow has no webhook of its own: a callback is Python, so the shape is ours and holds what every callback's context
has. An outlet is the URI of an asset, or a table's registered name; assets that are no tables are counted.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.table_hint import IgnoredReason, Outcome
from decider.events.table_names import table_hint
from shared.errors import InvalidInput

SUCCESS = "success"


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "dag_id" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn the outlets of a task that succeeded into hints; raises InvalidInput naming the field."""
    reading.text(event, "dag_id")
    reading.optional_text(event, "task_id")
    reading.optional_text(event, "run_id")
    succeeded = reading.text(event, "state") == SUCCESS
    outlets = reading.within("outlets")
    for index, item in enumerate(outlets.objects(event.get("outlets"))):
        found = _outlet(item, outlets.item(index))
        yield found if succeeded else IgnoredReason.NOT_A_COMMIT


def _outlet(item: object, reading: ReadContext) -> Outcome:
    if isinstance(item, dict):
        text = reading.text(item, "name" if "name" in item and "uri" not in item else "uri")
    elif isinstance(item, str) and item:
        text = item
    else:
        raise wrong(reading.at, item, 'a URI, a name, or {"uri": …}')
    try:
        return table_hint(text, reading.at)
    except InvalidInput:
        return IgnoredReason.NOT_A_LOCATION
