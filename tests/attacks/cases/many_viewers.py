"""Viewers who ask for the queue and its jobs again and again: events of others are taken as before."""

from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import beside
from tests.attacks.hostile import HONEST, TOKENS
from tests.support.delta_tables import HandTable
from tests.support.time_limits import scaled

CLIENTS = 16
TABLES = 4
PARTITIONS = 50
FILES = 6
"""In each partition, as many as make a job for it."""


def _run(world: AttackWorld) -> Iterator[Limit]:
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


ATTACKS = (Attack("16 viewers of queue, backlog and jobs", _run),)
