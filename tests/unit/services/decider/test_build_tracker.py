"""How many decisions Redis holds depends on whether an archive takes them over."""

from types import SimpleNamespace
from typing import Any

import pytest

from services.decider.build import build_tracker
from services.decider.settings import decider_settings
from shared.queue.limits import LEDGER_KEPT, LEDGER_KEPT_TO_ARCHIVE


@pytest.mark.parametrize(
    ("environment", "kept"), [({}, LEDGER_KEPT), ({"LAKEWRIGHT_ARCHIVE": "s3://a/ledger"}, LEDGER_KEPT_TO_ARCHIVE)]
)
def test_an_archive_has_time_to_take_decisions_over(environment: dict[str, str], kept: int) -> None:
    assert LEDGER_KEPT < LEDGER_KEPT_TO_ARCHIVE
    parts: Any = SimpleNamespace(
        executor=None, formats=SimpleNamespace(open=None), now_ms=None, defaults=None, states=None, actions=()
    )
    assert build_tracker(decider_settings(environment), parts, parts, parts).ledger_kept == kept
