"""The token is typed once for the tab; a viewer sees no button that it may not use; an expired token asks again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from decider.gateway.credentials import Credentials, parse_tokens
from tests.support.browser import Visit
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings

pytestmark = [pytest.mark.redis, pytest.mark.browser]

TOKENS = {role: f"{role}-t0ken-for-tests-only" for role in ("viewer", "operator", "admin")}
KNOWN = Credentials(tokens=parse_tokens(",".join(f"{role}:{token}" for role, token in TOKENS.items())))
CHANGING = {
    "tables": ["Register a table"],
    "tables/sales.orders": ["Optimize…", "Pause", "Disable", "Unregister"],
    "tables/sales.orders?tab=policy": ["Apply"],
    "queue": ["Expedite", "Cancel", "Weight…", "Pause the queue"],
}
ADMINS = {"Unregister", "Weight…"}


@pytest.fixture
def guarded(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    live = LiveDecider(decider_settings(redis_url, known=KNOWN)).start()
    live.client.headers["authorization"] = f"Bearer {TOKENS['admin']}"
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(8)
    live.register(table.path, "sales.orders")
    yield live
    live.close()


def sign_in(tab: Page, token: str) -> None:
    tab.get_by_label("Bearer token").fill(token)
    tab.get_by_role("button", name="Use this token").click()


@pytest.mark.parametrize(
    "role",
    [
        "viewer",
        pytest.param("operator", marks=pytest.mark.long("page")),
        pytest.param("admin", marks=pytest.mark.long("page")),
    ],
)
def test_a_role_sees_the_buttons_that_it_may_use_and_no_other(
    guarded: LiveDecider, person: Callable[..., Visit], role: str
) -> None:
    visit = person(guarded)
    tab = visit.open()
    sign_in(tab, TOKENS[role])
    expect(tab.locator(".caller")).to_contain_text(f"Role {role}")
    for path, names in CHANGING.items():
        visit.open(path)
        expect(tab.get_by_text("sales.orders").first).to_be_visible()
        expect(tab.get_by_text("Loading…")).to_have_count(0)
        for name in names:
            permitted = role == "admin" or (role == "operator" and name not in ADMINS)
            found = tab.get_by_role("button", name=name, exact=True).first
            if permitted:
                expect(found).to_be_visible()
            else:
                expect(found).to_have_count(0)


@pytest.mark.long("page")
def test_a_token_is_typed_once_for_the_tab_and_another_tab_does_not_have_it(
    guarded: LiveDecider, person: Callable[..., Visit]
) -> None:
    visit = person(guarded)
    tab = visit.open()
    expect(tab.get_by_role("dialog")).to_contain_text("requires a bearer token")
    assert visit.findings() == []
    sign_in(tab, "not-a-token-at-all")
    expect(tab.get_by_role("dialog")).to_contain_text("This token is not accepted")
    sign_in(tab, TOKENS["viewer"])
    expect(tab.get_by_role("dialog")).to_have_count(0)
    tab.reload()
    expect(tab.locator(".caller")).to_contain_text("Role viewer")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    other = visit.context.new_page()
    other.goto(guarded.url)
    expect(other.get_by_role("dialog")).to_be_visible()
    assert TOKENS["viewer"] not in tab.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")


def test_an_expired_token_asks_again_and_loses_nothing_that_was_typed(
    guarded: LiveDecider, person: Callable[..., Visit]
) -> None:
    visit = person(guarded)
    tab = visit.open("tables/sales.orders?tab=policy")
    sign_in(tab, TOKENS["operator"])
    text = tab.get_by_label("One property per line: name = value")
    text.fill("lakewright.fan-in = 4")
    tab.route(
        "**/v1/**", lambda route: route.continue_(headers={**route.request.headers, "authorization": "Bearer x" * 4})
    )
    tab.get_by_role("button", name="Apply").click()
    expect(tab.get_by_role("dialog")).to_contain_text("no longer accepted")
    tab.unroute("**/v1/**")
    sign_in(tab, TOKENS["admin"])
    expect(tab.locator(".notice")).to_contain_text("are changed")
    assert guarded.get("/v1/tables/sales.orders")["properties"] == {"lakewright.fan-in": "4"}
