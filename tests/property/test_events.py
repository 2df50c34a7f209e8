"""Every request body, however strange, yields events and counted reasons, or one error that names the field."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from decider.events.detect import FORMATS, parse_body, parse_value
from decider.events.table_hint import ParsedEvents, TableHint
from shared.errors import InvalidInput
from tests.support.event_samples import SAMPLES, Sample, dumped

ANY_SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
ANY_VALUE = st.recursive(
    ANY_SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
KEYS = (
    st.sampled_from(["table", "version", "added", "removed", "operation", "Records", "EventName", "Key", "Event"])
    | st.text()
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
NEAR_S3 = st.fixed_dictionaries(
    {
        "Records": st.lists(
            st.fixed_dictionaries(
                {
                    "eventName": st.sampled_from(["ObjectCreated:Put", "s3:ObjectCreated:Copy"]) | SCALARS,
                    "s3": st.fixed_dictionaries(
                        {
                            "bucket": st.fixed_dictionaries({"name": SCALARS}),
                            "object": st.fixed_dictionaries(
                                {
                                    "key": st.text(st.characters()).map(lambda text: f"{text}/_delta_log/{7:020d}.json")
                                    | SCALARS
                                }
                            ),
                        }
                    )
                    | SCALARS,
                }
            ),
            max_size=3,
        )
    }
)


def leads_to_one_place(hint: TableHint) -> bool:
    """A location, a folder of metadata, or a name: that of a table in a catalog may have been registered, too."""
    has_name = hint.name is not None or bool(hint.catalog_path)
    return sum((hint.location is not None, hint.metadata_folder is not None, has_name)) == 1


@given(st.sampled_from(SAMPLES), st.sampled_from(SAMPLES), ANY_VALUE, st.data())
def test_whatever_is_put_anywhere_into_a_sample_it_is_taken_or_refused(
    sample: Sample, other: Sample, value: Any, data: st.DataObject
) -> None:
    """No event, however strange, may raise anything else: an unforeseen exception is a 500 that a sender repeats."""
    body = [sample.body]
    place: Any = body
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(st.sampled_from([value, other.body, dumped(other.body).decode(), [place[key]]]))
    for source in (None, sample.source, other.source):
        taken, refusal = outcome(partial(parse_value, body[0], source=source))
        assert all(map(leads_to_one_place, taken.hints))
        assert refusal is None or (refusal.field and refusal.allowed and len(str(refusal).encode()) < 2_000)


@given(
    JSON | NEAR_S3 | st.fixed_dictionaries({"table": SCALARS}, optional={"version": SCALARS}),
    st.none() | st.sampled_from([shape.source for shape in FORMATS]),
)
def test_any_json_value_yields_hints_or_invalid_input(body: object, source: str | None) -> None:
    """No event, however strange, may raise anything else: an unforeseen exception is a 500 that a sender repeats."""
    taken, refusal = outcome(partial(parse_value, body, source=source))
    assert all(map(leads_to_one_place, taken.hints))
    assert refusal is None or refusal.field
    assert str(refusal).encode()


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_yield_hints_or_invalid_input(body: bytes) -> None:
    taken, refusal = outcome(partial(parse_body, body))
    assert refusal is None or (refusal.field and not taken.hints)


def outcome(read: Callable[[], ParsedEvents]) -> tuple[ParsedEvents, InvalidInput | None]:
    try:
        return read(), None
    except InvalidInput as refusal:
        return ParsedEvents(), refusal
