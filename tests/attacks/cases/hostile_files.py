"""Pipes, holes, links and devices where commits or the tables file are: the decider goes on with everything else."""

import os
from collections.abc import Iterator
from pathlib import Path

from tests.attacks.attack import Attack, AttackWorld, Limit, alive
from tests.support.live_decider import WrittenTable
from tests.support.waiting import comes_true

TABLES = 40
"""More than threads that read and tables that are refreshed at once."""

MEMORY_BYTES = 600 * 1024 * 1024
"""What the decider may hold at most; a hole of 2 GiB was read whole."""


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _hole(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(2 * 1024**3)


def _endless(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _link_out(place: Path) -> None:
    place.symlink_to("/etc/passwd")


KINDS = (_pipe, _hole, _endless, _link_out)


def plant(table: Path, version: int, number: int) -> None:
    """Put a hostile file, of a kind by its number, where a table has a commit."""
    KINDS[number % len(KINDS)](table / "_delta_log" / f"{version:020d}.json")


def _next_commits(world: AttackWorld) -> Iterator[Limit]:
    stack = world.stack
    process = stack.decider()
    hostile = [WrittenTable(stack.tables / f"hostile{number}", seed=number) for number in range(TABLES)]
    sound = WrittenTable(stack.tables / "sound", seed=7)
    for table in (*hostile, sound):
        stack.post("/v1/tables", {"location": str(table.path), "name": table.path.name}).raise_for_status()
    for number, table in enumerate(hostile):
        version = table.version + 1
        plant(table.path, version, number)
        stack.notify(table.path, version)
    sound.append(commits=3)
    stack.notify(sound.path, sound.version)

    def followed() -> bool:
        return bool(stack.get("/v1/tables/sound")["state"]["version"] == sound.version)

    is_followed = bool(comes_true(followed, seconds=30))
    yield Limit("another table is followed", is_followed, f"version {sound.version}")
    peak = next(
        int(line.split()[1]) * 1024
        for line in Path(f"/proc/{process.popen.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    yield Limit(f"the decider holds less than {MEMORY_BYTES >> 20} MiB", peak < MEMORY_BYTES, f"{peak >> 20} MiB")
    yield alive(world)


def _tables_file(world: AttackWorld) -> Iterator[Limit]:
    stack, place = world.stack, world.folder / "tables.yaml"
    KINDS[0](place)
    stack.decider(LAKEWRIGHT_TABLES_FILE=str(place))
    orders = WrittenTable(stack.tables / "orders", seed=7)
    stack.post("/v1/tables", {"location": str(orders.path), "name": "orders"}).raise_for_status()
    errors: list[str] = [""]
    for kind in KINDS:
        place.unlink()
        kind(place)
        orders.append()
        stack.notify(orders.path, orders.version)
        name = kind.__name__.strip("_").replace("_", " ")
        is_followed = bool(comes_true(lambda: _version(world) == orders.version, seconds=30))
        yield Limit(f"beside a {name} a commit is followed", is_followed, f"version {orders.version}")
        is_named = bool(comes_true(lambda: _error(world) != errors[-1], seconds=30))
        errors.append(_error(world))
        yield Limit("and the status says what the file is", is_named, errors[-1])
    yield alive(world)


def _version(world: AttackWorld) -> int:
    return int(world.stack.get("/v1/tables/orders")["state"]["version"])


def _error(world: AttackWorld) -> str:
    return str(world.stack.get("/v1/status")["tables_file"]["error"])


ATTACKS = (
    Attack("pipes, holes, devices and links as next commits", _next_commits),
    Attack("pipes, holes, devices and links as the tables file", _tables_file),
)
