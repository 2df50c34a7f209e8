"""One slot with a queue and a table in memory: claims, the fence before each commit, and the rounds of a job."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from actor.engines import EngineSet
from actor.ports import EngineDied
from actor.worker import Worker, WorkerSettings
from shared.errors import LeaseLost, PermanentError, RetryableError
from shared.jobs.payload import SORT, RewriteKind
from shared.layout.partition_stats import SORT_LEVEL_TAG
from shared.policy.policy import MIB
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.table import PartitionKey
from tests.support.worker_world import EIGHT, PAYLOAD, POLICY, World

DAY_MS = 86_400_000


def lost() -> None:
    raise LeaseLost("the job is with another actor")


def test_a_lease_counts_from_before_the_claim_was_sent() -> None:
    world = World()
    world.run()
    ((_, sent),) = world.heart.held
    assert sent <= world.claimed_at


def test_the_fence_is_asked_for_the_jobs_own_lease_before_each_commit() -> None:
    world = World(*[100_000] * 8)
    world.engine.before_commit = lambda: world.engine.version < 3 and world.engine.append([100_000] * 8)
    world.run()
    assert world.heart.asked == [world.lease] * len(world.engine.origins)
    assert len(world.engine.origins) >= 2


def test_a_lost_lease_commits_nothing_and_reports_nothing() -> None:
    world = World()
    world.heart.may = lost
    assert world.run()
    assert world.engine.origins == {}
    assert world.ends() == []
    assert world.heart.released == [world.lease]


@pytest.mark.parametrize(("despite_switch", "verdict"), [(False, "cancelled"), (True, "done")])
def test_a_table_that_is_switched_off_is_left_alone_unless_it_was_asked_for_despite_that(
    despite_switch: bool, verdict: str
) -> None:
    world = World(payload=replace(PAYLOAD, even_if_disabled=despite_switch))
    world.engine.configuration = {"lakewright.enabled": "false"}
    world.run()
    assert world.end()["verdict"] == verdict
    assert bool(world.engine.origins) is despite_switch


@pytest.mark.parametrize(
    ("text", "decided_ms", "verdict"),
    [
        ("dt >= current_date", -DAY_MS, "cancelled"),
        ("dt >= current_date - 2 days", -DAY_MS, "done"),
        ("dt < current_date", DAY_MS, "done"),
        ("dt < current_date", -DAY_MS, "cancelled"),
        ("dt >= '9999-01-01'", -DAY_MS, "done"),
    ],
    ids=["left", "stayed", "entered by the decider's clock, which is ahead", "has not entered", "does not move"],
)
def test_a_partition_that_has_left_the_filter_since_the_decision_is_left_alone(
    text: str, decided_ms: int, verdict: str
) -> None:
    """The partition is today's; decided so many ms from now."""
    now_ms = time.time_ns() // 1_000_000
    day = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    if "- 2 days" not in text and ">=" in text:
        day -= timedelta(days=1)
    policy = replace(PAYLOAD.policy, filter=text)
    world = World(payload=replace(PAYLOAD, policy=policy, decided_ms=now_ms + decided_ms))
    partition = PartitionKey(f'{{"dt":"{day}"}}')
    world.partition = partition
    world.engine.append([100_000] * 8, partition)
    world.run()
    assert world.end()["verdict"] == verdict
    assert bool(world.engine.origins) is (verdict == "done")


@pytest.mark.parametrize(("is_hot", "commits"), [(True, 2), (False, 1)])
def test_in_a_hot_partition_each_group_is_committed_alone(is_hot: bool, commits: int) -> None:
    world = World(*[5 * MIB] * 4, payload=replace(PAYLOAD, is_contended=is_hot))
    world.run()
    assert len(world.engine.origins) == commits


def test_no_more_groups_share_a_commit_than_the_setting_says() -> None:
    world = World(*[5 * MIB] * 6)
    world.run(groups_per_commit=2)
    assert len(world.engine.origins) == 2


def test_after_a_commit_of_its_own_alone_the_partition_is_not_read_again() -> None:
    world = World(*[5 * MIB] * 6)
    world.run(groups_per_commit=1)
    assert (len(world.engine.origins), world.engine.reads) == (3, 1)


def test_after_a_commit_of_others_in_between_the_partition_is_read_again() -> None:
    world = World(*[5 * MIB] * 4)

    def append() -> None:
        world.engine.before_commit = lambda: None
        world.engine.append([100])

    world.engine.before_commit = append
    world.run(groups_per_commit=1)
    assert world.engine.reads == 2
    assert world.end()["seen"] == world.engine.version


