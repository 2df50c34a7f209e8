"""Advice ranks tables by what a change would have saved, shows the proof, and applies or dismisses the change."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import Visit
from tests.support.live_decider import LiveDecider, WrittenTable

pytestmark = [pytest.mark.redis, pytest.mark.browser, pytest.mark.long("page")]


@pytest.fixture
def lake(decider: LiveDecider, tmp_path: Path) -> LiveDecider:
    """Two tables of small commits, of which a changed policy would save something, and one without any."""
    for name, commits in (("many", 60), ("few", 25), ("none", 1)):
        table = WrittenTable(tmp_path / name, days=("2026-01-01",))
        table.append(commits)
        decider.register(table.path, f"sales.{name}")
    return decider


def recommended(decider: LiveDecider, name: str) -> dict[str, str]:
    answer = decider.post(f"/v1/tables/{name}/what-if", {"max_commits": 1_000}).json()["recommendation"]
    return dict(answer["properties"]) if answer["is_change"] else {}


def test_advice_is_ranked_proved_dismissed_and_applied(lake: LiveDecider, person: Callable[..., Visit]) -> None:
    changes = {name: change for name in ("sales.many", "sales.few") if (change := recommended(lake, name))}
    assert changes, "the replay of a table of small commits finds something to change"
    visit = person(lake)
    tab = visit.open("advice")
    expect(tab.get_by_text("Nothing is changed.")).to_be_visible()
    assert visit.findings() == []
    tab.get_by_role("button", name="Replay the logs").click()
    expect(tab.get_by_role("button", name="Replay the logs")).to_be_enabled()
    cards = tab.locator(".advice .card")
    expect(cards).to_have_count(len(changes))
    assert visit.findings() == []
    assert visit.overflow() <= 0
    names = tab.locator(".advice h2").all_inner_texts()
    assert set(names) == set(changes)
    expect(cards.first).to_contain_text("Proof: ")
    shown = dict(line.split(" = ") for line in cards.first.locator("pre").inner_text().splitlines())
    assert shown == changes[names[0]]

    cards.first.get_by_role("button", name="Dismiss").click()
    expect(cards).to_have_count(len(changes) - 1)
    tab.get_by_role("button", name="Show again").click()
    expect(cards).to_have_count(len(changes))

    cards.first.get_by_role("button", name="Apply").click()
    assert lake.get(f"/v1/tables/{names[0]}")["properties"] == {}, "it asks first"
    tab.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(tab.locator(".notice")).to_contain_text("is changed")
    assert lake.get(f"/v1/tables/{names[0]}")["properties"] == changes[names[0]]
