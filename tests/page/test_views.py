"""Each view shows what the API reports, in light and dark, wide and on a phone, and axe finds nothing serious."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from playwright.sync_api import expect

from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor, connect
from decider.store.fleet_history import FleetHistory, FleetSample
from decider.store.samples import SampleStep
from shared.prices import Usage
from shared.queue import commands, keys
from shared.queue.model import Band, Debounce, JobKey, JobRequest, RunResult
from tests.support.browser import PHONE, WIDE, Visit
from tests.support.every_refusal import every_refusal, missing
from tests.support.live_decider import LiveDecider, WrittenTable, deciders
from tests.support.queue_bench import end_of
from tests.support.table_samples import week_of_samples
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.browser]

VIEWS = {
    "": "Needs attention",
    "tables": "sales.orders",
    "tables/sales.orders": "Files by size",
    "tables/sales.orders?tab=history": "What rewriting was worth",
    "tables/sales.orders?tab=partitions": "2026-01-02",
    "tables/sales.orders?tab=decisions": "version 12",
    "tables/sales.orders?tab=rewrites": "No rewrite is recorded",
    "tables/sales.orders?tab=policy": "lakewright.target-file-size",
    "tables/sales.orders?tab=what-if": "Cost of each rule",
    "queue": "fair share",
    "actors": "No actor is registered",
    "advice": "No advice.",
}
"""Each view with a text that it shows when it has its data."""


def show(visit: Visit, path: str) -> None:
    tab = visit.open(path)
    expect(tab.get_by_text(VIEWS[path]).first).to_be_visible()
    expect(tab.get_by_text("Loading…")).to_have_count(0)


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(WIDE, "light", id="wide-light"),
        pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.long("page")),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.long("page")),
        pytest.param(PHONE, "dark", id="phone-dark"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_each_view_has_no_serious_finding_and_fits_the_screen(
    decider: LiveDecider, person: Callable[..., Visit], size: dict[str, int], scheme: str
) -> None:
    found = {}
    visit = person(decider, viewport=size, color_scheme=scheme)
    for path in VIEWS:
        show(visit, path)
        found[path] = [
            *visit.findings(),
            *visit.cut_off(),
            *visit.covered(),
            *([f"wider than the screen by {wide}"] if (wide := visit.overflow()) > 0 else []),
        ]
    assert {path: findings for path, findings in found.items() if findings} == {}


def test_a_table_shows_the_figures_of_the_api(
    decider: LiveDecider, orders: WrittenTable, person: Callable[..., Visit]
) -> None:
    table = decider.get("/v1/tables/sales.orders")
    tab = person(decider).open("tables/sales.orders")
    figures = tab.locator(".figure")
    expect(figures.filter(has_text="Files").first.locator(".figure-value")).to_have_text(str(table["layout"]["files"]))
    expect(figures.filter(has_text="Version").locator(".figure-value")).to_have_text(str(orders.version))
    bars = tab.locator(".histogram tbody .number").all_inner_texts()
    assert [int(bar) for bar in bars] == [level["files"] for level in table["layout"]["levels"]]


@pytest.mark.parametrize("locale", ["en-US@posix", "de-DE", "ar", "ja"])
@pytest.mark.usefixtures("orders")
def test_the_page_starts_whatever_locale_a_browser_reports(
    decider: LiveDecider, person: Callable[..., Visit], locale: str
) -> None:
    visit = person(decider)
    visit.tab.add_init_script(
        f"Object.defineProperty(navigator, 'language', {{ value: '{locale}', configurable: true }})"
    )
    show(visit, "tables/sales.orders")
    expect(visit.tab.locator(".uplot").first).to_be_visible()


@pytest.mark.usefixtures("orders")
def test_the_first_screen_answers_the_first_questions(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open()
    answers = tab.locator(".answer")
    expect(answers).to_have_count(3)
    expect(answers.nth(0)).to_contain_text("Is it working?")
    expect(answers.nth(0)).to_contain_text("1 problem below.")
    expect(answers.nth(2)).to_contain_text("2 jobs wait.")
    expect(answers.nth(2)).to_contain_text("are still to be rewritten, once")
    decider.post("/v1/tables/sales.orders/pause", {})
    expect(answers.nth(2)).to_contain_text("1 table paused")


def test_the_history_of_thirty_days_is_drawn_with_events_and_core_time(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    services, now_ms = decider.services, decider.services.operations.now_ms()
    own = [keys.history("default", int(step)) for step in SampleStep]
    redis, other = services.operations.redis, FleetHistory(services.queue.executor, "another decider")
    until("the decider's own sampler waits", lambda: decider.run(other.newest()) is not None)
    decider.run(redis.set(keys.history_lease("default"), "another decider"))
    decider.run(redis.delete(*own))
    assert decider.run(other.acquire())
    for hour in range(24 * 30):
        at_ms = now_ms - (24 * 30 - 1 - hour) * SampleStep.HOUR
        used = Usage(core_ms=1_500 * hour)
        decider.run(other.record(FleetSample(at_ms, events_received=60 * hour, commits=7 * hour, usage=used)))
    visit = person(decider)
    tab = visit.open()
    tab.get_by_label("Range").select_option("30 days")
    events = tab.get_by_role("img", name="Events received and commits per hour over time")
    expect(events).to_contain_text(re.compile(r"Events per hour\s*60.*Commits per hour\s*7", re.DOTALL))
    core = tab.get_by_role("img", name="Core-seconds of runs per hour over time")
    expect(core).to_contain_text(re.compile(r"Core-seconds per hour\s*1\.5"))
    assert visit.findings() == []


@pytest.mark.usefixtures("orders")
def test_the_history_of_a_table_is_drawn_beside_what_happened_and_says_that_it_does_not_pay(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    week_of_samples(decider, "sales.orders")
    decider.client.patch(
        "/v1/tables/sales.orders", json={"properties": {"lakewright.read-weight": "0.01"}}
    ).raise_for_status()
    for how in ("pause", "resume"):
        decider.post(f"/v1/tables/sales.orders/{how}", {}).raise_for_status()
    visit = person(decider)
    tab = visit.open("tables/sales.orders?tab=history")
    runs = tab.get_by_role("img", name="Runs of the table's jobs per hour over time")
    expect(runs).to_contain_text(re.compile(r"Runs per hour\s*2.*Failed\s*0", re.DOTALL))
    files = tab.get_by_role("img", name="Files of the table over time, and how many would do")
    expect(files).to_contain_text(re.compile(rf"Files\s*{decider.get('/v1/tables/sales.orders')['layout']['files']}"))
    marks = tab.get_by_role("region", name="What happened").locator("li")
    expect(marks).to_have_count(3)
    expect(marks.nth(0)).to_contain_text("Resumed")
    expect(marks.nth(2)).to_contain_text("lakewright.read-weight = 0.01")
    worth = tab.get_by_role("region", name="What rewriting was worth")
    expect(worth).to_contain_text("Does not pay:")
    expect(worth).to_have_class(re.compile("bad"))
    tab.get_by_label("Range").select_option("24 hours")
    expect(runs).to_be_visible()
    assert visit.findings() == []


@pytest.mark.usefixtures("orders")
def test_the_next_jobs_of_a_table_are_told_apart_by_their_partitions(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    rows = (
        person(decider, viewport=PHONE).open("queue").get_by_role("region", name="Next", exact=True).locator("tbody tr")
    )
    for day in ("dt=2026-01-01", "dt=2026-01-02"):
        expect(rows.filter(has_text=day)).to_have_count(1)


@pytest.mark.usefixtures("orders")
def test_jobs_that_cannot_start_are_counted_beside_the_order(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    decider.post("/v1/tables/sales.orders/pause", {})
    tab = person(decider).open("queue")
    expect(tab.get_by_role("region", name="Next", exact=True)).to_contain_text("2 queued jobs cannot start now: paused")


def test_a_job_that_waits_for_company_says_so_and_has_not_failed(
    decider: LiveDecider, redis_url: str, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    name = decider.register(WrittenTable(tmp_path / "t").path, "sales.t")
    key = JobKey(decider.get(f"/v1/tables/{name}")["id"], "{}", "compact")
    with connect(redis_url) as client:
        wait = Debounce(600_000, 600_000)
        request = JobRequest(key, "default", Band.NORMAL, 5, 1, 9, debounce=wait)
        SyncQueueExecutor(client, "default").run(commands.enqueue("default", request))
    tab = person(decider).open("queue")
    expect(tab.locator(".job")).to_contain_text("waits for other merges of its table, starts in")
    expect(tab.get_by_role("button", name="Start now")).to_be_visible()
    expect(tab.get_by_text("failed attempt")).to_have_count(0)


@pytest.mark.usefixtures("orders")
def test_a_job_that_failed_is_said_on_the_first_screen_and_on_its_table(
    decider: LiveDecider, redis_url: str, person: Callable[..., Visit]
) -> None:
    with connect(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        (claim,) = queue.run(commands.claim("default", worker="w", nonce="n1", slots=1, lease_ms=60_000))
        queue.run(end_of(claim, RunResult.FAIL, cost_bytes=0, seen_version=-1, error="the disk is gone"))
    visit = person(decider)
    expect(visit.open().locator(".findings .bad", has_text="sales.orders")).to_contain_text(
        "1 failed attempt, next try in"
    )
    alert = visit.open("tables/sales.orders").get_by_role("alert")
    expect(alert).to_contain_text("1 failed attempt, next try in")
    expect(alert).to_contain_text("the disk is gone")


def test_what_a_person_has_to_repair_is_on_the_first_screen(
    decider: LiveDecider, redis_url: str, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    table = WrittenTable(tmp_path / "bad", days=("2026-01-01",))
    DeltaTable(table.path).alter.set_table_properties({"lakewright.fan-in": "many"}, raise_if_not_exists=False)
    decider.register(table.path, "sales.bad")
    with connect(redis_url) as client:
        about = ActorInfo(2, 1_767_276_187_000, "worker-7", {"lakewright": "0.1.0"})
        presence = Presence(SyncQueueExecutor(client, "default"), "worker-7-1", about, ttl_ms=600_000)
        presence.announce([], busy_slots=0)
        presence.report_death("no memory is left")
    findings = person(decider).open().locator(".findings li")
    expect(findings.filter(has_text="sales.bad has properties that cannot be used")).to_have_class("bad")
    expect(findings.filter(has_text="Actor worker-7-1 died. no memory is left")).to_have_class("warn")


def test_a_tables_file_that_is_refused_is_on_the_first_screen(
    redis_url: str, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text("tables: []")
    with deciders(redis_url, tables_file=file) as start:
        decider = start()
        file.write_text("tables:\n- location: /t\n  nam: x\n")
        decider.run(decider.task("tables_file").run_once())
        found = person(decider).open().get_by_role("region", name="Needs attention").locator("li")
        expect(found.filter(has_text=f"Tables file: {file}:3:3: 'nam' is unknown")).to_have_class("bad")
        file.write_text("tables: []")
        decider.run(decider.task("tables_file").run_once())
        expect(found.filter(has_text="Tables file")).to_have_count(0)


def test_a_table_of_one_file_is_never_red(decider: LiveDecider, tmp_path: Path, person: Callable[..., Visit]) -> None:
    table = WrittenTable(tmp_path / "one", days=("2026-01-01",))
    decider.register(table.path, "sales.one")
    visit = person(decider)
    row = visit.open("tables").locator(".table-row", has_text="sales.one")
    expect(row.locator(".meter")).to_have_class("meter good")
    expect(row.locator(".state")).to_have_text("compact")
    gain = visit.open("tables/sales.one").locator(".figure", has_text="To gain")
    expect(gain.locator(".figure-value")).to_have_text("compact")
    expect(gain.locator(".metered")).to_have_attribute("title", re.compile("^as compact as it can be;"))


@pytest.mark.usefixtures("orders")
def test_quotas_of_tables_are_shown_on_demand(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    table = decider.get("/v1/tables/sales.orders")["id"]
    quota = {"scope": "table", "name": table, "quota_percent": 30}
    decider.client.put("/v1/queue/weights", json=quota).raise_for_status()
    tab = person(decider).open("queue")
    card = tab.locator(".card", has=tab.get_by_role("heading", name="Tables by slot time"))
    card.get_by_role("button", name="Show tables").click()
    expect(card.locator("tbody tr")).to_have_count(1)
    expect(card.locator("tbody tr")).to_contain_text("sales.orders")
    expect(card.locator("tbody tr")).to_contain_text("30%")


@pytest.mark.usefixtures("orders")
def test_defaults_of_a_policy_are_folded_below_what_is_set(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("tables/sales.orders?tab=policy")
    set_here = tab.get_by_role("region", name="Values that are set")
    expect(set_here).to_contain_text("lakewright.target-file-size")
    expect(tab.get_by_role("region", name="Defaults")).not_to_be_visible()
    tab.locator("summary").click()
    expect(tab.get_by_role("region", name="Defaults")).to_contain_text("lakewright.tolerance")


@pytest.mark.long("page")
@pytest.mark.usefixtures("orders")
def test_the_list_is_filtered_sorted_and_linked_by_its_address(
    decider: LiveDecider, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    other = WrittenTable(tmp_path / "clicks")
    decider.register(other.path, "web.clicks")
    tab = person(decider).open("tables")
    names = tab.locator(".table-row .name a")
    expect(names).to_have_text(["sales.orders", "web.clicks"])
    tab.get_by_role("columnheader", name="Files").get_by_role("button").click()
    tab.get_by_role("columnheader", name="Files").get_by_role("button").click()
    expect(names).to_have_text(["web.clicks", "sales.orders"])
    tab.get_by_role("searchbox").fill("ORD")
    expect(names).to_have_text(["sales.orders"])
    assert re.search(r"#/tables\?.*sort=files", tab.url)
    again = person(decider).open(tab.url.partition("#/")[2])
    expect(again.locator(".table-row .name a")).to_have_text(["sales.orders"])


@pytest.mark.long("page")
@pytest.mark.usefixtures("orders")
def test_every_view_is_reached_by_the_keyboard_alone(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open()
    expect(tab.get_by_role("heading", name="Overview")).to_be_visible()
    for name in ("Tables", "Queue", "Actors", "Advice"):
        tab.get_by_role("link", name=name, exact=True).focus()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", name=name, level=1)).to_be_visible()
    tab.goto(f"{decider.url}/#/tables/sales.orders")
    tab.get_by_role("button", name="Optimize…").focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("dialog")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    expect(tab.get_by_role("button", name="Optimize…")).to_be_focused()


def test_the_documentation_of_the_api_needs_no_other_host(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    visit = person(decider)
    visit.tab.goto(f"{decider.url}/docs")
    expect(visit.tab.get_by_text("/v1/table-rows", exact=True).first).to_be_visible()
    assert len(visit.requested) > 3


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
