"""Under contention each table and tenant uses its quota in full and no more; what is oversold is shown."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor
from shared.queue import commands
from shared.queue.model import Band, Claim, JobKey, JobRequest, RunResult
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.waiting import until

pytestmark = pytest.mark.redis

QUEUE, SLOTS = "default", 10
PARTITIONS = 12
"""Jobs of each table that wait at any time: more than there are slots."""

RUNS = 1_300
"""More than the history that occupation is computed from, so that it covers nothing but contention."""


class Contention:
    """Ten slots that are never idle, and tables with more jobs than that."""

    def __init__(self, queue: SyncQueueExecutor, tenants: Mapping[str, str]) -> None:
        """Set the tenant of each table."""
        self._queue = queue
        self._tenants = tenants
        self._dice = random.Random(17)
        self._nonces = 0
        self._running: dict[str, Claim] = {}

    def add(self, table: str, partition: int) -> None:
        key = JobKey(table, f"p={partition}", "compact")
        self._queue.run(commands.enqueue(QUEUE, JobRequest(key, self._tenants[table], Band.NORMAL, 5, 1 << 20, 1)))

    def claim(self, worker: str) -> None:
        (claim,) = self._queue.run(commands.claim(QUEUE, worker=worker, nonce=self._nonce(), slots=1, lease_ms=600_000))
        self._running[worker] = claim

    def go_on(self) -> None:
        """End a job at random, add it again, and fill the slot; what was claimed last may end first."""
        worker = self._dice.choice(list(self._running))
        claim = self._running.pop(worker)
        how: Any = {"worker": worker, "nonce": self._nonce(), "cost_bytes": 1 << 20, "seen_version": 1}
        self._queue.run(commands.finish(QUEUE, id=claim.id, token=claim.token, run_result=RunResult.DONE, **how))
        self.add(claim.key.table, int(claim.key.partition.removeprefix("p=")))
        self.claim(worker)

    def _nonce(self) -> str:
        self._nonces += 1
        return f"n{self._nonces}"


@pytest.fixture
def decider(redis_url: str, queue: SyncQueueExecutor) -> Iterator[LiveDecider]:
    """A decider that knows of ten slots."""
    about = ActorInfo(slots=SLOTS, started_ms=1, host="h", versions={})
    Presence(queue, "a-1", about, ttl_ms=600_000).announce([], busy_slots=0)
    live = LiveDecider(decider_settings(redis_url)).start()
    until("the slots are known", lambda: live.get("/v1/queue")["slots"] == SLOTS)
    yield live
    live.close()


def played(queue: SyncQueueExecutor, tenants: Mapping[str, str]) -> None:
    contention = Contention(queue, tenants)
    for table in tenants:
        for partition in range(PARTITIONS):
            contention.add(table, partition)
    for slot in range(SLOTS):
        contention.claim(f"w{slot}")
    for _ in range(RUNS):
        contention.go_on()


def tables_with_quotas(decider: LiveDecider, folder: Path, quotas: Sequence[str]) -> list[str]:
    """Register tables of one tenant with these quotas, whose own work is out of the way; return their ids."""
    ids: list[str] = []
    for number, quota in enumerate(quotas):
        path = WrittenTable(folder / f"t{number}").path
        properties = {"lakewright.quota": quota}
        body = {"location": str(path), "name": f"t{number}", "properties": properties}
        assert decider.post("/v1/tables", body).status_code == httpx.codes.CREATED
        decider.drain()
        known = decider.run(decider.services.tables.registry.find(f"t{number}"))
        assert known is not None
        ids.append(known.id)
    for job in decider.get("/v1/jobs")["jobs"]:
        decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    return ids


@pytest.mark.parametrize(
    ("quotas", "occupations"),
    [
        (["0.5", "0.3", "0.2"], [1, 1, 1]),
        # Half of what is promised is there, so each gets half of its own, and none more because it asks more often.
        (["0.8", "0.6", "0.4", "0.2"], [0.5, 0.5, 0.5, 0.5]),
    ],
    ids=["as-promised", "overcommitted"],
)
def test_every_table_uses_the_same_part_of_its_quota_and_all_of_it_where_there_is_enough(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path, quotas: list[str], occupations: list[float]
) -> None:
    ids = tables_with_quotas(decider, tmp_path, quotas)
    played(queue, dict.fromkeys(ids, "default"))
    shown = decider.get("/v1/queue")
    occupied = shown["quota_occupation"]["tables"]
    print(f"\n{[occupied[one] for one in ids]} of {quotas} in {shown['occupancy_window_s']:.1f} s")
    assert [occupied[one] for one in ids] == pytest.approx(occupations, rel=0.25)


def test_a_table_whose_quota_is_less_than_a_slot_and_a_lowered_one_are_shown_as_oversold(
    decider: LiveDecider, queue: SyncQueueExecutor, tmp_path: Path
) -> None:
    tiny, large = tables_with_quotas(decider, tmp_path, ["0.05", "0.9"])
    played(queue, dict.fromkeys([tiny, large], "default"))
    before = decider.get("/v1/queue")["quota_occupation"]["tables"]
    # One slot of ten is twice its quota.
    assert before[tiny] == pytest.approx(2, rel=0.2)
    assert before[large] == pytest.approx(1, rel=0.2)
    # No run is ended for it: the slots that it has count against the quota that it has now.
    lowered = {"scope": "table", "name": large, "quota_percent": 30}
    decider.client.put("/v1/queue/weights", json=lowered).raise_for_status()
    after = decider.get("/v1/queue")["quota_occupation"]["tables"]
    assert after[large] == pytest.approx(3, rel=0.2)
    ran = decider.command("queue", "show")
    assert ran.exit_code == 0, ran.output
    rows = [line.split() for line in ran.output.splitlines() if line.startswith("table ") and "oversold" in line]
    assert [(row[1], row[3]) for row in rows] == [("t0", "5%"), ("t1", "30%")]


def test_a_table_that_is_only_paused_has_no_share_that_is_listed(decider: LiveDecider, tmp_path: Path) -> None:
    """Discovery pauses what it finds: a list of a thousand of them would hide the few with a quota."""
    paused, limited = tables_with_quotas(decider, tmp_path, ["none", "0.5"])
    for name in ("t0", "t1"):
        decider.post(f"/v1/tables/{name}/pause", {})
    assert decider.get("/v1/queue")["settings"][f"limit:table|{paused}"] == "!"
    shown = decider.command("queue", "show").output
    assert "t0" not in shown
    assert paused not in shown
    assert limited not in shown
    assert re.search(r"table +t1 +\S+ +50%", shown)


def test_tenants_have_quotas_too_and_a_limit_counts_as_one(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    for body in (
        {"scope": "tenant", "name": "a", "quota_percent": 40},
        {"scope": "tenant", "name": "b", "limit": 6},
        {"scope": "table", "name": "none", "limit": 100},
    ):
        decider.client.put("/v1/queue/weights", json=body).raise_for_status()
    played(queue, {"one": "a", "two": "a", "three": "b"})
    shown = decider.get("/v1/queue")["quota_occupation"]
    assert [shown["tenants"][name] for name in "ab"] == pytest.approx([1, 1], rel=0.2)
    assert shown["tables"] == {"none": 0}
    assert decider.get("/v1/queue", by_table=False)["quota_occupation"]["tables"] == {}
