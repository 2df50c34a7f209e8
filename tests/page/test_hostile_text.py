"""Names and texts of others are shown as text: markup, right-to-left marks, very long ones."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import expect

from tests.support.browser import PHONE, Visit
from tests.support.live_decider import LiveDecider, WrittenTable

pytestmark = [pytest.mark.redis, pytest.mark.browser]

HOSTILE = ["<img src=x onerror=document.title='hacked'>", "\u202etxt.drow", "a" * 150, "{{constructor}}", "'\"&amp;"]


@pytest.mark.parametrize(
    "size", [pytest.param(None, marks=pytest.mark.long("page"), id="wide"), pytest.param(PHONE, id="phone")]
)
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


def test_names_of_tables_and_tenants_are_text(
    decider: LiveDecider, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    """The API permits no such names, so its answer is replaced: the page must not rely on that."""
    WrittenTable(tmp_path / "orders")
    decider.register(tmp_path / "orders", "sales.orders")
    answer = decider.get("/v1/table-rows")
    (row,) = answer["rows"]
    answer["rows"] = [row | {"id": str(at), "name": name + "z" * 10_000} for at, name in enumerate(HOSTILE)]
    answer["rows"][0]["tenant"] = HOSTILE[0]
    answer |= {"matching": len(HOSTILE), "total": len(HOSTILE), "tenants": dict.fromkeys(HOSTILE, 1)}
    visit = person(decider)
    visit.tab.route("**/v1/table-rows*", lambda route: route.fulfill(json=answer))
    tab = visit.open("tables")
    names = tab.locator(".table-row .name a")
    expect(names).to_have_count(len(HOSTILE))
    assert [text.rstrip("z") for text in names.all_text_contents()] == HOSTILE
    assert set(HOSTILE) <= {text.rpartition(" (")[0] for text in tab.locator("option").all_text_contents()}
    assert tab.locator("img").count() == 0
    assert "hacked" not in tab.title()
    assert visit.overflow() <= 0
