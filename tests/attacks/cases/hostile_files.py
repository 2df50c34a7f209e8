"""Pipes, holes, links and devices where 40 tables have their next commit: one more table is followed all the same."""

import os
from collections.abc import Iterator
from pathlib import Path

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import alive
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


def _run(world: AttackWorld) -> Iterator[Limit]:
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


ATTACKS = (Attack("pipes, holes, devices and links as next commits", _run),)
