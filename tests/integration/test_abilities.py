"""Actors claim only what they can do; what no one there can do waits in sight and holds up no one."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from redis import Redis

from actor.queue_executor import SyncQueueExecutor, connect
from decider.store.queue.actor_registry import ActorRegistry
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.queue_executor import connect as connect_decider
from shared.queue import admin_commands, commands, keys, queries
from shared.queue.model import SPARE_CAPACITY, Band, CancelOutcome, Claim, JobKey, JobRequest, JobState, Scope
from tests.support.queue_bench import end_of, repaired
from tests.support.queue_invariants import every_queued_job_is_reachable
from tests.support.queue_state import read_state

pytestmark = pytest.mark.redis

DELTA, TOY = ("delta/compact",), ("toy/compact",)


class World:
    """One queue; tables of which each has a format."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis: Redis = connect(url)
        self.queue = SyncQueueExecutor(self.redis, "default")
        self._nonces = 0

    def enqueue(  # noqa: PLR0913 - what requests differ in
        self,
        table: str,
        *,
        format_: str,
        kind: str = "compact",
        tenant: str = "a",
        partition: str = "{}",
        version: int = 1,
        mib: int = 1,
        band: Band = Band.NORMAL,
    ) -> str:
        self.redis.hset(keys.table_state("default", table), "format", format_)
        spec = JobRequest(JobKey(table, partition, kind), tenant, band, 5, mib << 20, version)
        self.queue.run(commands.enqueue("default", spec))
        return spec.id

    def claim(self, abilities: Sequence[str], slots: int = 1) -> tuple[Claim, ...]:
        self._nonces += 1
        nonce = f"n{self._nonces}"
        return self.queue.run(
            commands.claim("default", worker="w", nonce=nonce, slots=slots, lease_ms=60_000, abilities=abilities)
        )

    def tables(self, abilities: Sequence[str], slots: int = 1) -> list[str]:
        return [claim.key.table for claim in self.claim(abilities, slots)]

    def end(self, claim: Claim) -> None:
        """End a run as done, at the cost that was estimated."""
        self.queue.run(end_of(claim, seen_version=1))

    def waiting(self, *, unserved: bool = False) -> dict[str, int]:
        """Count the jobs that were set aside; `unserved`: those of which people are told that no actor can run them."""

        async def read() -> dict[str, int]:
            client = connect_decider(self.url)
            try:
                registry = ActorRegistry(AsyncQueueExecutor(client, "default"))
                return dict(await (registry.unserved(()) if unserved else registry.waiting_by_ability()))
            finally:
                await client.aclose()

        return asyncio.run(read())


def tree(world: World) -> dict[str, list[str]]:
    """Return the members of each key of the tree: flows, ready, held and idle children, and those that are aside."""
    state = read_state(world.redis, "default")
    kinds = ("f:", "n:", "h:", "i:", "s:", "y:")
    return {name: sorted(children) for name, children in state.zsets.items() if name.startswith(kinds)}


def test_an_actor_claims_only_what_it_can_do_and_is_not_held_up_by_the_rest(redis_url: str) -> None:
    world = World(redis_url)
    for number in range(5):
        world.enqueue(f"toy-{number}", format_="toy")
    world.enqueue("orders", format_="delta")
    assert world.tables(DELTA) == ["orders"]
    assert world.tables(DELTA) == []
    assert sorted(world.tables(TOY, slots=9)) == [f"toy-{number}" for number in range(5)]


@pytest.mark.parametrize(("others", "own"), [(Band.NORMAL, Band.BACKGROUND), (Band.URGENT, Band.LOW)])
def test_an_actor_is_not_idle_because_a_better_band_is_full_of_jobs_of_others(
    redis_url: str, others: Band, own: Band
) -> None:
    """Each claim of the others' actor makes their jobs ready again, more than a claim passes over."""
    world = World(redis_url)
    for number in range(300):
        world.enqueue(f"toy-{number}", format_="toy", band=others)
    world.enqueue("orders", format_="delta", band=own)
    for _ in range(3):
        assert len(world.claim(TOY)) == 1
        if world.tables(DELTA) == ["orders"]:
            return
    pytest.fail("the other actor got no job in three claims")


def test_a_job_that_no_actor_can_do_waits_in_sight(redis_url: str) -> None:
    world = World(redis_url)
    job = world.enqueue("toy-1", format_="toy")
    assert world.waiting() == {}
    assert world.tables(DELTA) == []
    assert world.waiting() == {"toy/compact": 1}
    view = world.queue.run(queries.job("default", job))
    assert view is not None
    assert (view.state, view.error) == (JobState.DELAYED, "waits for an actor that can run toy/compact")
    assert world.tables(TOY) == ["toy-1"]
    assert world.waiting() == {}
    again = world.queue.run(queries.job("default", job))
    assert again is not None
    assert again.error is None


