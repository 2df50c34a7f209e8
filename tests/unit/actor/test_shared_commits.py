"""Jobs of one table that were claimed together: one commit, and an end for each as if it had run alone."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from actor.engines import EngineSet
from actor.lease import Lease
from actor.ports import EngineDied
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import Corrupt, LeaseLost, PermanentError, RetryableError
from shared.jobs.payload import JobPayload
from shared.policy.policy import MIB
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import Claim, StopReason
from shared.table import CommitOrigin, PartitionKey
from tests.support.fake_queue import FakeQueue
from tests.support.memory_engine import MemoryEngine
from tests.support.worker_world import EIGHT, PAYLOAD, POLICY, Heart

A, B, C = (PartitionKey(f'{{"p":"{name}"}}') for name in "abc")


@dataclass(slots=True)
class Job:
    """A job of the test; tokens follow from the place in the list."""

    partition: PartitionKey
    payload: JobPayload = PAYLOAD
    previous: str = ""


class SharedHeart(Heart):
    """Notes which leases were confirmed together; `lost` names jobs that the queue has given away by a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[tuple[str, ...]] = []
        self.lost: set[str] = set()

    @property
    def leases(self) -> dict[str, Lease]:
        return {lease.job: lease for lease, _ in self.held}

    def revalidate(self, *leases: Lease) -> None:
        self.together.append(tuple(lease.job for lease in leases))
        for lease in leases:
            if lease.job in self.lost:
                raise LeaseLost(f"job {lease.job} is with another actor")


