"""50 Delta and 50 Iceberg tables under one decider, with commits going on: whoever claims, shares by weight hold."""

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, cycle, islice
from pathlib import Path

import pytest

from actor.queue_executor import SyncQueueExecutor, connect
from services.decider.settings import parse_policy
from shared.formats.options import FormatOptions
from shared.paths.locations import table_id
from shared.queue import admin_commands, commands, keys
from shared.queue.decode import text
from shared.queue.model import Claim, Scope
from tests.load.lake import LoadTable
from tests.support.iceberg_folder import IcebergFolder
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.queue_bench import end_of
from tests.support.waiting import until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.long("iceberg"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

TABLES = 50
"""Of each format."""

OF_ONE_FORMAT = 20
"""Tables of the tenants that have one format; the rest belong to the one that has both."""

WEIGHTS = {"delta": 1.0, "iceberg": 1.0, "both": 2.0}
MIB = 1 << 20
FIRST_COMMITS = 24
"""Of each table, so that nearly every partition has a job before the first claim."""

CLAIMS = 160
CLAIMS_PER_ROUND = 20
"""Claims after which the decider must have read further commits."""

MOST_TURNS = 6
"""Claims of an actor until it finds a job: not all of the first ones are of the other format."""

EVERYTHING = ("delta/compact", "iceberg/compact")


class Lake:
    """All tables; `commit` appends to one after the other."""

    def __init__(self, folder: Path) -> None:
        rng = random.Random(7)
        self.formats: dict[str, str] = {}
        self.delta: list[LoadTable] = []
        self.iceberg: list[IcebergFolder] = []
        for number in range(TABLES):
            path = folder / f"delta-{number}"
            (path / "_delta_log").mkdir(parents=True)
            self.delta.append(LoadTable(path, random.Random(number)))
            made = IcebergFolder(folder / f"iceberg-{number}", spec="identity")
            made.create(f"00000000-0000-4000-8000-{number + 1:012x}")
            self.iceberg.append(made)
            self.formats |= {table_id(path.as_uri()): "delta", table_id(made.location): "iceberg"}
        for table in self.delta:
            for _ in range(FIRST_COMMITS):
                table.advance()
        for made in self.iceberg:
            made.commit([made.file(rng.randint(50_000, 2_000_000)) for _ in range(FIRST_COMMITS)])
        self._next = cycle(range(TABLES))
        self._rng = rng

    def register(self, decider: LiveDecider) -> None:
        paths = {"delta": [table.path for table in self.delta], "iceberg": [table.path for table in self.iceberg]}
        for name, tables in paths.items():
            for number, path in enumerate(tables):
                tenant = name if number < OF_ONE_FORMAT else "both"
                body = {"location": str(path), "name": f"{name}-{number}", "tenant": tenant}
                decider.post("/v1/tables", body).raise_for_status()
        decider.drain()

    def commit(self) -> None:
        """Append to five tables of each format."""
        for number in islice(self._next, 5):
            self.delta[number].advance()
            table = self.iceberg[number]
            table.commit([table.file(self._rng.randint(50_000, 2_000_000)) for _ in range(4)])


class Fleet:
    """Actors that claim one after the other, and end each run as done; `claims` are all of them in order."""

    def __init__(self, redis_url: str, lake: Lake) -> None:
        self.queue = SyncQueueExecutor(connect(redis_url), "default")
        self._lake = lake
        self.claims: list[Claim] = []
        self.rounds = 0

    def run(self, *actors: Sequence[str]) -> None:
        for number in range(CLAIMS):
            abilities = actors[number % len(actors)]
            claim = self._claim(abilities)
            assert f"{self._lake.formats[claim.key.table]}/{claim.key.kind}" in abilities
            self.claims.append(claim)
            self.queue.run(end_of(claim))
            if number % CLAIMS_PER_ROUND == 0:
                rounds = self.rounds
                until("further commits are read", lambda rounds=rounds: self.rounds > rounds)

    def _claim(self, abilities: Sequence[str]) -> Claim:
        """Claim one job, again while a claim finds none: it passes over a hundred jobs of another format at most."""
        for turn in range(MOST_TURNS):
            nonce = f"{len(self.claims)}-{turn}"
            call = commands.claim("default", worker="w", nonce=nonce, slots=1, lease_ms=60_000, abilities=abilities)
            for claim in self.queue.run(call):
                return claim
        raise AssertionError(f"nothing to do for {abilities} in {MOST_TURNS} claims")

    def served(self, first: int = 0) -> dict[str, float]:
        """Return the MiB of each tenant since a claim, divided by its weight; a job counts as one MiB at least."""
        sums: Counter[str] = Counter()
        for claim in self.claims[first:]:
            sums[claim.tenant] += max(MIB, claim.cost_bytes)
        return {tenant: sums[tenant] / MIB / weight for tenant, weight in WEIGHTS.items()}

    def largest(self, tenant: str) -> float:
        """Return the largest job of a tenant, divided by its weight."""
        return max(max(MIB, one.cost_bytes) for one in self.claims if one.tenant == tenant) / MIB / WEIGHTS[tenant]

    def waiting(self) -> set[str]:
        """Return the tenants that have jobs left."""
        redis = self.queue.redis
        found = [redis.hget(key, "tenant") for key in redis.scan_iter(match=f"{keys.prefix('default')}j:*")]
        return {text(tenant) for tenant in found}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def fleet(redis_url: str, tmp_path: Path, lake: Lake) -> Iterator[Fleet]:
    """A decider that reads one commit after another while the fleet works."""
    formats = FormatOptions(iceberg_folders=True)
    policy = parse_policy("target-file-size=8mb,min-input-files=2,fan-in=2")
    decider = LiveDecider(decider_settings(redis_url, roots=(str(tmp_path),), formats=formats, policy=policy)).start()
    stop = threading.Event()
    made = Fleet(redis_url, lake)

    def load() -> None:
        while not stop.is_set():
            lake.commit()
            decider.sweep()
            made.rounds += 1

    loading = threading.Thread(target=load)
    try:
        lake.register(decider)
        for tenant, weight in WEIGHTS.items():
            made.queue.run(admin_commands.set_weight("default", Scope.TENANT, tenant, weight))
        loading.start()
        yield made
        stop.set()
        loading.join()
    finally:
        stop.set()
        decider.close()


def test_shares_hold_across_formats_for_actors_that_know_both(fleet: Fleet) -> None:
    """By the bound of start-time fair queueing, from each twentieth claim to each later one."""
    fleet.run(EVERYTHING)
    assert fleet.waiting() == set(WEIGHTS), "a tenant without jobs has no share to compare"
    for first in range(0, CLAIMS, 20):
        served = fleet.served(first)
        for one, other in combinations(WEIGHTS, 2):
            assert abs(served[one] - served[other]) <= fleet.largest(one) + fleet.largest(other) + 1


def test_actors_that_know_one_format_claim_that_alone_and_leave_each_tenant_its_share(fleet: Fleet) -> None:
    """Each tenant of one format gets as much for its weight as the one that is served by all actors."""
    fleet.run(EVERYTHING[:1], EVERYTHING[1:])
    assert fleet.waiting() == set(WEIGHTS)
    served = fleet.served()
    for one, other in combinations(WEIGHTS, 2):
        assert abs(served[one] - served[other]) <= fleet.largest(one) + fleet.largest(other), served


def test_an_actor_with_one_format_beside_those_that_know_both_changes_no_share(fleet: Fleet) -> None:
    fleet.run(EVERYTHING, EVERYTHING[1:], EVERYTHING)
    assert fleet.waiting() == set(WEIGHTS)
    served = fleet.served()
    for one, other in combinations(WEIGHTS, 2):
        assert abs(served[one] - served[other]) <= fleet.largest(one) + fleet.largest(other), served