def test_a_job_that_waits_for_a_machine_with_room_lacks_no_actor(redis_url: str) -> None:
    world = World(redis_url)
    world.enqueue("toy-1", format_="toy")
    background = JobRequest(JobKey("orders", "{}", "sort"), "a", Band.NORMAL, 5, 1, 1, gives_way=True)
    world.queue.run(commands.enqueue("default", background))
    call = {"worker": "w", "nonce": "n", "slots": 2, "lease_ms": 60_000, "abilities": DELTA}
    assert world.queue.run(commands.claim("default", **call, is_busy=True)) == ()
    assert world.waiting() == {SPARE_CAPACITY: 1, "toy/compact": 1}
    assert world.waiting(unserved=True) == {"toy/compact": 1}


def test_another_kind_of_job_of_the_same_table_does_not_hold_up_the_one_that_can_be_done(redis_url: str) -> None:
    world = World(redis_url)
    world.enqueue("orders", format_="delta", kind="vacuum")
    world.enqueue("orders", format_="delta")
    assert [claim.key.kind for claim in world.claim(DELTA, slots=2)] == ["compact"]
    assert world.waiting() == {"delta/vacuum": 1}
    assert [claim.key.kind for claim in world.claim(("delta/compact", "delta/vacuum"))] == ["vacuum"]


def test_a_job_that_waits_for_an_actor_can_be_cancelled_and_leaves_nothing(redis_url: str) -> None:
    world = World(redis_url)
    job = world.enqueue("toy-1", format_="toy")
    assert world.tables(DELTA) == []
    assert world.queue.run(commands.cancel("default", job, nonce="c")) is CancelOutcome.DELETED
    assert world.waiting() == {}
    assert world.tables(TOY) == []
    assert tree(world) == {}


def test_an_actor_that_announces_nothing_claims_everything(redis_url: str) -> None:
    world = World(redis_url)
    world.enqueue("toy-1", format_="toy")
    world.enqueue("orders", format_="delta")
    assert sorted(world.tables((), slots=2)) == ["orders", "toy-1"]


def test_an_audit_finds_nothing_to_repair_where_jobs_wait_for_actors(redis_url: str) -> None:
    world = World(redis_url)
    for number in range(3):
        world.enqueue(f"toy-{number}", format_="toy")
        world.enqueue(f"orders-{number}", format_="delta")
    assert len(world.tables(DELTA)) == 1
    assert sum(repaired(world.queue, world.redis)) == 0


def test_fairness_between_tenants_survives_the_wait_for_an_actor(redis_url: str) -> None:
    """A tenant with many jobs that were set aside first does not keep out one with a single later job."""
    world = World(redis_url)
    for number in range(30):
        world.enqueue(f"flood-{number}", format_="toy", tenant="flood")
    assert world.tables(DELTA) == []
    world.enqueue("single", format_="toy", tenant="other")
    assert world.tables(DELTA) == []
    assert "single" in world.tables(TOY, slots=2)


@pytest.mark.parametrize("other_mib", [0, 1, 20_000])
@pytest.mark.parametrize("level", [Scope.TENANT, Scope.TABLE])
def test_shares_by_weight_hold_while_actors_of_another_format_pass_over_the_jobs(
    redis_url: str, level: Scope, other_mib: int
) -> None:
    """The jobs of `heavy` and `light` leave the tree with each claim of the other actors; who is owed what stays.

    A job of 20,000 MiB leaves both behind by more than they may make up for. Tables share by what their jobs cost and
    by when these arrived; jobs of a GiB are worth more than the few seconds that the test takes.
    """
    world = World(redis_url)
    world.queue.run(admin_commands.set_weight("default", level, "heavy", 3.0))
    served: Counter[str] = Counter()

    def arrive(name: str) -> None:
        served[name] += 1
        tenant = name if level is Scope.TENANT or name == "other" else "a"
        format_, mib = ("delta", other_mib) if name == "other" else ("toy", 1 if level is Scope.TENANT else 1_000)
        world.enqueue(name, format_=format_, tenant=tenant, partition=str(served.total()), mib=mib)

    names = ("heavy", "light", "other") if other_mib else ("heavy", "light")
    for name in names * 5:
        arrive(name)
    served.clear()
    for _ in range(80):
        for abilities in (DELTA, DELTA, TOY):
            for claim in world.claim(abilities):
                world.end(claim)
                arrive(claim.key.table)
    assert served["other"] == (160 if other_mib else 0)
    assert abs(served["heavy"] - 60) <= 1, served
    assert served["light"] == 80 - served["heavy"]
    assert sum(repaired(world.queue, world.redis)) == 0


