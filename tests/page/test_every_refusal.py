"""The page shows every kind of refusal of docs/refusals.md, as the command line does, with file and remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import Visit
from tests.support.every_refusal import every_refusal, missing
from tests.support.live_decider import LiveDecider

pytestmark = [pytest.mark.redis, pytest.mark.browser]


def test_every_kind_of_refusal_is_shown_with_its_remedy(
    decider: LiveDecider, tmp_path: Path, redis_url: str, person: Callable[..., Visit]
) -> None:
    refused = every_refusal(decider, tmp_path, redis_url)
    visit = person(decider)
    for name in dict.fromkeys(one.table for one in refused):
        here = [one for one in refused if one.table == name]
        tab = visit.open(f"tables/{name}")
        alerts = tab.get_by_role("alert")
        expect(alerts).to_have_count(len(here))
        assert missing(here, " ".join(alerts.all_inner_texts())) == []
    tab = visit.open("")
    refused_tables = len({one.table for one in refused if not one.files})
    expect(tab.get_by_text(f"{refused_tables - 3} more tables are refused")).to_be_visible()
    expect(tab.locator(".findings a", has_text=" is refused. file://")).to_have_count(3)
