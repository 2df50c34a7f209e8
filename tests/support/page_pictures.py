"""Pictures of every view of the page on a running demo, in light and dark, wide and on a phone, for people to look at.

`python -m tests.support.page_pictures FOLDER` takes them all. Those that docs/pictures keeps are copied from there, but
for what a demo may not show, a queue with groups, advice and a plan: these are of tests' deciders.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from tests.support.browser import PHONE, WIDE, started_browser, visit
from tests.support.time_limits import scaled
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
DEMO_S, REWRITES, SAMPLES, START_S = 900, 8, 4, 600.0
TABS = ("layout", "history", "partitions", "decisions", "rewrites", "policy", "what-if")
ADDRESS = re.compile(r"(http://[\d.:]+)/#/tables/(\S+)")


def main(folder: Path) -> None:
    """Start the demo, wait for some rewrites, and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background jobs ignore it, and so would the demo
    with demo() as (url, table), started_browser() as browser:
        until("the table was rewritten", lambda: rewrites(url) >= REWRITES, seconds=START_S)
        until("the history can be drawn", lambda: len(ask(url, "history")["points"]) >= SAMPLES, seconds=START_S)
        views = {
            "overview": "",
            "tables": "tables",
            **{f"table-{tab}": f"tables/{table}?tab={tab}" for tab in TABS},
            "queue": "queue",
            "actors": "actors",
            "advice": "advice",
        }
        for size_name, size in (("wide", WIDE), ("phone", PHONE)):
            for scheme in ("light", "dark"):
                options: dict[str, Any] = {"viewport": size, "color_scheme": scheme, "device_scale_factor": 1}
                with visit(browser, url, **options) as opened:
                    for name, path in views.items():
                        show(opened.open(path), name)
                        file = folder / f"{name}-{size_name}-{scheme}.png"
                        opened.tab.screenshot(path=file, full_page=size_name == "phone")
                    show(opened.open(f"tables/{table}"), "optimize")
                    opened.tab.screenshot(path=folder / f"optimize-{size_name}-{scheme}.png")
                    print(f"{size_name} {scheme}: {len(views) + 1} pictures in {folder}", flush=True)


def show(tab: Page, name: str) -> None:
    """Wait until a view has its data; some need a button for it."""
    tab.locator(".connection.live").wait_for()
    tab.locator("h1").first.wait_for()
    until("the view has its data", lambda: tab.get_by_text("Loading…").count() == 0)
    if name == "optimize":
        tab.get_by_role("button", name="Optimize…").click()
        tab.locator(".plan-sentence").wait_for()
    if name == "table-what-if":
        tab.get_by_text("Cost of each rule").wait_for()
    if name == "table-partitions":
        tab.locator(".tile").first.click()
        tab.locator(".partition-decisions").wait_for()


def rewrites(url: str) -> int:
    return int(ask(url, "status")["funnel"].get("rewrites", 0))


def ask(url: str, what: str) -> Any:
    return httpx.get(f"{url}/v1/{what}", timeout=scaled(30), trust_env=False).raise_for_status().json()


def _kept(line: str, printed: list[str]) -> str:
    printed.append(line)
    return line


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """Yield the address of a running demo and the name of its table."""
    process = subprocess.Popen(
        [sys.executable, "-m", "services.demo", "--seconds", str(DEMO_S)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        printed: list[str] = []
        found = next((match for line in process.stdout if (match := ADDRESS.search(_kept(line, printed)))), None)
        if found is None:
            raise RuntimeError("the demo ended before it named its address:\n" + "".join(printed))
        yield found[1], found[2]
    finally:
        process.send_signal(signal.SIGINT)  # it ends what it started
        process.wait(scaled(60))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
