"""Crowds of viewers, of bodies that trickle and of connections without a call: others are served as before."""

from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.attacks.attack import Attack, AttackWorld, Limit, beside
from tests.attacks.hostile import HONEST, TOKENS
from tests.support.delta_tables import HandTable
from tests.support.time_limits import scaled

CLIENTS = 16
TABLES = 4
PARTITIONS = 50
FILES = 6
"""In each partition, as many as make a job for it."""


def _viewers(world: AttackWorld) -> Iterator[Limit]:
    stack = world.stack
    stack.decider(**TOKENS)
    for number in range(TABLES):
        place = _partitioned(stack.tables / f"t{number:04d}")
        httpx.post(
            f"{stack.url}/v1/tables",
            json={"location": str(place), "name": place.name},
            headers={"authorization": f"Bearer {HONEST}"},
            timeout=scaled(30),
        ).raise_for_status()
    yield from beside(world, "viewers", CLIENTS)


def _partitioned(place: Path) -> Path:
    """Write a table by its log alone: no one reads its files."""
    table = HandTable(place, partitions={"dt": "string"})
    add = table.new_file(5, {})
    for copy in range(FILES):
        table.commit(
            [
                {"add": add | {"path": f"{copy}-{number}.parquet", "partitionValues": {"dt": f"{number:04d}"}}}
                for number in range(PARTITIONS)
            ]
        )
    return place


def _slow_bodies_of_a_token(world: AttackWorld) -> Iterator[Limit]:
    world.stack.decider(**TOKENS)
    yield from beside(world, "slow bodies of a token", 530)


def _slow_signed_bodies(world: AttackWorld) -> Iterator[Limit]:
    world.stack.decider(**TOKENS)
    yield from beside(world, "slow signed bodies", 300)


def _leaving(world: AttackWorld) -> Iterator[Limit]:
    decider = world.stack.decider(**TOKENS)
    yield from beside(world, "clients that leave", 16, pause_s=0.05)
    counted = httpx.get(f"{world.stack.url}/metrics", timeout=scaled(10)).text
    yield Limit("none is counted as an error of ours", 'status="500"' not in counted, "")
    yield Limit("none leaves a traceback", "Traceback" not in decider.log.read_text(), "")


CONNECTIONS = 1_300
"""More than the usual soft limit of descriptors, 1,024."""

LOG_BYTES = 200_000
"""What a decider may write into its log meanwhile; 18 MB in 30 s were seen."""


def _half_open(world: AttackWorld) -> Iterator[Limit]:
    decider = world.stack.handicapped_decider("few-descriptors", **TOKENS)
    yield from beside(world, "half-open connections", CONNECTIONS)
    size = decider.log.stat().st_size
    yield Limit(f"its log grows by less than {LOG_BYTES} bytes", size < LOG_BYTES, f"{size} bytes")


ATTACKS = (
    Attack("16 viewers of queue, backlog and jobs", _viewers),
    Attack("530 slow bodies of one token", _slow_bodies_of_a_token),
    Attack("300 slow bodies that claim to be signed", _slow_signed_bodies),
    Attack("clients that leave within their body", _leaving),
    Attack("1,300 half-open connections", _half_open),
)