@pytest.mark.parametrize(("steals", "verdict"), [(3, "done"), (4, "fail")])
def test_a_job_backs_off_after_so_many_rounds_lost_in_a_row(steals: int, verdict: str) -> None:
    world = World()
    left = [steals]

    def steal() -> None:
        if left[0]:
            left[0] -= 1
            world.engine.remove(next(iter(world.engine.files)))
            world.engine.append([100_000])

    world.engine.before_commit = steal
    world.run(max_conflicts=3)
    assert world.end()["verdict"] == verdict
    assert ("others changed the planned files 4 times" in world.end()["error"]) is (verdict == "fail")


def test_a_group_that_fails_for_itself_fails_the_job_when_all_others_have_landed() -> None:
    """It is not begun again in this run, so that it does not keep the later groups from their turn."""
    world = World(*[5 * MIB] * 6)
    world.engine.unreadable = {"f1"}
    world.run(groups_per_commit=2)
    assert (world.end()["verdict"], world.end()["error"]) == ("fail", "RetryableError: a file cannot be read")
    assert len(world.engine.origins) == 2
    left = {name for name in world.engine.files if name.startswith("f")}
    assert (len(left), "f1" in left) == (2, True)
    assert json.loads(world.end()["result"])["groups_failed"] == 1


def test_a_job_gives_its_slot_back_after_so_many_rounds() -> None:
    world = World()
    world.engine.before_commit = lambda: world.engine.append([100_000] * 8)
    world.run(max_rounds=3)
    assert (world.end()["verdict"], len(world.engine.origins)) == ("yield", 3)


def test_asked_to_stop_nothing_is_begun_any_more_and_the_job_comes_back() -> None:
    world = World(*[5 * MIB] * 4)
    world.engine.after_commit = world.stopping.set
    world.run(groups_per_commit=1)
    assert (world.end()["verdict"], len(world.engine.origins)) == ("yield", 1)


@pytest.mark.parametrize(("reason", "verdict"), [("cancel", "cancelled"), ("preempt", "yield")])
def test_a_job_asked_to_stop_ends_as_it_was_told(reason: str, verdict: str) -> None:
    world = World(*[5 * MIB] * 4)
    world.engine.after_commit = lambda: world.lease.request_stop(reason)
    world.run(groups_per_commit=1)
    assert (world.end()["verdict"], len(world.engine.origins)) == (verdict, 1)


@pytest.mark.parametrize(("deaths", "commits"), [(1, 1), (2, 2)])
def test_a_job_under_which_engines_died_commits_group_by_group(deaths: int, commits: int) -> None:
    world = World(*[5 * MIB] * 4)
    world.deaths = deaths
    world.run()
    assert len(world.engine.origins) == commits


@pytest.mark.parametrize(("previous", "recovered"), [("6", 2), ("", None), ("5", None)])
def test_an_earlier_runs_commit_is_searched_only_by_its_token(previous: str, recovered: int | None) -> None:
    world = World(previous=previous)
    first = World()
    first.engine = world.engine
    first.answer = lambda transition, answer=first.answer: (  # type: ignore[method-assign]
        answer(transition).replace('"7"', '"6"') if transition.script is ScriptName.CLAIM else answer(transition)
    )
    first.queue.answer = first.answer
    first.run()
    world.run()
    assert json.loads(world.end()["result"])["recovered_version"] == recovered


def test_a_search_that_is_too_far_back_does_not_stop_the_job() -> None:
    world = World(previous="6")

    def too_far(*_: object, **__: object) -> int:
        raise PermanentError("too many commits")

    world.engine.find_commit = too_far  # type: ignore[method-assign]
    world.run()
    assert world.end()["verdict"] == "done"


def test_a_quiet_partition_is_settled_only_when_nothing_in_it_is_promoted_any_more() -> None:
    world = World(*EIGHT, 3 * MIB, 3 * MIB, payload=replace(PAYLOAD, rewrite_kind=RewriteKind.IDLE))
    sizes: list[list[int]] = []
    world.engine.after_commit = lambda: sizes.append(sorted(file.size_bytes for file in world.engine.files.values()))
    world.run()
    assert sizes == [[800_000, 3 * MIB, 3 * MIB], [800_000 + 6 * MIB]]


@pytest.mark.parametrize(
    ("ask", "extent", "files"), [(RewriteKind.LEVELS, 0, 3), (RewriteKind.IDLE, 0, 1), (RewriteKind.FULL, 0, 1)]
)
def test_a_job_does_what_it_was_asked_for(ask: RewriteKind, extent: int, files: int) -> None:
    world = World(1000, 1000, 1000, payload=replace(PAYLOAD, rewrite_kind=ask), extent=extent)
    world.run()
    assert len(world.engine.files) == files


