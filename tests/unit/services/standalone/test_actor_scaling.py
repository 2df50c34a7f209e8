"""The number of actors follows the backlog: within its bound, without flapping, and only drained ones are stopped."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.standalone.actor_scaling import (
    GIB,
    ActorCount,
    ActorState,
    Need,
    PoolActor,
    ScalingRule,
    default_max_actors,
    jvm_bytes,
    needed_actors,
    next_steps,
    parse_actor_count,
    with_need,
)

RULE = ScalingRule(max_actors=4, actor_work_s=120.0, idle_s=300.0)
SERVING = (ActorState.STARTING, ActorState.IDLE, ActorState.WORKING)

rules = st.builds(ScalingRule, max_actors=st.integers(1, 6), actor_work_s=st.floats(1, 600), idle_s=st.floats(0, 600))
states = st.lists(st.sampled_from(ActorState), max_size=6)
backlogs = st.lists(st.floats(0, 5_000), min_size=1, max_size=40)


def pool(given_states: Sequence[ActorState]) -> list[PoolActor]:
    return [PoolActor(f"actor-{number}", state) for number, state in enumerate(given_states, 1)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", ActorCount(0)),
        ("1", ActorCount(1)),
        ("auto", ActorCount(0, is_automatic=True)),
        ("auto:3", ActorCount(0, is_automatic=True, maximum=3)),
    ],
)
def test_a_count_of_actors_is_read(text: str, count: ActorCount) -> None:
    assert parse_actor_count(text) == count


@pytest.mark.parametrize("text", ["", "2", "auto:", "auto:0", "auto:65", "auto:-1", "auto:many", "automatic", "auto:²"])
def test_any_other_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected 0, 1, auto"):
        parse_actor_count(text)


@pytest.mark.parametrize(("work_s", "actors"), [(0, 0), (0.1, 1), (120, 1), (121, 2), (480, 4), (10_000, 4)])
def test_any_work_needs_an_actor_and_much_work_needs_many(work_s: float, actors: int) -> None:
    assert needed_actors(work_s, RULE) == actors


def test_fewer_actors_are_the_target_only_after_they_have_sufficed_for_a_while() -> None:
    recent: tuple[Need, ...] = ()
    targets = []
    for at_s, actors in [(0, 1), (10, 3), (20, 0), (309, 0), (310, 0), (400, 2), (401, 0), (699, 0), (700, 0)]:
        recent = with_need(recent, Need(at_s, actors), RULE)
        targets.append(recent[0].actors)
    assert targets == [1, 3, 3, 3, 0, 2, 2, 2, 0]


def test_actors_are_started_up_to_the_bound_and_those_that_stop_count() -> None:
    assert next_steps((), 3, RULE).start == 3
    stopping = pool([ActorState.STOPPING, ActorState.DRAINING, ActorState.WORKING])
    assert next_steps(stopping, 4, RULE).start == 1


def test_idle_actors_are_drained_first_then_working_ones_and_drained_ones_are_stopped() -> None:
    actors = pool([ActorState.IDLE, ActorState.WORKING, ActorState.WORKING, ActorState.STARTING, ActorState.DRAINED])
    steps = next_steps(actors, 2, RULE)
    assert (steps.start, steps.drain, steps.stop) == (0, ("actor-1", "actor-3"), ("actor-5",))


@given(rule=rules, given_states=states, target=st.integers(0, 6))
def test_no_step_stops_an_actor_that_was_not_drained_or_exceeds_the_bound(
    rule: ScalingRule, given_states: list[ActorState], target: int
) -> None:
    actors = pool(given_states)
    by_name = {one.name: one.state for one in actors}
    steps = next_steps(actors, min(target, rule.max_actors), rule)
    assert {by_name[name] for name in steps.stop} <= {ActorState.DRAINED}
    assert {by_name[name] for name in steps.drain} <= {ActorState.IDLE, ActorState.WORKING}
    assert not steps.start or len(actors) + steps.start <= rule.max_actors
    serving = sum(state in SERVING for state in given_states)
    assert not (steps.start and steps.drain)
    assert serving - len(steps.drain) >= min(serving, target, rule.max_actors)


class Machine:
    """A pool whose actors take a step of their own between two polls, as the strategy says."""

    def __init__(self, rule: ScalingRule) -> None:
        self.rule = rule
        self.actors: list[PoolActor] = []
        self.recent: tuple[Need, ...] = ()
        self.started = 0
        self.changes = 0

    def poll(self, work_s: float, now_s: float) -> None:
        self.recent = with_need(self.recent, Need(now_s, needed_actors(work_s, self.rule)), self.rule)
        steps = next_steps(self.actors, self.recent[0].actors, self.rule)
        self.changes += steps.start + len(steps.drain)
        after = {ActorState.DRAINED: ActorState.STOPPING}
        drained = dict.fromkeys(steps.drain, ActorState.DRAINING)
        self.actors = [
            PoolActor(one.name, drained.get(one.name, after.get(one.state, one.state))) for one in self.actors
        ]
        for _ in range(steps.start):
            self.started += 1
            self.actors.append(PoolActor(f"actor-{self.started}", ActorState.STARTING))
        assert len(self.actors) <= self.rule.max_actors

    def proceed(self) -> None:
        """Starts end, drains end, processes end."""
        after = {ActorState.STARTING: ActorState.WORKING, ActorState.DRAINING: ActorState.DRAINED}
        self.actors = [
            PoolActor(one.name, after.get(one.state, one.state))
            for one in self.actors
            if one.state is not ActorState.STOPPING
        ]

    @property
    def serving(self) -> int:
        return sum(one.state in SERVING for one in self.actors)


@given(rule=rules, before=backlogs, steady=st.floats(0, 5_000))
def test_a_steady_backlog_gets_what_it_needs_and_nothing_changes_from_then_on(
    rule: ScalingRule, before: list[float], steady: float
) -> None:
    machine, now_s = Machine(rule), 0.0
    for work_s in before:
        machine.poll(work_s, now_s)
        machine.proceed()
        now_s += 3
    end_s = now_s + rule.idle_s + 60
    while now_s < end_s:
        machine.poll(steady, now_s)
        machine.proceed()
        now_s += 3
    assert machine.serving == needed_actors(steady, rule)
    changes = machine.changes
    for _ in range(200):
        machine.poll(steady, now_s)
        machine.proceed()
        now_s += 3
    assert (machine.serving, machine.changes) == (needed_actors(steady, rule), changes)


@given(rule=rules, work=backlogs)
def test_a_backlog_that_varies_within_the_idle_time_drains_no_actor(rule: ScalingRule, work: list[float]) -> None:
    """The greatest need comes again within the idle time, so the actors that it needs are kept."""
    machine, now_s = Machine(replace(rule, idle_s=3.0 * (len(work) + 1))), 0.0
    for _ in range(3):
        for work_s in (max(work), *work):
            machine.poll(work_s, now_s)
            machine.proceed()
            now_s += 3
            assert machine.serving == needed_actors(max(work), rule)


@pytest.mark.parametrize(
    ("text", "size"), [("1g", GIB), ("512m", GIB // 2), ("2G", 2 * GIB), ("1024k", 1 << 20), ("7", 7)]
)
def test_sizes_of_the_jvm_are_read(text: str, size: int) -> None:
    assert jvm_bytes(text) == size


@pytest.mark.parametrize("text", ["", "g", "1.5g", "1 g", "-1g"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no size of the JVM"):
        jvm_bytes(text)


@pytest.mark.parametrize(
    ("cores", "memory_gib", "actors"), [(1, 1, 1), (2, 16, 1), (8, 16, 2), (16, 64, 4), (16, 8, 2), (512, 1024, 64)]
)
def test_the_default_bound_is_what_cores_and_memory_suffice_for(cores: int, memory_gib: int, actors: int) -> None:
    found = default_max_actors(cores=cores, memory_bytes=memory_gib * GIB, cores_of_actor=4, heap_bytes=GIB)
    assert found == actors