def test_a_job_that_is_set_aside_and_moves_to_another_tenant_is_in_its_flow_alone(redis_url: str) -> None:
    world = World(redis_url)
    world.enqueue("toy-1", format_="toy", tenant="before")
    assert world.tables(DELTA) == []
    world.enqueue("toy-1", format_="toy", tenant="after", version=2)
    assert world.tables(DELTA) == []
    every_queued_job_is_reachable(read_state(world.redis, "default"))
    assert set(tree(world)) == {"y:2|after|toy-1", "s:2|after", "s:2", "s:root"}
    (claim,) = world.claim(TOY)
    assert claim.tenant == "after"
    assert tree(world) == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda redis, key: redis.zadd(key("y:2|a|toy-0"), {"gone": 1}),
        lambda redis, key: redis.zadd(key("y:2|a|none"), {"gone": 1}),
        lambda redis, key: redis.zadd(key("s:2|a"), {"gone": 1}),
        lambda redis, key: redis.zadd(key("n:2|a"), {"toy-0": 1}),
        lambda redis, key: redis.zadd(key("h:2"), {"a": 1}),
        lambda redis, key: redis.delete(key("s:2|a")),
        lambda redis, key: redis.delete(key("y:2|a|toy-0"), key("y:2|a|toy-1")),
    ],
)
def test_an_audit_repairs_what_is_known_of_flows_that_wait_for_actors(
    redis_url: str, damage: Callable[[Redis, Callable[[str], str]], object]
) -> None:
    world = World(redis_url)
    for number in range(2):
        world.enqueue(f"toy-{number}", format_="toy")
    assert world.tables(DELTA) == []
    damage(world.redis, lambda name: keys.prefix("default") + name)
    assert sum(repaired(world.queue, world.redis)) > 0
    assert sum(repaired(world.queue, world.redis)) == 0
    assert sorted(world.tables(TOY, slots=2)) == ["toy-0", "toy-1"]
    assert tree(world) == {}


def flood(world: World, jobs: int, *, mib: int) -> None:
    """Jobs of one table that Delta's actors run, one after the other."""
    for number in range(jobs):
        world.enqueue("orders", format_="delta", partition=f'{{"n":"{number}"}}', mib=mib)


def serve(world: World, abilities: Sequence[str]) -> str:
    """Run the next job; returns its table."""
    (claim,) = world.claim(abilities)
    world.end(claim)
    return claim.key.table


def virtual_time(world: World) -> float:
    """The virtual time of the tenants of the normal band."""
    return float(read_state(world.redis, "default").hash("v")["2"])


def test_who_waited_shortly_does_not_pay_for_who_waited_long(redis_url: str) -> None:
    """Those that fell behind move up together, but none past the virtual time."""
    world = World(redis_url)
    flood(world, 150, mib=1_000)
    world.enqueue("long", format_="toy", tenant="long", mib=1_000)
    assert {serve(world, DELTA) for _ in range(100)} == {"orders"}
    world.enqueue("shortly", format_="toy", tenant="shortly", mib=1_000)
    assert {serve(world, DELTA) for _ in range(3)} == {"orders"}
    assert world.waiting() == {"toy/compact": 2}
    order = [serve(world, (*DELTA, *TOY)) for _ in range(20)]
    assert {"long", "shortly"} <= set(order), "at most 16 GiB of others go first"


def test_the_virtual_time_never_goes_back_so_that_a_newcomer_gets_no_more_than_its_share(redis_url: str) -> None:
    """A flow that was aside is served behind the virtual time; the next one must not return behind that."""
    world = World(redis_url)
    flood(world, 200, mib=1_000)
    others = [f"toy{number}" for number in range(4)]
    for name in others:
        world.enqueue(name, format_=name, tenant=name, mib=1_000)
    assert {serve(world, DELTA) for _ in range(100)} == {"orders"}
    reached = virtual_time(world)
    for name in others:
        assert serve(world, (f"{name}/compact",)) == name
        assert virtual_time(world) >= reached
        reached = virtual_time(world)
    for number in range(80):
        world.enqueue("new", format_="delta", tenant="new", partition=f'{{"n":"{number}"}}', mib=1_000)
    served = Counter(serve(world, DELTA) for _ in range(10))
    assert served["orders"] >= 4
