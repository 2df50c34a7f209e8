"""One decider serves several groups of its queue: each has actors, policy and limits of its own, and its own tables."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from decider.store.queue.queue_admin import QueueAdmin
from decider.store.queue.run_queries import JobStage
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.registry.operator_settings import OperatorSettings
from shared.queue import keys
from shared.queue.model import RunResult
from shared.queue.records import RunRecord
from tests.support.group_workers import ACTORS, ETL, QUEUE, SLOTS, Workers
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.stack import Stack
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis

GROUPS: dict[str, dict[str, str]] = {"etl": {"lakewright.job-order": "balanced"}, "nightly": {}}


@pytest.fixture
def workers(redis_url: str) -> Iterator[dict[str, Workers]]:
    found = {queue: Workers(redis_url, queue) for queue in (QUEUE, ETL)}
    yield found
    for one in found.values():
        one.close()


@pytest.fixture
def decider(redis_url: str, workers: dict[str, Workers]) -> Iterator[LiveDecider]:
    """A decider that knows the slots of the groups that have actors."""
    with LiveDecider(decider_settings(redis_url, groups=GROUPS)) as live:
        known = [keys.group_of(queue) or queue for queue in workers]
        until("slots are known", lambda: all(live.get("/v1/queue", group=group)["slots"] for group in known))
        yield live


def groups(decider: LiveDecider) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = decider.get("/v1/groups")["groups"]
    return found


def add(decider: LiveDecider, path: Path, **properties: str) -> str:
    """Register a table that has something to do; return its id."""
    write(path)
    given = {f"lakewright.{name.replace('_', '-')}": value for name, value in properties.items()}
    answer = decider.post("/v1/tables", {"location": str(path), "name": path.name, "properties": given})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    decider.drain()
    return str(answer.json()["id"])


def write(path: Path) -> None:
    """Write a table with three partitions, each of which is worth a job."""
    written = WrittenTable(path)
    for day in written.days:
        written.append(6, days=[day], rows=50)


def waiting(decider: LiveDecider, group: str) -> set[str]:
    return set(decider.get("/v1/queue", group=group)["tables"])


def cli(decider: LiveDecider, *words: str) -> str:
    done = decider.command(*words)
    assert done.exit_code == 0, done.output
    return done.output


def test_each_group_has_its_tables_alone_and_a_table_without_one_is_in_the_queue_itself(
    decider: LiveDecider, workers: dict[str, Workers], tmp_path: Path
) -> None:
    plain, etl = add(decider, tmp_path / "plain"), add(decider, tmp_path / "etl", queue="etl")
    assert (waiting(decider, "default"), waiting(decider, "etl"), waiting(decider, "nightly")) == (
        {plain},
        {etl},
        set(),
    )
    taken = {queue: {one.key.table for one in each.claim(32)} for queue, each in workers.items()}
    assert taken == {QUEUE: {plain}, ETL: {etl}}
    shown = {table: decider.get(f"/v1/tables/{table}") for table in ("plain", "etl")}
    assert {name: one["group"] for name, one in shown.items()} == {"plain": "default", "etl": "etl"}
    until("the list has both", lambda: decider.get("/v1/table-rows")["groups"] == {"default": 1, "etl": 1})
    rows = decider.get("/v1/table-rows", group="etl")
    assert [(row["name"], row["group"]) for row in rows["rows"]] == [("etl", "etl")]
    assert rows["groups"] == {"default": 1, "etl": 1}, "the others can be chosen"
    assert {job["table"] for job in decider.get("/v1/jobs", state="leased")["jobs"]} == {plain, etl}
    assert "leased" in cli(decider, "queue", "show", "--group", "etl")


def test_a_group_gives_its_tables_defaults_that_their_own_properties_override(
    decider: LiveDecider, tmp_path: Path
) -> None:
    for name, more in (("plain", {}), ("etl", {"queue": "etl"}), ("own", {"queue": "etl", "job_order": "benefit"})):
        add(decider, tmp_path / name, **more)
    found = {name: decider.get(f"/v1/tables/{name}")["policy"]["values"] for name in ("plain", "etl", "own")}
    orders = {
        name: next(one for one in each if one["property"] == "lakewright.job-order") for name, each in found.items()
    }
    assert {name: (one["value"], one["source"]) for name, one in orders.items()} == {
        "plain": ("benefit", "default"),
        "etl": ("balanced", "group"),
        "own": ("benefit", "request"),
    }


def test_a_table_that_moves_takes_its_waiting_jobs_along_and_none_is_lost_or_done_twice(
    decider: LiveDecider, workers: dict[str, Workers], tmp_path: Path
) -> None:
    """Partitions are waiting, running and requested by hand when the table moves there, and back, and there."""
    table = add(decider, tmp_path / "moved")
    requested = decider.post("/v1/tables/moved/optimize", {"force": True})
    assert requested.status_code == httpx.codes.ACCEPTED, requested.text
    wanted = {job["id"] for job in decider.get("/v1/jobs")["jobs"]}
    assert len(wanted) > 2
    (held,) = workers[QUEUE].claim()
    for group in ("etl", "default", "etl"):
        cli(decider, "tables", "change", "moved", "--set", f"queue={group}")
        decider.drain()
    assert waiting(decider, "default") == set()
    here = workers[ETL].claim(32)
    assert {one.id for one in here} == wanted - {held.id}
    workers[QUEUE].finish(held, RunResult.YIELD)
    (rest,) = workers[ETL].claim(32)
    assert rest.id == held.id
    for claim in (*here, rest):
        workers[ETL].finish(claim)
    runs = decider.run(decider.services.queue.runs.page(limit=100, stage=JobStage.FINISHED)).entries
    ended = [(run.id, run.group, run.run_result) for run in runs if isinstance(run, RunRecord)]
    assert Counter(ended) == Counter([*((job, "etl", "done") for job in wanted), (held.id, "", "yield")]), (
        "each job is done once, in the new group"
    )
    assert decider.get("/v1/jobs", table=table)["jobs"][0]["state"] == "finished"
    listed = {one: decider.get("/v1/jobs", state="finished", group=one)["jobs"] for one in ("default", "etl")}
    assert [job["result"] for job in listed["default"]] == ["yield"]
    assert Counter(job["result"] for job in listed["etl"]) == {"done": len(wanted)}
    assert decider.get("/v1/tables/moved")["group"] == "etl"


def test_a_paused_table_stays_paused_wherever_it_moves(
    decider: LiveDecider, workers: dict[str, Workers], tmp_path: Path
) -> None:
    add(decider, tmp_path / "held")
    cli(decider, "tables", "pause", "held")
    cli(decider, "tables", "change", "held", "--set", "queue=etl")
    decider.drain()
    assert workers[ETL].claim(32) == workers[QUEUE].claim(32) == ()
    assert decider.get("/v1/tables/held")["paused"] is True
    cli(decider, "tables", "resume", "held")
    assert workers[ETL].claim(32) != ()


def test_a_group_is_paused_by_itself_and_a_request_for_its_table_says_so(
    decider: LiveDecider, workers: dict[str, Workers], tmp_path: Path
) -> None:
    for name, group in (("plain", "default"), ("etl", "etl")):
        add(decider, tmp_path / name, queue=group)
    cli(decider, "queue", "pause", "--group", "etl")
    answers = {name: decider.post(f"/v1/tables/{name}/optimize", {"force": True}).json() for name in ("plain", "etl")}
    assert {name: answer["paused"] for name, answer in answers.items()} == {"plain": None, "etl": "queue"}
    assert workers[ETL].claim(32) == ()
    assert len(workers[QUEUE].claim(32)) == 3
    assert {one["group"]: one["is_paused"] for one in groups(decider)} == {
        "default": False,
        "etl": True,
        "nightly": False,
    }
    cli(decider, "queue", "resume", "--group", "etl")
    assert len(workers[ETL].claim(32)) == 3


def test_under_contention_each_table_uses_the_quota_that_its_own_group_gives(
    decider: LiveDecider, workers: dict[str, Workers], tmp_path: Path
) -> None:
    """Both groups have ten slots, always taken; quotas of the second one promise twice as many."""
    shares = {"default": ["0.7", "0.3"], "etl": ["0.8", "0.8", "0.4"]}
    tables = {
        group: [add(decider, tmp_path / f"{group}{n}", queue=group, quota=share) for n, share in enumerate(quotas)]
        for group, quotas in shares.items()
    }
    for job in decider.get("/v1/jobs", limit=100)["jobs"]:
        decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    played({workers[QUEUE]: tables["default"], workers[ETL]: tables["etl"]})
    found = {one["group"]: one for one in groups(decider)}
    used = {group: {one["table"]: one["occupation_ratio"] for one in found[group]["quotas"]} for group in shares}
    assert {group: set(each) for group, each in used.items()} == {name: set(ids) for name, ids in tables.items()}
    assert [used["default"][table] for table in tables["default"]] == pytest.approx([1, 1], abs=0.05)
    assert [used["etl"][table] for table in tables["etl"]] == pytest.approx([0.5] * 3, abs=0.1)
    assert [(found[name]["promised_ratio"], found[name]["is_oversold"]) for name in shares] == [(1, False), (2, True)]
    assert [found[name]["occupation_ratio"] for name in shares] == pytest.approx([1, 1], abs=0.05)
    for group, ids in tables.items():
        settings = decider.get("/v1/queue", group=group)["settings"]
        assert {name.partition("table|")[2] for name in settings if "table|" in name} == set(ids)
    assert "200% oversold" in cli(decider, "queue", "groups")


def played(served: dict[Workers, list[str]]) -> None:
    """Run jobs on slots that are never idle: of each table more wait than there are slots."""
    dice = random.Random(5)
    for workers, tables in served.items():
        for table in tables:
            for number in range(ACTORS * SLOTS + 2):
                workers.wait(table, f"p={number}")
        workers.running = list(workers.claim(ACTORS * SLOTS))
    for _ in range(900):
        for workers in served:
            ended = workers.running.pop(dice.randrange(len(workers.running)))
            workers.running += workers.go_on(ended)
            workers.wait(ended.key.table, ended.key.partition)


def test_a_killed_decider_comes_back_with_all_groups_and_ends_the_move_that_it_began(stack: Stack) -> None:
    """It is killed right after the property of a table has changed, whether it has read the table again or not."""
    first = stack.decider(LAKEWRIGHT_GROUPS="etl")
    ids = {}
    for name, group in (("plain", "default"), ("etl", "etl"), ("moved", "default")):
        write(stack.tables / name)
        given = {"location": str(stack.tables / name), "name": name, "properties": {"lakewright.queue": group}}
        ids[name] = stack.post("/v1/tables", given).raise_for_status().json()["id"]
    until("each table has jobs", lambda: len({job["table"] for job in queued(stack)}) == len(ids))
    until(
        "none is to come",
        lambda: all(len([j for j in queued(stack) if j["table"] == one]) == 3 for one in ids.values()),
    )
    for path, body in (
        ("/v1/queue/settings?group=etl", {"max_attempts": 3}),
        ("/v1/tables/moved", {"properties": {"lakewright.queue": "etl"}}),
    ):
        httpx.patch(stack.url + path, json=body, timeout=scaled(10)).raise_for_status()
    first.kill()
    stack.decider(LAKEWRIGHT_GROUPS="etl")
    until("the table has moved", lambda: stack.get("/v1/tables/moved")["group"] == "etl")
    until("its jobs have followed", lambda: set(stack.get("/v1/queue")["tables"]) == {ids["plain"]})
    taken = {}
    for queue in (QUEUE, ETL):
        workers = Workers(stack.redis.url, queue)
        taken[queue] = Counter(one.key.table for one in workers.claim(32))
        workers.close()
    assert taken == {QUEUE: {ids["plain"]: 3}, ETL: {ids["etl"]: 3, ids["moved"]: 3}}
    settings = {group: stack.get("/v1/queue/settings", group=group)["settings"] for group in ("default", "etl")}
    attempts = {group: {one["name"]: one["value"] for one in each}["max_attempts"] for group, each in settings.items()}
    assert attempts == {"default": 8, "etl": 3}


def queued(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.get("/v1/jobs", limit=100)["jobs"]
    return found


def test_a_decider_without_the_group_leaves_its_tables_alone_and_says_so(
    redis_url: str, workers: dict[str, Workers], tmp_path: Path
) -> None:
    """The jobs in it are withdrawn; once it is served again, the table is evaluated as a whole."""
    with LiveDecider(decider_settings(redis_url, groups=GROUPS)) as first:
        table = add(first, tmp_path / "etl", queue="etl")
        assert waiting(first, "etl") == {table}
    with LiveDecider(decider_settings(redis_url)) as second:
        second.sweep()
        assert second.get("/v1/jobs")["jobs"] == []
        assert "'etl'" in json.dumps(second.get("/v1/tables/etl")["policy"])
        answer = second.client.get("/v1/queue", params={"group": "etl"})
        assert answer.status_code == httpx.codes.NOT_FOUND
        known = second.services.operations.redis.zrange(keys.groups(QUEUE), 0, -1)
        second.run(second.services.queue.admin.audit())
        assert second.run(known) == []
    assert workers[ETL].claim(32) == workers[QUEUE].claim(32) == ()
    with LiveDecider(decider_settings(redis_url, groups=GROUPS)) as third:
        third.sweep()
        assert waiting(third, "etl") == {table}


def test_an_audit_hands_over_what_is_left_in_a_group_that_is_not_served_any_more(
    redis_url: str, workers: dict[str, Workers], tmp_path: Path
) -> None:
    """Its state moved without its jobs: the decider that moved the table died in between."""
    with LiveDecider(decider_settings(redis_url, groups=GROUPS)) as first:
        table = add(first, tmp_path / "etl", queue="etl")
        jobs = {job["id"] for job in first.get("/v1/jobs", state="queued")["jobs"]}
    state = keys.table_state(QUEUE, table)
    workers[QUEUE].executor.redis.hset(state, "group", "")

    async def audit() -> None:
        queue = AsyncQueueExecutor(connect(redis_url), QUEUE)
        await QueueAdmin(queue, OperatorSettings(queue, lambda: 1)).audit()
        await queue.redis.aclose()

    asyncio.run(audit())
    assert {one.id for one in workers[QUEUE].claim(32)} == jobs
    assert workers[ETL].claim(32) == ()


def test_a_list_of_jobs_goes_through_all_groups_page_by_page(decider: LiveDecider, tmp_path: Path) -> None:
    wanted: set[str] = set()
    for group in ("default", "etl", "nightly"):
        table = add(decider, tmp_path / f"t-{group}", queue=group)
        own = {job["id"] for job in decider.get("/v1/jobs", table=table)["jobs"]}
        assert {job["id"] for job in decider.get("/v1/jobs", group=group)["jobs"]} == own
        wanted |= own
    found: list[str] = []
    token: str | None = None
    while True:
        page = decider.get("/v1/jobs", limit=2, **({"page_token": token} if token else {}))
        found += [job["id"] for job in page["jobs"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert sorted(found) == sorted(wanted)
    assert len(found) == len(set(found)) > 3
    refused = decider.client.get("/v1/jobs", params={"page_token": "queued@other.1"})
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert decider.client.get("/v1/jobs", params={"group": "other"}).status_code == httpx.codes.NOT_FOUND


def test_metrics_have_the_group_as_a_label(decider: LiveDecider, tmp_path: Path) -> None:
    add(decider, tmp_path / "etl", queue="etl")
    jobs = len(decider.get("/v1/jobs", state="queued")["jobs"])
    text = decider.client.get("/metrics").text
    assert f'lakewright_jobs{{group="etl",state="queued"}} {jobs}.0' in text
    assert 'lakewright_jobs{group="default",state="queued"} 0.0' in text
    assert f'lakewright_slots{{group="etl"}} {ACTORS * SLOTS}.0' in text
    actors = decider.get("/v1/actors")
    assert Counter(one["group"] for one in actors["actors"]) == {"default": ACTORS, "etl": ACTORS}
    assert actors["slots"] == 2 * ACTORS * SLOTS
    own = decider.get("/v1/actors", group="etl")
    assert ({one["group"] for one in own["actors"]}, own["slots"]) == ({"etl"}, ACTORS * SLOTS)
