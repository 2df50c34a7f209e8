"""A browser for each module, a decider with tables for each test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Visit, started_browser, visit
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module: the driver owns an event loop, which tests of other modules must not meet."""
    with started_browser() as started:
        yield started


@pytest.fixture
def decider(redis_url: str) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


@pytest.fixture
def orders(decider: LiveDecider, tmp_path: Path) -> WrittenTable:
    """A registered table with jobs: more small files than the policy tolerates."""
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01", "2026-01-02"))
    table.append(12)
    decider.register(table.path, "sales.orders")
    return table


@pytest.fixture
def person(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open tabs; at the end none of them may have asked another host, broken the policy, or failed."""
    with ExitStack() as stack:

        def opened(decider: LiveDecider, **options: Any) -> Visit:
            return stack.enter_context(visit(browser, decider.url, **options))

        yield opened
