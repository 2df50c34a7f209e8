"""Each button's effect in the API and in the table's log: a real decider, a real actor with Spark, a real browser."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Visit, visit
from tests.support.live_decider import WrittenTable
from tests.support.stack import Process, Stack, commits_of
from tests.support.waiting import until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.long("page"),
]

FIRST, SECOND = "dt=2026-01-01", "dt=2026-01-02"
NAME = "sales.orders"
REWRITE_S = 120.0


@dataclass(frozen=True, slots=True)
class Scene:
    """One person at the page, one table, one actor."""

    stack: Stack
    orders: WrittenTable
    visit: Visit

    @property
    def tab(self) -> Page:
        return self.visit.tab

    @property
    def rewrites(self) -> int:
        """Rewritten partitions in the table's log, each as often as it was; one commit may have two of them."""
        found = 0
        for commit in commits_of(self.orders.path):
            if any("lakewright" in str(one.get("commitInfo", {}).get("userMetadata", "")) for one in commit):
                files = [one[kind] for one in commit for kind in ("add", "remove") if kind in one]
                assert {file["dataChange"] for file in files} == {False}
                found += len({file["partitionValues"]["dt"] for file in files})
        return found

    @property
    def queued(self) -> list[str]:
        """Partitions with a queued job, by the API."""
        return sorted(job["partition_label"] for job in self.stack.get("/v1/jobs", state="queued")["jobs"])

    @property
    def actor_state(self) -> str:
        return str(self.stack.get("/v1/actors")["actors"][0]["state"])

    def table(self) -> Any:
        return self.stack.get(f"/v1/tables/{NAME}")

    def press(self, name: str, *, confirm: bool = False, then: str = "") -> None:
        """Press a button, answer its question, and wait until the button `then` is shown."""
        self.tab.get_by_role("button", name=name, exact=True).first.click()
        if confirm:
            self.tab.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
        if then:
            expect(self.tab.get_by_role("button", name=then, exact=True).first).to_be_visible()

    def press_of_job(self, partition: str, name: str) -> None:
        self.tab.locator(".job").filter(has_text=partition).get_by_role("button", name=name).click()

    def expect_rewrites(self, what: str, rewrites: int) -> None:
        until(what, lambda: self.rewrites >= rewrites, seconds=REWRITE_S)
        assert self.rewrites == rewrites

    def add_files(self, day: str) -> None:
        """Commit small files, and wait until the decider has evaluated them."""
        self.orders.append(6, days=(day.removeprefix("dt="),))
        self.stack.post("/v1/events", {"table": NAME, "version": self.orders.version}).raise_for_status()
        until("the state has the commits", lambda: self.table()["state"]["version"] == self.orders.version)

    def newest_removals(self) -> list[Any]:
        """What the newest commit removes."""
        return [one["remove"] for one in commits_of(self.orders.path)[-1] if "remove" in one]


@pytest.fixture
def scene(browser: Browser, stack: Stack) -> Iterator[Scene]:
    orders = WrittenTable(stack.tables / "orders", days=("2026-01-01", "2026-01-02"))
    for partition in (FIRST, SECOND):
        orders.append(7, days=(partition.removeprefix("dt="),))
    stack.decider(LAKEWRIGHT_DISCOVERY_S="0")
    with visit(browser, stack.url) as opened:
        yield Scene(stack, orders, opened)


