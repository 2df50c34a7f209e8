"""Each button has its effect in the API; what changes a table asks first, and a dry run comes before a rewrite."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands
from shared.queue.model import RunResult
from tests.support.browser import Visit
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.queue_bench import end_of
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.browser, pytest.mark.usefixtures("orders")]

TABLE = "/v1/tables/sales.orders"


def press(tab: Page, name: str, *, confirm: bool = False) -> None:
    tab.get_by_role("button", name=name, exact=True).first.click()
    if confirm:
        tab.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def override(decider: LiveDecider, name: str) -> Any:
    return decider.get(TABLE)["properties"].get(name)


def test_optimize_shows_its_plan_first_and_then_makes_the_jobs(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    for job in decider.get("/v1/jobs", state="queued")["jobs"]:
        decider.client.delete(f"/v1/jobs/{job['id']}")
    visit = person(decider)
    tab = visit.open("tables/sales.orders")
    press(tab, "Optimize…")
    dialog = tab.get_by_role("dialog")
    expect(dialog.locator(".plan-sentence")).to_contain_text("files would be replaced")
    assert visit.findings() == []
    assert decider.get("/v1/queue")["depth"]["queued"] == 0, "a dry run changes nothing"
    plan = decider.post(f"{TABLE}/optimize", {"dry_run": True}).json()
    assert plan["message"] == dialog.locator(".plan-sentence").inner_text()
    press(tab, f"Rewrite {plan['partitions']} partitions")
    expect(tab.locator(".notice")).to_contain_text("2 jobs")
    queued = decider.get("/v1/jobs", state="queued")["jobs"]
    assert {job["partition_label"] for job in queued} == {"dt=2026-01-01", "dt=2026-01-02"}
    assert {job["band"] for job in queued} == {"urgent"}


def test_the_mode_that_a_plan_names_can_be_chosen_there(
    decider: LiveDecider, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    few = WrittenTable(tmp_path / "few", days=("2026-01-01",))
    few.append(1)
    decider.register(few.path, "sales.few")
    visit = person(decider)
    tab = visit.open("tables/sales.few")
    press(tab, "Optimize…")
    dialog = tab.get_by_role("dialog")
    expect(dialog.locator(".plan-sentence")).to_contain_text("The mode idle would merge them now.")
    dialog.get_by_label("Mode").select_option("idle")
    press(tab, "Dry run")
    press(tab, "Rewrite 1 partition")
    expect(tab.locator(".notice")).to_contain_text("1 job")
    assert [job["table_name"] for job in decider.get("/v1/jobs", state="queued")["jobs"]].count("sales.few") == 1


@pytest.mark.long("page")
def test_a_partition_that_does_not_exist_is_reported_and_what_was_typed_stays(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    tab = person(decider).open("tables/sales.orders")
    press(tab, "Optimize…")
    tab.get_by_role("dialog").get_by_role("textbox").fill("no_such_column=1")
    press(tab, "Dry run")
    expect(tab.get_by_role("dialog").get_by_role("alert")).to_contain_text("no_such_column")
    expect(tab.get_by_role("dialog").get_by_role("textbox")).to_have_value("no_such_column=1")


@pytest.mark.long("page")
def test_pause_resume_disable_and_enable(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("tables/sales.orders")
    press(tab, "Pause")
    expect(tab.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    assert decider.get(TABLE)["paused"]
    press(tab, "Resume")
    expect(tab.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    assert not decider.get(TABLE)["paused"]
    press(tab, "Disable", confirm=True)
    expect(tab.get_by_role("button", name="Enable", exact=True)).to_be_visible()
    assert override(decider, "lakewright.enabled") == "false"
    decider.drain()
    assert decider.get("/v1/queue")["depth"]["queued"] == 0, "its jobs are cancelled"
    expect(tab.locator(".sub .badge")).to_have_text("disabled")


@pytest.mark.long("page")
def test_a_policy_is_tried_and_applied(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("tables/sales.orders?tab=what-if")
    expect(tab.get_by_text("Cost of each rule")).to_be_visible()
    tab.get_by_label("Properties to try, one per line").fill("fan-in = 4")
    press(tab, "Replay")
    press(tab, "Apply these properties")
    assert override(decider, "lakewright.fan-in") is None, "it asks first"
    tab.get_by_role("dialog").get_by_role("button", name="Apply these properties").click()
    expect(tab.locator(".notice")).to_contain_text("is changed")
    assert override(decider, "lakewright.fan-in") == "4"
    tab.goto(f"{decider.url}/#/tables/sales.orders?tab=policy")
    tab.get_by_label("One property per line: name = value").fill("lakewright.fan-in = none")
    press(tab, "Apply")
    expect(tab.locator(".notice.bad")).to_contain_text("fan-in")
    expect(tab.get_by_label("One property per line: name = value")).to_have_value("lakewright.fan-in = none")


@pytest.mark.long("page")
def test_jobs_are_expedited_and_cancelled_and_the_queue_is_paused(
    decider: LiveDecider, person: Callable[..., Visit]
) -> None:
    tab = person(decider).open("queue")
    last = decider.get("/v1/queue")["next"][-1]["id"]
    tab.get_by_role("button", name="Expedite").last.click()
    until("the job is the next one", lambda: decider.get("/v1/queue")["next"][0]["id"] == last)
    jobs = decider.get("/v1/queue")["depth"]["queued"]
    tab.get_by_role("button", name="Cancel").first.click()
    until("a job is cancelled", lambda: decider.get("/v1/queue")["depth"]["queued"] == jobs - 1)
    press(tab, "Pause the queue", confirm=True)
    expect(tab.get_by_role("button", name="Resume the queue")).to_be_visible()
    assert decider.get("/v1/queue")["settings"]["paused"] == "all"
    press(tab, "Resume the queue")
    expect(tab.get_by_role("button", name="Pause the queue")).to_be_visible()


@pytest.mark.long("page")
def test_a_tenant_gets_a_weight_and_a_quota(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("queue")
    press(tab, "Weight…")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Weight, 0.01 to 100").fill("2.5")
    dialog.get_by_label("Limit: 25% of the slots").fill("25%")
    press(tab, "Apply")
    expect(tab.locator(".notice")).to_contain_text("weight 2.5")
    settings = decider.get("/v1/queue")["settings"]
    assert {value for name, value in settings.items() if "tenant|" in name} == {"2.5", "25%"}


@pytest.mark.long("page")
def test_an_actor_is_drained(decider: LiveDecider, redis_url: str, person: Callable[..., Visit]) -> None:
    queue = SyncQueueExecutor(connect(redis_url), "default")
    about = ActorInfo(2, 1_767_276_187_000, "worker-7", {"lakewright": "0.1.0"})
    presence = Presence(queue, "worker-7-1", about, ttl_ms=600_000)
    presence.announce([], busy_slots=0)
    tab = person(decider).open("actors")
    press(tab, "Drain", confirm=True)
    expect(tab.locator(".card .badge")).to_have_text("draining")
    assert decider.get("/v1/actors")["actors"][0]["state"] == "draining"


@pytest.mark.long("page")
def test_a_quarantined_job_shows_its_error_as_text_and_is_retried(
    decider: LiveDecider, redis_url: str, person: Callable[..., Visit]
) -> None:
    """The error is markup, turns the direction of text, and is as long as the queue keeps it."""
    error = "<img src=x onerror=alert(1)>\u202e" + "x" * 10_000
    decider.client.patch("/v1/queue/settings", json={"max_attempts": 1})
    queue = SyncQueueExecutor(connect(redis_url), "default")
    (held,) = queue.run(commands.claim("default", worker="w-1", nonce="c-1", slots=1, lease_ms=600_000))
    visit = person(decider)
    tab = visit.open("queue")
    expect(tab.locator(".job").filter(has_text="first step")).to_have_count(1)
    queue.run(end_of(held, RunResult.FAIL, worker="w-1", cost_bytes=0, seen_version=-1, error=error))
    shown = tab.locator(".error-text").first
    expect(shown).to_contain_text("<img src=x onerror=alert(1)>")
    assert tab.locator(".error-text img").count() == 0
    assert visit.overflow() <= 0
    assert visit.findings() == []
    press(tab, "Retry now")
    until("the job is ready", lambda: decider.get("/v1/queue")["depth"]["quarantined"] == 0)


@pytest.mark.long("page")
def test_a_running_job_is_asked_to_stop(decider: LiveDecider, redis_url: str, person: Callable[..., Visit]) -> None:
    queue = SyncQueueExecutor(connect(redis_url), "default")
    (held,) = queue.run(commands.claim("default", worker="w-1", nonce="c-1", slots=1, lease_ms=600_000))
    tab = person(decider).open("queue")
    press(tab, "Stop", confirm=True)
    expect(tab.locator(".job").first).to_contain_text("stopping: ")
    (shown,) = decider.get("/v1/jobs", state="leased")["jobs"]
    assert shown["id"] == held.id
    assert shown["stop_reason"] != ""


@pytest.mark.long("page")
def test_a_table_is_registered_and_a_mistake_loses_nothing_typed(
    decider: LiveDecider, tmp_path: Path, person: Callable[..., Visit]
) -> None:
    table = WrittenTable(tmp_path / "clicks")
    tab = person(decider).open("tables")
    press(tab, "Register a table")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Name (optional)").fill("web.clicks")
    dialog.get_by_label("Tenant (optional)").fill("web")
    dialog.get_by_label("Location").fill("no-scheme://nowhere")
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(tab.locator(".notice.bad")).to_contain_text("no-scheme")
    expect(dialog.get_by_label("Name (optional)")).to_have_value("web.clicks")
    dialog.get_by_label("Location").fill(str(table.path))
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(tab.get_by_role("heading", name="web.clicks", level=1)).to_be_visible()
    found = decider.get("/v1/tables/web.clicks")
    assert (found["tenant"], found["paused"]) == ("web", True)
