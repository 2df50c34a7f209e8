"""Everything that a pointer can do is done by keys alone: each control is reached by Tab, shows that, and works."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Visit
from tests.support.live_decider import LiveDecider
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.browser, pytest.mark.usefixtures("orders"), pytest.mark.long("page")]

TABLE = "/v1/tables/sales.orders"
TABS = ("layout", "partitions", "decisions", "rewrites", "policy", "what-if")
VIEWS = ("", "tables", "queue", "actors", "advice", *(f"tables/sales.orders?tab={tab}" for tab in TABS))
MAX_STOPS = 400

CONTROLS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter(one => !one.disabled && one.checkVisibility() && one.getBoundingClientRect().width > 0)
  .map((one, at) => { one.dataset.control = String(at); return one.outerHTML.slice(0, 120); })"""

FOCUSED = """() => { const one = document.activeElement; if (one === null || one === document.body) return null;
  const style = getComputedStyle(one);
  return [one.dataset.control ?? null, style.outlineStyle !== 'none' || style.boxShadow !== 'none']; }"""


def press_tab_to(tab: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    expect(wanted).to_be_visible()
    for _ in range(MAX_STOPS):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        tab.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")


def use(tab: Page, name: str, *, within: str = "body") -> None:
    """Press a button with keys alone."""
    press_tab_to(tab, tab.locator(within).get_by_role("button", name=name, exact=True).first)
    tab.keyboard.press("Enter")


@pytest.mark.parametrize("path", VIEWS)
def test_every_control_of_a_view_is_reached_by_tab_and_shows_that_it_has_the_focus(
    decider: LiveDecider, person: Callable[..., Visit], path: str
) -> None:
    tab = person(decider).open(path)
    expect(tab.locator(".connection")).to_have_text("Live")
    expect(tab.get_by_text("Loading…")).to_have_count(0)
    controls = tab.evaluate(CONTROLS)
    reached: dict[str, bool] = {}
    for _ in range(len(controls) + 10):
        tab.keyboard.press("Tab")
        focused = tab.evaluate(FOCUSED)
        if focused is not None and focused[0] is not None:
            reached[focused[0]] = focused[1] or reached.get(focused[0], False)  # a date has several parts
    assert [text for at, text in enumerate(controls) if str(at) not in reached] == []
    assert [controls[int(at)] for at, is_shown in reached.items() if not is_shown] == []


def test_actions_on_a_table_are_done_by_keys_alone(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    for job in decider.get("/v1/jobs", state="queued")["jobs"]:
        decider.client.delete(f"/v1/jobs/{job['id']}")
    tab = person(decider).open("tables")
    press_tab_to(tab, tab.locator(".table-row .name a").first)
    tab.keyboard.press("Enter")
    use(tab, "Optimize…")
    expect(tab.locator(".plan-sentence")).to_contain_text("files would be replaced")
    use(tab, "Rewrite 2 partitions", within="dialog, [role=dialog]")
    until("the jobs are queued", lambda: decider.get("/v1/queue")["depth"]["queued"] == 2)
    use(tab, "Pause")
    until("it is paused", lambda: bool(decider.get(TABLE)["paused"]))
    use(tab, "Disable")
    use(tab, "Disable", within="dialog, [role=dialog]")
    until("it is disabled", lambda: decider.get(TABLE)["properties"].get("lakewright.enabled") == "false")
    use(tab, "Enable")
    use(tab, "Enable", within="dialog, [role=dialog]")
    until("it is enabled", lambda: decider.get(TABLE)["properties"].get("lakewright.enabled") != "false")


def test_a_policy_is_typed_and_applied_by_keys_alone(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("tables/sales.orders?tab=policy")
    press_tab_to(tab, tab.get_by_label("One property per line: name = value"))
    tab.keyboard.type("lakewright.fan-in = 4")
    use(tab, "Apply")
    until("it is set", lambda: decider.get(TABLE)["properties"] == {"lakewright.fan-in": "4"})


def test_the_queue_is_steered_by_keys_alone(decider: LiveDecider, person: Callable[..., Visit]) -> None:
    tab = person(decider).open("queue")
    use(tab, "Expedite")
    until("a job is urgent", lambda: "urgent" in {job["band"] for job in decider.get("/v1/queue")["next"]})
    use(tab, "Cancel")
    until("a job is cancelled", lambda: decider.get("/v1/queue")["depth"]["queued"] == 1)
    use(tab, "Weight…")
    dialog = "dialog, [role=dialog]"
    press_tab_to(tab, tab.locator(dialog).get_by_label("Weight, 0.01 to 100"))
    tab.keyboard.type("2.5")
    use(tab, "Apply", within=dialog)
    until("it has the weight", lambda: "2.5" in decider.get("/v1/queue")["settings"].values())
    use(tab, "Pause the queue")
    use(tab, "Pause the queue", within=dialog)
    until("it is paused", lambda: decider.get("/v1/queue")["settings"].get("paused") == "all")