def register(scene: Scene) -> None:
    """A table that is registered paused has jobs that wait."""
    scene.visit.open("tables")
    scene.press("Register a table")
    dialog = scene.tab.get_by_role("dialog")
    dialog.get_by_label("Location").fill(str(scene.orders.path))
    dialog.get_by_label("Name (optional)").fill(NAME)
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(scene.tab.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    assert scene.table()["paused"]
    until("both partitions have a job", lambda: scene.queued == [FIRST, SECOND])


def cancel_expedite_and_resume(scene: Scene) -> None:
    """Only the partition whose job was not cancelled is rewritten."""
    scene.visit.open("queue")
    scene.press("Show jobs")
    scene.press_of_job(SECOND, "Cancel")
    until("one job is left", lambda: scene.queued == [FIRST])
    scene.press_of_job(FIRST, "Expedite")
    until("it is urgent", lambda: scene.stack.get("/v1/jobs", state="queued")["jobs"][0]["band"] == "urgent")
    assert scene.rewrites == 0, "a paused table is not rewritten"
    scene.visit.open(f"tables/{NAME}")
    scene.press("Resume", then="Pause")
    scene.expect_rewrites("the first partition is rewritten", 1)
    assert {one["partitionValues"]["dt"] for one in scene.newest_removals()} == {"2026-01-01"}


def optimize(scene: Scene) -> None:
    """The log gets what the dry run announced, and nothing before."""
    scene.press("Optimize…")
    expect(scene.tab.locator(".plan-sentence")).to_contain_text("files would be replaced")
    plan = scene.stack.post(f"/v1/tables/{NAME}/optimize", {"dry_run": True}).json()
    assert [one["partition_label"] for one in plan["plans"]] == [SECOND]
    assert scene.rewrites == 1, "a dry run changes nothing"
    scene.press("Rewrite 1 partition")
    scene.expect_rewrites("the second partition is rewritten", 2)
    assert len(scene.newest_removals()) == plan["plans"][0]["files_replaced"]


def pause_and_disable(scene: Scene) -> None:
    """New files stay as they are until the table is enabled and resumed."""
    scene.press("Pause", then="Resume")
    scene.add_files(FIRST)
    until("its job waits", lambda: scene.queued == [FIRST])
    scene.press("Disable", confirm=True, then="Enable")
    until("its job is cancelled", lambda: scene.queued == [])
    scene.press("Resume", then="Pause")
    scene.add_files(SECOND)
    assert scene.queued == [], "a disabled table has no jobs"
    assert scene.rewrites == 2
    scene.press("Enable", confirm=True, then="Disable")
    scene.expect_rewrites("both partitions are rewritten", 4)


def apply_a_property(scene: Scene) -> None:
    """The next decision follows it, and so does the log."""
    scene.visit.open(f"tables/{NAME}?tab=policy")
    text = scene.tab.get_by_label("One property per line: name = value")
    text.fill("lakewright.min-input-files = 40")
    scene.press("Apply")
    until("it is set", lambda: scene.table()["properties"] == {"lakewright.min-input-files": "40"})
    scene.add_files(FIRST)
    assert scene.queued == [], "six files are fewer than forty"
    assert scene.rewrites == 4
    text.fill("lakewright.min-input-files = 4")
    scene.press("Apply")
    scene.expect_rewrites("the files are rewritten", 5)


def pause_the_queue_and_drain(scene: Scene, actor: Process) -> None:
    """The drained actor takes no job, and what is queued stays queued."""
    scene.visit.open("queue")
    scene.press("Pause the queue", confirm=True, then="Resume the queue")
    scene.add_files(SECOND)
    until("its job waits", lambda: scene.queued == [SECOND])
    scene.visit.open("actors")
    scene.press("Drain", confirm=True)
    until("the actor is drained", lambda: scene.actor_state == "drained", seconds=REWRITE_S)
    expect(scene.tab.locator(".card .badge")).to_have_text("drained")
    scene.visit.open("queue")
    scene.press("Resume the queue", then="Pause the queue")
    assert actor.terminate() == 0
    assert (scene.queued, scene.rewrites) == ([SECOND], 5)


def unregister(scene: Scene) -> None:
    """Its jobs and its state are deleted; its log is as it was."""
    newest = scene.orders.version
    scene.visit.open(f"tables/{NAME}")
    scene.press("Unregister", confirm=True)
    expect(scene.tab.get_by_role("heading", name="Tables", level=1)).to_be_visible()
    until("no job is left", lambda: scene.queued == [])
    assert scene.stack.get("/v1/table-rows")["rows"] == []
    assert scene.orders.version == newest


def test_every_button_has_its_effect_in_the_api_and_in_the_tables_log(scene: Scene) -> None:
    """One table and one actor, as Spark takes long to start."""
    actor = scene.stack.actor()
    until("the actor takes jobs", lambda: (scene.stack.folder / "data" / "actor.ready").exists(), seconds=REWRITE_S)
    register(scene)
    cancel_expedite_and_resume(scene)
    optimize(scene)
    pause_and_disable(scene)
    apply_a_property(scene)
    pause_the_queue_and_drain(scene, actor)
    unregister(scene)