def test_a_merged_request_for_a_full_rewrite_is_not_forgotten() -> None:
    world = World(1000, 1000, 1000, extent=1)
    world.run()
    assert len(world.engine.files) == 1


def test_nothing_ready_is_nothing_run() -> None:
    world = World()
    world.claims = 0
    assert not world.run()
    assert world.heart.held == []


def test_a_job_that_sorts_plans_by_the_depth_of_full_files_alone() -> None:
    policy = replace(PAYLOAD.policy, sort_by="k", max_depth=2)
    full = policy.size_levels.full_bytes
    world = World(full, full, full, 1000, payload=replace(PAYLOAD, policy=policy))
    world.kind = SORT
    for name, file in list(world.engine.files.items()):
        world.engine.files[name] = replace(file, key_range=(0, 100))
    world.run()
    assert world.end()["verdict"] == "done"
    assert sorted(file.size_bytes for file in world.engine.files.values()) == [1000, 3 * full]
    assert {file.tags.get(SORT_LEVEL_TAG) for file in world.engine.files.values()} == {None, "1"}


def worker(world: World) -> Worker:
    return Worker(EngineSet([world.engine]), world.queue, world.actor, WorkerSettings(idle_s=0.001))


def test_a_slot_runs_its_job_after_an_outage_and_ends_when_it_is_asked_to() -> None:
    world, claims = World(), list[Command[Any]]()

    def answer(transition: Command[Any]) -> Any:
        if transition.script is ScriptName.CLAIM:
            claims.append(transition)
            if len(claims) == 1:
                raise RetryableError("no answer")
            if len(claims) == 3:
                world.stopping.set()
        return world.answer(transition)

    world.queue.answer = answer
    with capture_logs() as logs:
        worker(world).run()
    assert (len(claims), world.end()["verdict"], len(world.engine.origins)) == (3, "done", 1)
    events = [one["event"] for one in logs]
    assert events.index("queue_unavailable") < events.index("queue_available") < events.index("job_finished")
    assert claims[0].args == claims[1].args, "a claim that was not answered is repeated, for it may have leased a job"


def test_a_slot_that_is_drained_claims_nothing() -> None:
    world = World()
    world.actor.draining.set()
    world.stopping.wait = lambda _seconds: world.stopping.set()  # type: ignore[assignment, func-returns-value]
    worker(world).run()
    assert world.queue.sent == []


def test_a_slot_whose_engine_died_ends_and_claims_nothing() -> None:
    world = World()
    world.engine.alive = False
    with pytest.raises(EngineDied, match="died between jobs: killed by SIGKILL"):
        worker(world).run()
    assert world.queue.sent == []


def test_while_another_slot_is_alone_nothing_is_claimed() -> None:
    world = World()
    assert world.actor.gate.enter()
    with world.actor.gate.exclusive(lambda: False) as is_alone:
        assert is_alone
        assert world.run() is False
    assert world.queue.sent == []


def test_an_end_that_cannot_be_reported_is_given_up_when_the_lease_is_over() -> None:
    world = World()
    world.heart.may = lambda: setattr(world.heart, "lease_ms", 5)
    world.finish_fails = 10**9
    with capture_logs() as logs:
        assert world.run()
    assert len(world.ends()) > 1
    assert [one["job"] for one in logs if one["event"] == "finish_undeliverable"] == ["j-1"]


def test_a_defect_while_a_job_ends_is_raised_and_not_taken_for_a_death_of_the_engine() -> None:
    world = World()

    def answer(transition: Command[Any]) -> Any:
        if transition.script is ScriptName.FINISH:
            raise RuntimeError("a defect")
        return world.answer(transition)

    world.queue.answer = answer
    with pytest.raises(RuntimeError, match="a defect"):
        world.run()


def test_a_job_that_has_spent_its_bytes_goes_back_to_the_queue() -> None:
    payload = replace(PAYLOAD, policy=replace(POLICY, max_bytes_per_job=10 * MIB))
    world = World(*[5 * MIB] * 6, payload=payload)
    world.run()
    assert (world.end()["verdict"], len(world.engine.origins), world.engine.reads) == ("yield", 1, 1)
    assert sum(file.size_bytes == 5 * MIB for file in world.engine.files.values()) == 4


def test_a_job_that_must_run_alone_and_is_asked_to_stop_while_it_waits_goes_back() -> None:
    """The other slot's job may take hours; the suspect has done nothing, and counts no attempt."""
    world = World()
    world.deaths = 2
    assert world.actor.gate.enter()
    world.stopping.set()
    assert world.run()
    assert (world.end()["verdict"], world.engine.origins) == ("yield", {})
    assert world.heart.released == [world.lease]
