"""A Redis that takes long for each round trip: an event needs few of them, alone and in a crowd."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.attacks.attack import Attack, AttackWorld, Limit, alive
from tests.chaos.network import Network, Weather
from tests.support.live_decider import WrittenTable

DELAY_S = 1.0
"""Delay of each round trip."""

ROUND_TRIPS = 6
"""Round trips within which an event is accepted, those of a new connection to Redis among them."""

CROWD = 16
"""Senders at once."""


def _run(world: AttackWorld) -> Iterator[Limit]:
    network = Network(world.redis.port)
    stack = world.stack
    stack.decider(LAKEWRIGHT_REDIS_URL=network.url)
    table = WrittenTable(stack.tables / "orders")
    stack.post("/v1/tables", {"location": str(table.path), "name": "orders"}).raise_for_status()
    network.delay_s, network.weather = DELAY_S, Weather.DELAY

    def post(_: int) -> tuple[int, float]:
        began_s = time.monotonic()
        status = stack.post("/v1/events", {"table": str(table.path)}).status_code
        return status, time.monotonic() - began_s

    for senders in (1, CROWD):
        with ThreadPoolExecutor(senders) as pool:
            found = list(pool.map(post, range(senders)))
        slowest = max(seconds for _, seconds in found) / DELAY_S
        statuses = {status for status, _ in found}
        yield Limit(f"{senders} events at once are accepted", statuses == {202}, f"{statuses}")
        yield Limit(f"each within {ROUND_TRIPS} round trips", slowest <= ROUND_TRIPS, f"{slowest:.1f}")
    network.weather = Weather.FAIR
    yield alive(world)
    network.close()


ATTACKS = (Attack("Redis at a second per round trip", _run),)
