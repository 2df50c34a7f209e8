"""One slot with a queue and a table in memory: the fence, the rounds, and what is reported at the end."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from actor.engines import EngineSet
from actor.lease import Lease
from actor.ports import EngineDeath, EngineDied
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import Corrupt, LeaseLost, PermanentError, RetryableError
from shared.job_payload import JobPayload, PredictedCost, RewriteKind
from shared.policy import MIB, Policy
from shared.properties import policy_digest
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import Claim
from tests.support.fake_queue import FakeQueue
from tests.support.memory_engine import MemoryEngine

POLICY = Policy(target_bytes=8 * MIB)
EIGHT = [100_000] * 8
PAYLOAD = JobPayload("memory://t", "t", POLICY, "eligible", PredictedCost(8, 7, 800_000), policy_digest({}))


class Heart:
    """Stands for the heartbeat: it notes what it was asked, and `may` returns whether a commit is allowed."""

    lease_ms = 2000

    def __init__(self) -> None:
        self.held: list[tuple[Lease, float]] = []
        self.released: list[Lease] = []
        self.asked: list[Lease] = []
        self.may: Callable[[], None] = lambda: None

    def track(self, claim: Claim, *, sent_at_s: float) -> Lease:
        lease = Lease(claim, valid_until_s=1e9, clock=lambda: 0.0)
        self.held.append((lease, sent_at_s))
        return lease

    def release(self, lease: Lease) -> None:
        self.released.append(lease)

    def revalidate(self, lease: Lease) -> None:
        self.asked.append(lease)
        self.may()


class World:
    """A worker, one job for it, and what it said of its end."""

    def __init__(self, *sizes: int, payload: JobPayload = PAYLOAD, previous: str = "", extent: int = 0) -> None:
        self.engine = MemoryEngine(sizes or EIGHT)
        self.heart = Heart()
        self.queue = FakeQueue(self.answer)
        self.stopping = threading.Event()
        self.actor = ActorContext("a-1", self.heart, self.stopping)
        self.payload, self.previous, self.extent = payload, previous, extent
        self.claims = 1
        self.deaths = 0
        self.kind = "compact"
        self.claimed_at = 0.0
        self.finish_fails = 0

    def answer(self, transition: Command) -> Any:
        if transition.script is ScriptName.CLAIM:
            self.claimed_at = time.monotonic()
            while time.monotonic() == self.claimed_at:
                pass
            self.claims -= 1
            job = ["j-1", "t-1", "{}", self.kind, "default", "1", "5", "7", self.previous, "0", "1", "1"]
            rest = [str(self.extent), "0", self.payload.encode(), "0", "0", str(self.deaths)]
            return json.dumps([[*job, *rest]] if self.claims >= 0 else [])
        if self.finish_fails:
            self.finish_fails -= 1
            raise RetryableError("no answer")
        return "deleted"

    def run(self, **settings: Any) -> bool:
        return Worker(
            EngineSet([self.engine]), self.queue, self.actor, WorkerSettings(idle_s=0.001, **settings)
        ).run_next()

    @property
    def lease(self) -> Lease:
        return self.heart.held[0][0]

    def ends(self) -> list[dict[str, Any]]:
        """The arguments of `finish`, by what they mean."""
        names = ("worker", "nonce", "id", "token", "verdict", "cost", "seen", "result", "error")
        return [dict(zip(names, one.args, strict=False)) for one in self.queue.sent if one.script is ScriptName.FINISH]

    def end(self) -> dict[str, Any]:
        (end,) = self.ends()
        return end


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


def test_a_run_that_leaves_nothing_to_do_is_done_and_satisfies_what_it_saw() -> None:
    world = World()
    world.run()
    end = world.end()
    assert (end["verdict"], end["seen"], end["cost"], end["id"], end["token"]) == ("done", 2, 800_000, "j-1", 7)


def test_a_table_whose_properties_changed_meanwhile_satisfies_no_request() -> None:
    world = World()
    world.engine.configuration = {"lakewright.min-input-files": "2"}
    world.run()
    assert world.end()["seen"] == -1


@pytest.mark.parametrize(("despite_switch", "verdict"), [(False, "cancelled"), (True, "done")])
def test_a_table_that_is_switched_off_is_left_alone_unless_it_was_asked_for_despite_that(
    despite_switch: bool, verdict: str
) -> None:
    world = World(payload=replace(PAYLOAD, even_if_disabled=despite_switch))
    world.engine.configuration = {"lakewright.enabled": "false"}
    world.run()
    assert world.end()["verdict"] == verdict
    assert bool(world.engine.origins) is despite_switch


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


def test_a_rewrite_cancelled_because_it_did_not_stop_is_no_failure_of_the_job() -> None:
    world = World()

    def cancelled() -> None:
        world.lease.request_stop("preempt")
        raise RetryableError("cancelled")

    world.engine.before_commit = cancelled
    world.run()
    assert world.end()["verdict"] == "yield"


def test_a_failure_says_what_it_was_and_costs_an_attempt() -> None:
    world = World()

    def fail() -> None:
        raise OSError("disk on fire")

    world.engine.before_commit = fail
    world.run()
    assert (world.end()["verdict"], world.end()["error"]) == ("fail", "OSError: disk on fire")


def die(world: World, death: EngineDeath | None) -> None:
    def fail() -> None:
        world.engine.alive = False
        world.engine.death = death
        raise ConnectionRefusedError("no JVM")

    world.engine.before_commit = fail
    with pytest.raises(EngineDied):
        world.run()


@pytest.mark.parametrize(("was_asked", "verdict"), [(False, "crashed"), (True, "yield")])
def test_an_engine_that_died_is_reported_with_its_cause_and_ends_the_actor(was_asked: bool, verdict: str) -> None:
    world = World()
    die(world, EngineDeath("killed by SIGKILL (9)", was_requested=was_asked))
    assert (world.end()["verdict"], world.end()["error"]) == (verdict, "killed by SIGKILL (9)")
    assert world.heart.released == [world.lease]


def test_an_engine_that_cannot_be_ended_may_still_commit_and_nothing_is_reported() -> None:
    world = World()
    die(world, None)
    assert world.ends() == []


def test_an_engine_that_is_dead_already_claims_no_job() -> None:
    world = World()
    world.engine.alive = False
    with pytest.raises(EngineDied, match="between jobs"):
        world.run()
    assert world.queue.sent == []


@pytest.mark.parametrize(("deaths", "commits"), [(1, 1), (2, 2)])
def test_a_job_under_which_engines_died_commits_group_by_group(deaths: int, commits: int) -> None:
    world = World(*[5 * MIB] * 4)
    world.deaths = deaths
    world.run()
    assert len(world.engine.origins) == commits


@pytest.mark.parametrize(("field", "verdict"), [("clustering", "cancelled"), ("location", "fail")])
def test_a_refused_table_takes_its_job_away_and_a_place_out_of_reach_does_not(field: str, verdict: str) -> None:
    world = World()
    world.engine.refusal, world.engine.refused_field = "not this one", field
    world.run()
    assert world.end()["verdict"] == verdict


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


def test_the_end_is_reported_again_until_the_queue_answers() -> None:
    world = World()
    world.finish_fails = 3
    world.run()
    assert len(world.ends()) == 4
    assert len({end["nonce"] for end in world.ends()}) == 1, "a repetition is recognised by its nonce"


def test_nothing_ready_is_nothing_run() -> None:
    world = World()
    world.claims = 0
    assert not world.run()
    assert world.heart.held == []


def test_payload_that_cannot_be_read_fail_the_job_and_free_the_slot() -> None:
    world = World()
    world.payload = replace(PAYLOAD, location="memory://t")
    world.answer = lambda transition: (  # type: ignore[method-assign]
        json.dumps(
            [["j-1", "t-1", "{}", "compact", "d", "1", "5", "7", "", "0", "1", "1", "0", "0", "{}", "0", "0", "0"]]
        )
        if transition.script is ScriptName.CLAIM
        else "deleted"
    )
    world.queue.answer = world.answer
    assert world.run()
    assert world.end()["verdict"] == "fail"
    assert world.heart.released == [world.lease]


def test_a_job_of_another_kind_is_not_run_as_a_compaction() -> None:
    world = World()
    world.kind = "recluster"
    world.run()
    assert world.engine.reads == 0
    assert world.end()["verdict"] == "fail"
    assert "'recluster'" in world.end()["error"]


@pytest.mark.parametrize(("table_uuid", "verdict"), [("t", "done"), ("another", "cancelled")])
def test_a_job_about_another_table_at_the_same_place_changes_nothing(table_uuid: str, verdict: str) -> None:
    world = World(payload=replace(PAYLOAD, table_uuid=table_uuid))
    world.run()
    assert world.end()["verdict"] == verdict
    assert bool(world.engine.origins) is (verdict == "done")


def test_what_repeating_cannot_cure_is_set_aside_at_once() -> None:
    world = World()

    def corrupt() -> None:
        raise Corrupt("rows differ")

    world.engine.before_commit = corrupt
    world.run()
    assert world.end()["verdict"] == "quarantine"
