"""A hundred thousand tables and ten thousand queued jobs are shown whole; times, bytes and CPU are printed."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest
from playwright.sync_api import expect

from decider.state.table_summary import TableSummary
from decider.store.tables.table_state import TableState
from shared.queue import commands, keys
from shared.queue.model import Band, JobKey, JobRequest
from shared.table import TableId, TableMetadata, TableProtocol, TableRef
from tests.support.browser import Visit
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.time_limits import scaled

TABLES, JOBS, PAGES = 100_000, 10_000, 10
QUEUE = "default"

pytestmark = [
    pytest.mark.redis,
    pytest.mark.browser,
    pytest.mark.timeout(1_500),
    pytest.mark.long("page"),
]

SCROLL = """async () => {
  const list = document.querySelector('.virtual');
  const frames = [];
  let last = performance.now();
  for (let step = 0; step < 120; step += 1) {
    list.scrollTop += 4000;
    await new Promise(resolve => requestAnimationFrame(resolve));
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames.sort((a, b) => a - b);
}"""


def fill(live: LiveDecider, seed: int) -> None:
    """Write what registrations, commits and jobs would have left, without a log for each table."""
    random_ = random.Random(seed)
    redis = live.services.operations.redis

    async def write() -> None:
        for start in range(0, TABLES, 1_000):
            async with redis.pipeline(transaction=False) as pipe:
                for number in range(start, start + 1_000):
                    table = TableRef(
                        TableId(f"t-{number}"), f"area{number % 97}.table_{number:06d}", f"file:///lake/{number}",
                        tenant=f"tenant-{number % 40}",
                    )  # fmt: skip
                    files = random_.randint(1, 5_000)
                    summary = TableSummary(files, files << 20, files // 2, files << 50, 1 << 27, is_enabled=True)
                    head = (7, TableMetadata("u", (), {}), TableProtocol(1, 2), "p")
                    state = TableState(*head, commit_ms=1_760_000_000_000, summary=summary)
                    pipe.hset(keys.TABLES, table.id, json.dumps(asdict(table)))
                    pipe.hset(keys.TABLE_NAMES, table.name, table.id)
                    pipe.zadd(keys.TABLE_ORDER, {table.name: 0})
                    pipe.hset(keys.table_state(QUEUE, table.id), mapping=state.encode())
                pipe.incr(keys.TABLES_REVISION)
                await pipe.execute()
        executor = live.services.queue.executor
        for number in range(JOBS):
            key = JobKey(TableId(f"t-{number % 3_000}"), f'{{"d":"{number}"}}', "compact")  # type: ignore[arg-type]
            request = JobRequest(key, f"tenant-{number % 40}", Band.NORMAL, 5, 1 << 20, 7)
            await executor.run(commands.enqueue(QUEUE, request))

    assert live._loop is not None
    asyncio.run_coroutine_threadsafe(write(), live._loop).result(scaled(600))


@pytest.fixture(scope="module")
def many(redis_server: Any) -> Iterator[LiveDecider]:
    with redis_server.client() as client:
        client.flushall()
    live = LiveDecider(decider_settings(redis_server.url)).start()
    fill(live, 11)
    yield live
    live.close()


def test_all_rows_can_be_scrolled_to_and_only_the_visible_ones_exist(
    many: LiveDecider, person: Callable[..., Visit]
) -> None:
    figures: dict[str, Any] = {}
    for start in ("cold", "warm"):
        visit = person(many)
        began_s = time.monotonic()
        tab = visit.open("tables?sort=files&order=descending" if start == "warm" else "tables")
        tab.locator(".table-row .name a").first.wait_for()
        figures[f"first rows, {start} index, s"] = round(time.monotonic() - began_s, 2)
        expect(tab.locator(".sub")).to_have_text("100k tables", timeout=scaled(60_000))
        figures[f"all figures, {start} index, s"] = round(time.monotonic() - began_s, 2)
    frames = tab.evaluate(SCROLL)
    figures["scrolling, ms per frame: median, 95%"] = (round(frames[60], 1), round(frames[114], 1))
    expect(tab.locator(".unread-row")).to_have_count(0, timeout=scaled(60_000))
    assert tab.locator(".table-row").count() < 100, "only the visible rows exist"
    tab.get_by_role("searchbox").fill("table_0999")
    expect(tab.locator(".sub")).to_contain_text("100 of 100k tables")
    sizes = tab.evaluate(
        "performance.getEntriesByType('resource')"
        ".map(one => [one.name.split('?')[0].split('/').pop(), one.transferSize])"
    )
    figures["bytes of the page's files"] = sum(
        size for name, size in sizes if "." in name and not name.startswith("table-")
    )
    figures["bytes of one page of rows"] = max(size for name, size in sizes if name == "table-rows")
    print(json.dumps(figures))


def test_a_queue_of_ten_thousand_jobs_is_shown(many: LiveDecider, person: Callable[..., Visit]) -> None:
    began_s = time.monotonic()
    tab = person(many).open("queue")
    tab.locator(".list tbody tr").first.wait_for()
    took_s = time.monotonic() - began_s
    print(json.dumps({"queue of 10,000 jobs, s": round(took_s, 2)}))
    expect(tab.locator(".figure").filter(has_text="Queued").locator(".figure-value")).to_have_text("10k")


def test_ten_open_pages_stay_connected_while_a_table_moves_each_second(
    many: LiveDecider, person: Callable[..., Visit]
) -> None:
    """Nothing happens meanwhile, then a table moves each second; the CPU is that of the whole test process."""
    visits = [person(many) for _ in range(PAGES)]
    for visit in visits:
        visit.open("tables").locator(".table-row .name a").first.wait_for()
    shares = {}
    for name, moves in (("idle", False), ("a table moves each second", True)):
        began_s, cpu_s = time.monotonic(), time.process_time()
        while time.monotonic() - began_s < 15:
            if moves:
                many.run(_move(many))
            visits[0].tab.wait_for_timeout(1_000)
        shares[name] = round((time.process_time() - cpu_s) / (time.monotonic() - began_s), 3)
    print(json.dumps({"share of a core with ten open pages": shares}))
    for visit in visits:
        expect(visit.tab.locator(".connection")).to_have_text("Live")


async def _move(live: LiveDecider) -> None:
    moved = keys.changed_tables(QUEUE)
    await live.services.operations.redis.zadd(moved, {f"t-{random.randrange(TABLES)}": int(time.time() * 1000)})
