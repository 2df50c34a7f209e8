"""What is shown of the queue's settings can be typed, and what cannot be used is refused with what would be."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from services.cli.commands.queue_settings import changes, rows
from shared.queue.settings import SETTINGS


@given(st.sampled_from([name for name, known in SETTINGS.items() if not known.is_set_by_decider]), st.data())
def test_what_is_shown_can_be_typed(name: str, data: st.DataObject) -> None:
    known = SETTINGS[name]
    value = data.draw(st.integers(known.low, known.high))
    stated = {
        "name": name,
        "value": value,
        "unit": known.unit.value,
        "default": known.default,
        "description": known.description,
    }
    ((short, spelled, *_),) = rows({"settings": [stated | {"minimum": known.low, "maximum": known.high}]})
    assert changes([f"{short}={spelled}"]) == {name: value}


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("agin=60s", "strict-bands, strict-in-row, aging, max-attempts, backoff-base, backoff-cap, half-open"),
        ("aging", "'aging' sets nothing"),
        ("aging=60", "expected a time with its unit"),
        ("aging=2d", "aging: expected 0s to 1d, found '2d'"),
        ("aging=0.0001s", "expected a time with its unit"),
        ("max-attempts=0", "max-attempts: expected a whole number from 1 to 100, found '0'"),
        ("slots=4", "'slots' is set by the decider"),
    ],
)
def test_a_wrong_use_is_refused_before_anything_is_sent(pair: str, words: str) -> None:
    transport = httpx.MockTransport(lambda _: pytest.fail("nothing may be sent"))
    setting = CliContext("http://decider", False, transport)
    result = CliRunner().invoke(app, ["queue", "set", pair], obj=setting, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert words in result.output
