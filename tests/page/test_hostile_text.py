"""Names and texts of others are shown as text: markup, right-to-left marks, very long ones."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import expect

from tests.support.browser import PHONE, Visit, long
from tests.support.live_decider import LiveDecider

pytestmark = [pytest.mark.redis, pytest.mark.browser]

HOSTILE = ["<img src=x onerror=document.title='hacked'>", "\u202etxt.drow", "a" * 150, "{{constructor}}", "'\"&amp;"]


@pytest.mark.parametrize("size", [pytest.param(None, marks=long, id="wide"), pytest.param(PHONE, id="phone")])
def test_partition_values_are_text(
    decider: LiveDecider, tmp_path: Path, person: Callable[..., Visit], size: dict[str, int] | None
) -> None:
    data = pa.table({"name": [value for value in HOSTILE for _ in range(3)], "n": list(range(3 * len(HOSTILE)))})
    for _ in range(6):
        write_deltalake(str(tmp_path / "t"), data, mode="append", partition_by=["name"])
    decider.register(tmp_path / "t", "hostile." + "n" * 128)
    visit = person(decider, **({"viewport": size} if size else {}))
    tab = visit.open(f"tables/hostile.{'n' * 128}?tab=partitions")
    tiles = tab.locator(".tile-label")
    expect(tiles).to_have_count(len(HOSTILE))
    assert set(tiles.all_inner_texts()) == set(HOSTILE)
    for path in ("tables", "queue", f"tables/hostile.{'n' * 128}?tab=decisions"):
        visit.open(path)
        expect(tab.get_by_text("hostile.nnn").first).to_be_visible()
        expect(tab.get_by_text("Loading…")).to_have_count(0)
        assert visit.overflow() <= 0, path
        assert tab.locator("img").count() == 0, path
        assert "hacked" not in tab.title()


def test_a_long_problem_of_the_api_is_shown_whole_and_does_not_widen_the_page(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    visit = person(decider)
    body = {"type": "x", "title": "x", "status": 502, "detail": "<b>x</b>\u202e" + "y" * 10_000, "field": ""}
    visit.tab.route("**/v1/status", lambda route: route.fulfill(status=502, json=body))
    tab = visit.open()
    expect(tab.get_by_role("alert").first).to_contain_text("<b>x</b>")
    assert visit.overflow() <= 0
    assert tab.locator("main b").count() == 0