class World:
    """A worker that claims all jobs at once; job `j-0` has token 10, `j-1` 11 and so on."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = jobs
        self.engine = MemoryEngine()
        for partition in dict.fromkeys(job.partition for job in jobs):
            self.engine.append(EIGHT, partition)
        self.first_version = self.engine.version
        self.heart = SharedHeart()
        self.stopping = threading.Event()
        self.queue = FakeQueue(self.answer)
        self.left = True
        self.refused: set[str] = set()

    def answer(self, command: Command) -> Any:
        if command.script is ScriptName.FINISH and command.args[2] in self.refused:
            raise PermanentError("the result is too large")
        if command.script is not ScriptName.CLAIM:
            return "deleted"
        claims = [self.claim(number, job) for number, job in enumerate(self.jobs)] if self.left else []
        self.left = False
        return json.dumps(claims)

    def claim(self, number: int, job: Job) -> list[str]:
        of_job = [f"j-{number}", "t-1", job.partition, "compact", "default", "1", "5", str(10 + number), job.previous]
        return [*of_job, "0", "1", "1", "0", "0", job.payload.encode(), "0", "0", "0", ""]

    def run(self, **settings: Any) -> None:
        actor = ActorContext("a-1", self.heart, self.stopping)  # type: ignore[arg-type]
        limits = WorkerSettings(idle_s=0.001, **settings)
        Worker(EngineSet([self.engine]), self.queue, actor, limits).run_next()  # type: ignore[arg-type]

    def ends(self) -> dict[str, tuple[str, int]]:
        """Verdict and seen version of each job, in the order of their ends."""
        finishes = [one.args for one in self.queue.sent if one.script is ScriptName.FINISH]
        return {str(args[2]): (str(args[4]), int(args[6])) for args in finishes}

    def result(self, job: str) -> dict[str, Any]:
        (found,) = [one.args[7] for one in self.queue.sent if one.script is ScriptName.FINISH and one.args[2] == job]
        return json.loads(found)

    def commits(self) -> list[set[str]]:
        """The jobs of each commit."""
        return [{origin.job for origin in origins} for _, origins in sorted(self.engine.signed.items())]

    def sizes(self, partition: PartitionKey) -> list[int]:
        return sorted(file.size_bytes for file in self.engine.files.values() if file.partition == partition)

    def once_before_commit(self, act: Callable[[], object]) -> None:
        def before_commit() -> None:
            self.engine.before_commit = lambda: None
            act()

        self.engine.before_commit = before_commit

    def die_before_commit(self) -> None:
        def die() -> None:
            self.engine.alive = False
            raise OSError("the JVM is gone")

        self.engine.before_commit = die


def test_jobs_share_one_commit_that_names_all_of_them_and_each_ends_with_its_own_figures() -> None:
    world = World(Job(A), Job(B), Job(C))
    world.engine.append([100_000] * 4, C)
    world.run()
    (origins,) = world.engine.signed.values()
    assert origins == (CommitOrigin("j-0", 10), CommitOrigin("j-1", 11), CommitOrigin("j-2", 12))
    version = world.engine.version
    assert world.ends() == {f"j-{number}": ("done", version) for number in range(3)}
    assert [world.result(f"j-{number}")["measured"]["files_replaced"] for number in range(3)] == [8, 8, 12]
    assert world.result("j-1")["versions"] == [version]
    assert world.heart.together == [("j-0", "j-1", "j-2")], "one heartbeat confirms all leases"
    assert sorted(lease.job for lease in world.heart.released) == ["j-0", "j-1", "j-2"]


def test_a_job_with_nothing_to_do_ends_at_once_and_is_in_no_commit() -> None:
    world = World(Job(A), Job(B))
    world.engine.files = {name: file for name, file in world.engine.files.items() if file.partition == A}
    world.run()
    assert world.commits() == [{"j-0"}]
    assert list(world.ends()) == ["j-1", "j-0"]
    assert {verdict for verdict, _ in world.ends().values()} == {"done"}


@pytest.mark.parametrize(
    ("failure", "verdict"), [(Corrupt("rows differ"), "quarantine"), (RetryableError("disk"), "fail")]
)
def test_a_job_whose_group_fails_ends_so_and_the_others_land(failure: Exception, verdict: str) -> None:
    world = World(Job(A), Job(B), Job(C))
    world.engine.broken[B] = failure
    world.run()
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "done", "j-1": verdict, "j-2": "done"}
    assert world.commits() == [{"j-0"}, {"j-2"}], "after a failure that may be anyone's, each commits for itself"
    assert (world.sizes(A), world.sizes(B), world.sizes(C)) == ([800_000], EIGHT, [800_000])


@pytest.mark.parametrize(("lost", "kept", "partition"), [("j-0", "j-1", A), ("j-1", "j-0", B)])
def test_a_lost_lease_keeps_its_job_out_of_every_commit_and_the_others_land(
    lost: str, kept: str, partition: PartitionKey
) -> None:
    world = World(Job(A), Job(B))
    world.heart.lost = {lost}
    world.run()
    assert world.commits() == [{kept}]
    assert list(world.ends()) == [kept], "who lost the lease says nothing of the job's end"
    assert world.sizes(partition) == EIGHT
    assert world.heart.together[0] == ("j-0", "j-1")


def test_after_a_shared_commit_whose_answer_was_lost_nothing_is_done_twice() -> None:
    """It landed, and the engine could not tell: each job reads the table again and finds its work done."""
    world = World(Job(A), Job(B))

    def lose_answer() -> None:
        world.engine.after_commit = lambda: None
        raise RetryableError("the outcome of the commit is unknown")

    world.engine.after_commit = lose_answer
    world.run()
    assert world.commits() == [{"j-0", "j-1"}]
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "done", "j-1": "done"}
    assert [world.result(job)["groups_conflicted"] for job in ("j-0", "j-1")] == [0, 0]


def test_a_job_that_was_cancelled_before_the_rewrite_is_left_out() -> None:
    world = World(Job(A), Job(B))
    track = world.heart.track

    def cancelled(claim: Claim, *, sent_at_s: float) -> Lease:
        lease = track(claim, sent_at_s=sent_at_s)
        if claim.id == "j-0":
            lease.request_stop(StopReason.CANCEL)
        return lease

    world.heart.track = cancelled  # type: ignore[method-assign]
    world.run()
    assert world.commits() == [{"j-1"}]
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "cancelled", "j-1": "done"}


def test_what_a_cancelled_job_has_written_is_committed_as_it_would_be_alone() -> None:
    world = World(Job(A), Job(B))
    world.once_before_commit(lambda: world.heart.leases["j-0"].request_stop(StopReason.CANCEL))
    world.run()
    assert world.commits() == [{"j-0", "j-1"}]
    assert {end for end, _ in world.ends().values()} == {"done"}


def test_if_one_job_is_preempted_all_give_the_slot_back_at_the_group_boundary() -> None:
    """What is preempted is the slot: a commit of the rest would hold it as long."""
    world = World(Job(A), Job(B))
    world.engine.append([900_000] * 8, A)

    def preempt() -> None:
        world.heart.leases["j-1"].request_stop(StopReason.PREEMPT)
        world.engine.append(EIGHT, A)
        world.engine.append(EIGHT, B)

    world.once_before_commit(preempt)
    world.run()
    assert len(world.commits()) == 1
    assert {end for end, _ in world.ends().values()} == {"yield"}


def test_a_conflict_takes_out_the_groups_that_it_hits_and_no_other_job() -> None:
    world = World(Job(A), Job(B))
    taken = next(name for name, file in world.engine.files.items() if file.partition == A)

    def take() -> None:
        world.engine.remove(taken)
        world.engine.append([100_000], A)

    world.once_before_commit(take)
    world.run()
    assert [world.result(job)["groups_conflicted"] for job in ("j-0", "j-1")] == [1, 0]
    assert [world.result(job)["conflicts"] for job in ("j-0", "j-1")] == [1, 0]
    assert (world.sizes(A), world.sizes(B)) == ([800_000], [800_000])
    assert {end for end, _ in world.ends().values()} == {"done"}
    assert len(world.commits()) == 2


@pytest.mark.parametrize(
    "other",
    [
        replace(PAYLOAD, policy=replace(POLICY, target_bytes=16 * MIB)),
        replace(PAYLOAD, is_contended=True),
        replace(PAYLOAD, table_uuid="t"),
    ],
)
def test_jobs_that_differ_in_more_than_the_partition_do_not_share_a_commit(other: JobPayload) -> None:
    world = World(Job(A), Job(B, other), Job(C))
    world.run()
    assert sorted(world.commits(), key=len) == [{"j-1"}, {"j-0", "j-2"}]
    assert {end for end, _ in world.ends().values()} == {"done"}


def test_a_commit_holds_no_more_groups_than_its_limit_and_the_rest_follows() -> None:
    world = World(Job(A), Job(B), Job(C))
    world.run(groups_per_commit=2)
    assert world.commits() == [{"j-0", "j-1"}, {"j-2"}]
    assert max(world.engine.group_counts) == 2


def test_if_the_engine_dies_each_job_is_reported_and_none_is_lost() -> None:
    world = World(Job(A), Job(B))

    world.die_before_commit()
    with pytest.raises(EngineDied, match="j-0, j-1"):
        world.run()
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "crashed", "j-1": "crashed"}
    assert sorted({lease.job for lease in world.heart.released}) == ["j-0", "j-1"]


def test_a_job_that_was_over_before_the_engine_died_is_not_blamed_for_it() -> None:
    world = World(Job(A), Job(B))
    world.engine.files = {name: file for name, file in world.engine.files.items() if file.partition == A}

    world.die_before_commit()
    with pytest.raises(EngineDied, match="job j-0 ran"):
        world.run()
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "crashed", "j-1": "done"}


def test_each_job_of_a_commit_finds_it_again_by_its_own_token() -> None:
    """The actor died between commit and report: the next run of each job says that the work is done."""
    world = World(Job(A), Job(B))
    world.run()
    version = world.engine.version
    again = World(Job(B, previous="11"))
    again.engine = world.engine
    again.run()
    assert world.commits() == [{"j-0", "j-1"}], "nothing is done twice"
    # Its id is that of the job that was second in the commit.
    assert world.engine.find_commit("memory://t", job="j-1", token=11, since_version=0) == version
    assert world.engine.find_commit("memory://t", job="j-1", token=10, since_version=0) is None


def test_an_unreadable_payload_ends_its_own_job_only() -> None:
    world = World(Job(A), Job(B))
    claim = world.claim
    world.claim = lambda number, job: [  # type: ignore[method-assign]
        "{}" if number == 1 and place == 14 else part for place, part in enumerate(claim(number, job))
    ]
    world.run()
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "done", "j-1": "fail"}


def test_a_refused_end_of_one_job_keeps_no_other_from_its_own() -> None:
    """Otherwise their leases run out, and each counts an attempt although its rewrite landed."""
    world = World(Job(A), Job(B), Job(C))
    world.refused = {"j-0"}
    with capture_logs() as logs:
        world.run()
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "done", "j-1": "done", "j-2": "done"}
    assert [one["job"] for one in logs if one["event"] == "finish_refused"] == ["j-0"]
    assert [one["job"] for one in logs if one["event"] == "job_finished"] == ["j-1", "j-2"]


def test_if_the_engine_dies_a_refused_report_keeps_no_other_from_its_own() -> None:
    world = World(Job(A), Job(B))
    world.refused = {"j-0"}

    world.die_before_commit()
    with capture_logs() as logs, pytest.raises(EngineDied, match="j-0, j-1"):
        world.run()
    assert [one["job"] for one in logs if one["event"] == "job_engine_crashed"] == ["j-1"]


def test_a_preempted_slot_is_given_back_although_another_job_is_in_the_running_commit() -> None:
    """The preempted one waits for a commit of its own; without this the other would hold the slot past the grace."""
    world = World(Job(A), Job(B, replace(PAYLOAD, is_contended=True)))
    world.once_before_commit(lambda: world.heart.leases["j-1"].request_stop(StopReason.PREEMPT))
    world.run()
    assert world.commits() == [{"j-0"}]
    assert world.heart.leases["j-0"].stop_reason == StopReason.PREEMPT, "so that the heartbeat cancels its rewrite"
    assert {job: end for job, (end, _) in world.ends().items()} == {"j-0": "done", "j-1": "yield"}


def test_a_file_that_two_jobs_plan_is_replaced_once() -> None:
    """Whatever their partitions are called: two outputs for one set of inputs would double its rows."""
    world = World(Job(A), Job(B))
    world.engine.files = {name: file for name, file in world.engine.files.items() if file.partition == A}
    read = world.engine.read_partition
    world.engine.read_partition = lambda location, _partition, **more: read(location, A, **more)  # type: ignore[method-assign]
    world.run()
    assert world.commits() == [{"j-0"}]
    assert world.sizes(A) == [800_000]
    assert {end for end, _ in world.ends().values()} == {"done"}
