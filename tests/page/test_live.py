"""What happens is seen without a reload: commits in every view, and all of it after a lost connection."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visit
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.proxy import TcpProxy
from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.browser]

NOTICED_S = 30.0


def commit(decider: LiveDecider, table: WrittenTable) -> int:
    table.append()
    decider.post("/v1/events", {"table": "sales.orders", "version": table.version})
    return table.version


def version(tab: Page) -> str:
    return tab.locator(".figure").filter(has_text="Version").locator(".figure-value").inner_text()


def live(tab: Page) -> None:
    expect(tab.locator(".connection")).to_have_text("Live")


def test_a_commit_is_seen_in_every_view_that_shows_it(
    decider: LiveDecider, orders: WrittenTable, person: Callable[..., Visit]
) -> None:
    visit = person(decider)
    shows = {
        "": lambda tab, _: (
            tab.locator(".funnel li").filter(has_text="Commits by writers").locator(".number").inner_text()
        ),
        "tables": lambda tab, _: tab.locator(".table-row .files").first.inner_text(),
        "tables/sales.orders": lambda tab, _: version(tab),
        "tables/sales.orders?tab=decisions": lambda tab, _: (
            tab.locator(".decision").first.inner_text().split("version ")[1]
        ),
        "tables/sales.orders?tab=partitions": lambda tab, _: "".join(tab.locator(".tile-value").all_inner_texts()),
    }
    commit(decider, orders)
    decider.drain()
    took = {}
    for path, read in shows.items():
        tab = visit.open(path)
        live(tab)
        expect(tab.get_by_text("Loading…")).to_have_count(0)
        before = read(tab, None)
        commit(decider, orders)
        decider.drain()
        applied_s = time.monotonic()
        while read(tab, None) == before and time.monotonic() - applied_s < scaled(20):
            tab.wait_for_timeout(25)
        assert read(tab, None) != before, path
        took[path] = round(time.monotonic() - applied_s, 2)
    print(f"seconds until a commit was seen: {took}")


@pytest.fixture
def proxied(decider: LiveDecider) -> Iterator[TcpProxy]:
    proxy = TcpProxy(int(decider.url.rpartition(":")[2]))
    yield proxy
    proxy.close()


@pytest.mark.long("page")
@pytest.mark.parametrize("fail", [TcpProxy.cut, TcpProxy.stall], ids=["cut", "stalled"])
def test_a_connection_that_fails_for_ten_seconds_is_shown_as_lost_and_then_caught_up(
    decider: LiveDecider,
    orders: WrittenTable,
    proxied: TcpProxy,
    person: Callable[..., Visit],
    fail: Callable[[TcpProxy], None],
) -> None:
    """A stalled connection is noticed by its silence: the decider sends a comment every 15 seconds."""
    visit = person(decider)
    visit.url = proxied.url
    tab = visit.open("tables/sales.orders")
    live(tab)
    expect(tab.locator(".figure").first).to_be_visible()
    tab.evaluate("window.stillTheSame = true")
    failed_s = time.monotonic()
    fail(proxied)
    notice = expect(tab.locator(".lost-notice"))
    notice.to_contain_text("The connection to the decider is lost", timeout=1000 * scaled(NOTICED_S))
    expect(tab.locator(".connection")).to_have_text("Connection lost")
    newest = commit(decider, orders)
    decider.drain()
    assert version(tab) != str(newest), "nothing can have arrived"
    until("ten seconds have passed", lambda: time.monotonic() - failed_s > 10)
    proxied.restore()
    live(tab)
    expect(tab.locator(".figure").filter(has_text="Version").locator(".figure-value")).to_have_text(str(newest))
    expect(tab.locator(".lost-notice")).to_have_count(0)
    assert tab.evaluate("window.stillTheSame"), "the page was not loaded again"


@pytest.mark.long("page")
def test_a_decider_that_restarts_is_caught_up_with(
    redis_url: str, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    port = free_port()
    first = LiveDecider(decider_settings(redis_url), port=port).start()
    table = WrittenTable(tmp_path / "orders")
    first.register(table.path, "sales.orders")
    tab = person(first).open("tables/sales.orders")
    live(tab)
    expect(tab.locator(".figure").first).to_be_visible()
    first.close()
    expect(tab.locator(".connection")).to_have_text("Connection lost")
    with LiveDecider(decider_settings(redis_url), port=port) as second:
        newest = commit(second, table)
        live(tab)
        expect(tab.locator(".figure").filter(has_text="Version").locator(".figure-value")).to_have_text(str(newest))


@pytest.mark.long("page")
def test_a_hidden_tab_has_no_connection(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open()
    live(tab)
    assert decider.services.http.stream_slots.taken == 1
    hide = "state => { Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    tab.evaluate(hide, "hidden")
    expect(tab.locator(".connection")).to_have_text("Paused")
    deadline_s = time.monotonic() + scaled(20)
    while decider.services.http.stream_slots.taken and time.monotonic() < deadline_s:
        tab.wait_for_timeout(50)
    assert decider.services.http.stream_slots.taken == 0
    tab.evaluate(hide, "visible")
    live(tab)
