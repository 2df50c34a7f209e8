"""The page shows each group of the queue: a viewer chooses one, and sees what it has, uses and promises."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import expect

from shared.queue import keys
from tests.support.browser import PHONE, WIDE, Visit
from tests.support.group_workers import ACTORS, ETL, QUEUE, SLOTS, Workers
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.browser]

TABLES = {"sales.orders": {}, "etl.events": {"quota": "0.8"}, "etl.clicks": {"quota": "0.8"}, "etl.logs": {}}


@pytest.fixture
def decider(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    """Three groups: the queue itself, an oversold one that runs a job, and one without actors and tables."""
    with ExitStack() as stack:
        workers = {queue: Workers(redis_url, queue) for queue in (QUEUE, ETL)}
        for one in workers.values():
            stack.callback(one.close)
        live = stack.enter_context(LiveDecider(decider_settings(redis_url, groups={"etl": {}, "nightly": {}})))
        known = [keys.group_of(queue) or queue for queue in workers]
        until("slots are known", lambda: all(live.get("/v1/queue", group=group)["slots"] for group in known))
        for name, properties in TABLES.items():
            table = WrittenTable(tmp_path / name, days=("2026-01-01", "2026-01-02"))
            table.append(6, days=table.days, rows=20)
            given = dict(properties, queue=name.split(".")[0]) if name.startswith("etl") else properties
            wanted = {f"lakewright.{key}": value for key, value in given.items()}
            body = {"location": str(table.path), "name": name, "properties": wanted}
            live.post("/v1/tables", body).raise_for_status()
            live.drain()
        workers[ETL].running = list(workers[ETL].claim())
        until("tables are listed", lambda: live.get("/v1/table-rows")["groups"] == {"default": 1, "etl": 3})
        yield live


def test_a_viewer_chooses_a_group_which_the_address_keeps(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("queue")
    rows = tab.get_by_role("region", name="Groups").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0).get_by_role("link", name="default", exact=True)).to_have_attribute("aria-current", "true")
    expect(rows.nth(1)).to_contain_text(f"{ACTORS} actors, {ACTORS * SLOTS} slots")
    expect(rows.nth(1)).to_contain_text("160%")
    expect(rows.nth(1)).to_contain_text("oversold")
    expect(rows.nth(2)).to_contain_text("none")
    expect(tab.get_by_role("region", name="Next jobs")).to_contain_text("sales.orders")
    expect(tab.get_by_role("region", name="Next jobs")).not_to_contain_text("etl.")
    rows.nth(1).get_by_role("link", name="etl", exact=True).click()
    for _ in range(2):
        expect(tab.get_by_role("heading", level=1)).to_have_text("Queue: etl")
        assert tab.evaluate("location.hash") == "#/queue?group=etl"
        expect(tab.get_by_role("region", name="Next jobs")).to_contain_text("etl.")
        expect(tab.get_by_role("region", name="Next jobs")).not_to_contain_text("sales.orders")
        expect(tab.get_by_role("region", name="Running").locator(".job")).to_have_count(1)
        quotas = tab.get_by_role("region", name="Quotas", exact=True)
        expect(quotas.locator("tbody tr")).to_have_count(2)
        expect(tab.get_by_text("160% of the slots are promised")).to_be_visible()
        tab.reload()


def test_a_group_is_paused_alone(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("queue?group=etl")
    tab.get_by_role("button", name="Pause group etl").click()
    tab.get_by_role("dialog").get_by_role("button", name="Pause group etl").click()
    expect(tab.get_by_role("button", name="Resume group etl")).to_be_visible()
    expect(tab.get_by_role("region", name="Groups").locator("tbody tr").nth(1)).to_contain_text("paused")
    assert [one["is_paused"] for one in decider.get("/v1/groups")["groups"]] == [False, True, False]


def test_tables_and_actors_show_the_group_that_each_belongs_to(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    tab = person(decider).open("queue")
    tab.get_by_role("link", name="3 tables of etl").click()
    expect(tab.locator(".table-row .name a")).to_have_text(["etl.clicks", "etl.events", "etl.logs"])
    tab.get_by_label("Group").select_option("Every group")
    row = tab.locator(".table-row", has_text="sales.orders")
    expect(row.get_by_title("group default")).to_have_text("default · default")
    tab.locator(".table-row a", has_text="etl.logs").click()
    expect(tab.get_by_role("link", name="etl", exact=True)).to_have_attribute("href", "#/queue?group=etl")
    tab = person(decider).open("actors?group=etl")
    expect(tab.locator(".actors .card")).to_have_count(ACTORS)
    expect(tab.locator(".head")).to_contain_text(f"{ACTORS} actors with {ACTORS * SLOTS} slots")


def test_actors_of_a_group_are_started_and_released_where_the_standalone_keeps_them(
    redis_url: str, person: Callable[..., Visit]
) -> None:
    with LiveDecider(decider_settings(redis_url, groups={"etl": {}}, is_supervised=True)) as decider:
        tab = person(decider).open("actors?group=etl")
        line = tab.locator(".progress", has_text="wanted")
        expect(line).to_have_text(re.compile("Group etl: 0 actors, 1 wanted"))
        for label, wanted in (("Start one more actor of etl", 2), ("Release an actor of etl", 1)):
            line.get_by_role("button", name=label).click()
            expect(line).to_contain_text(f"0 actors, {wanted} wanted")
            groups = {one["group"]: one["wanted_actors"] for one in decider.get("/v1/groups")["groups"]}
            assert groups == {"default": 1, "etl": wanted}


def test_a_group_that_is_not_served_is_said_so_and_another_can_be_chosen(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    tab = person(decider).open("queue?group=gone")
    expect(tab.locator(".problem").first).to_contain_text("gone")
    tab.get_by_role("region", name="Groups").get_by_role("link", name="nightly", exact=True).click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Queue: nightly")
    expect(tab.get_by_text("No job waits.").first).to_be_visible()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [pytest.param(WIDE, "light", id="wide-light"), pytest.param(PHONE, "dark", id="phone-dark")],
)
def test_views_of_groups_have_no_serious_finding_and_fit_the_screen(
    decider: LiveDecider, person: Callable[..., Visit], size: dict[str, int], scheme: str
) -> None:
    visit = person(decider, viewport=size, color_scheme=scheme)
    for path in ("queue?group=etl", "tables", "tables/etl.logs", "actors?group=etl"):
        tab = visit.open(path)
        tab.get_by_text("etl").locator("visible=true").first.wait_for()
        expect(tab.get_by_text("Loading…")).to_have_count(0)
        found = [*visit.findings(), *visit.cut_off(), *visit.covered()]
        assert (path, found, max(0, visit.overflow())) == (path, [], 0)
