"""What is shown of the queue's settings can be typed, and what cannot be used is refused with what would be."""

import httpx
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("agin=60s", "strict-bands, strict-in-row, aging, max-attempts, backoff-base, backoff-cap, half-open"),
        ("aging", "expected name=value"),
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
