"""The pool starts, drains and stops actors as was decided, and leaves all as it is without an answer."""

from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from decider.storage import machine
from services.settings import ACTOR_IDLE_S, ACTOR_WORK_S
from services.standalone.actor_pool import POLL_S, ActorPool, DeciderState, scaling_rule
from services.standalone.actor_scaling import GIB, ActorCount, ScalingRule
from services.standalone.supervisor import ChildSpec
from shared.errors import InvalidInput

RULE = ScalingRule(max_actors=2, actor_work_s=100.0, idle_s=30.0)
AUTOMATIC = ActorCount(0, is_automatic=True)


class FakeDecider:
    """Reports what the test says, or does not answer."""

    def __init__(self) -> None:
        self.work_s = 0.0
        self.actors: dict[str, str] = {}
        self.drained: list[str] = []
        self.is_up = True

    def read(self) -> DeciderState:
        if not self.is_up:
            raise httpx.ConnectError("no answer")
        return DeciderState(self.work_s, dict(self.actors))

    def drain(self, actor: str) -> None:
        self.drained.append(actor)
        self.actors[actor] = "draining"


class FakeChildren:
    """Children that end when the test says."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.retired: list[str] = []

    def add(self, spec: ChildSpec) -> None:
        self.running.append(spec.name)

    def retire(self, name: str) -> None:
        self.retired.append(name)

    def names(self) -> tuple[str, ...]:
        return ("redis", "decider", *self.running)


class Bench:
    """A pool with its own clock, which every poll moves on."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.decider, self.children = FakeDecider(), FakeChildren()
        self.pool = ActorPool(self.children, self.decider, RULE, self.spec, clock=lambda: self.now_s)  # type: ignore[arg-type]

    @staticmethod
    def spec(name: str) -> ChildSpec:
        return ChildSpec(name, (), {}, log_file=None)  # type: ignore[arg-type]

    def poll(self, seconds: float = POLL_S) -> None:
        self.now_s += seconds
        self.pool.tick()


def test_actors_come_with_the_backlog_and_are_drained_and_stopped_without_it() -> None:
    bench = Bench()
    bench.poll()
    assert bench.children.running == []
    bench.decider.work_s = 500
    bench.poll()
    bench.poll()
    assert bench.children.running == ["actor-1", "actor-2"]
    bench.decider.actors = {"actor-1": "working", "actor-2": "idle"}
    bench.decider.work_s = 50
    bench.poll()
    assert bench.decider.drained == []
    bench.poll(RULE.idle_s)
    assert bench.decider.drained == ["actor-2"]
    bench.poll()
    assert bench.children.retired == [], "it may still finish a job"
    bench.decider.actors["actor-2"] = "drained"
    bench.poll()
    bench.poll()
    assert bench.children.retired == ["actor-2"]
    bench.children.running.remove("actor-2")
    del bench.decider.actors["actor-2"]
    bench.decider.work_s = 500
    bench.poll()
    assert bench.children.running == ["actor-1", "actor-3"], "no name is used twice"


def test_an_actor_that_restarted_while_it_was_drained_is_drained_again() -> None:
    bench = Bench()
    bench.decider.work_s = 50
    bench.poll()
    bench.decider.actors, bench.decider.work_s = {"actor-1": "working"}, 0
    bench.poll(RULE.idle_s)
    bench.poll(RULE.idle_s)
    assert bench.decider.drained == ["actor-1"]
    bench.decider.actors = {"actor-1": "died"}
    bench.poll()
    bench.decider.actors = {"actor-1": "idle"}
    bench.poll()
    assert (bench.decider.drained, bench.children.retired) == (["actor-1", "actor-1"], [])


def test_without_an_answer_nothing_changes_and_one_warning_says_so() -> None:
    bench = Bench()
    bench.decider.work_s = 50
    bench.poll()
    bench.decider.is_up = False
    with capture_logs() as logged:
        for _ in range(20):
            bench.poll(RULE.idle_s)
    assert [one["event"] for one in logged] == ["backlog_unknown"]
    assert (bench.children.running, bench.children.retired) == (["actor-1"], [])


def test_the_decider_is_asked_every_few_seconds_only() -> None:
    bench = Bench()
    bench.poll(0)
    bench.decider.work_s = 50
    bench.poll(POLL_S / 2)
    assert bench.children.running == []
    bench.poll(POLL_S / 2)
    assert bench.children.running == ["actor-1"]


def test_the_rule_follows_from_settings_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 16)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 64 * GIB)
    assert scaling_rule(AUTOMATIC, {}) == ScalingRule(4, 120.0, 300.0)
    changed = {"LAKEWRIGHT_SLOTS": "1", "LAKEWRIGHT_DRIVER_MEMORY": "8g", ACTOR_WORK_S: "5", ACTOR_IDLE_S: "7"}
    assert scaling_rule(AUTOMATIC, changed) == ScalingRule(5, 5.0, 7.0)
    assert scaling_rule(ActorCount(0, is_automatic=True, maximum=9), {}).max_actors == 9
    with pytest.raises(InvalidInput, match="LAKEWRIGHT_DRIVER_MEMORY"):
        scaling_rule(AUTOMATIC, {"LAKEWRIGHT_DRIVER_MEMORY": "much"})


def test_the_memory_of_a_container_counts_where_it_is_less(tmp_path: Path) -> None:
    limit, none = tmp_path / "memory.max", tmp_path / "absent"
    limit.write_text("max\n")
    whole = machine.memory_bytes((none, limit))
    assert whole == machine.memory_bytes(()) > 4096
    limit.write_text("4096\n")
    assert machine.memory_bytes((none, limit)) == 4096
    assert machine.cores() >= 1
