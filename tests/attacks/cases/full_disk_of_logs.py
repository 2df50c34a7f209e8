"""A log that cannot be written: the decider goes on as if it could."""

from collections.abc import Iterator

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import alive
from tests.support.live_decider import WrittenTable
from tests.support.waiting import comes_true


def _run(world: AttackWorld) -> Iterator[Limit]:
    stack = world.stack
    stack.handicapped_decider("full-log")
    sound, broken = (WrittenTable(stack.tables / name, seed=7) for name in ("sound", "broken"))
    for table in (broken, sound):
        stack.post("/v1/tables", {"location": str(table.path), "name": table.path.name}).raise_for_status()
    for number in range(20):
        # A refresh that fails is logged, again and again.
        (broken.path / "_delta_log" / f"{number + 1:020d}.json").write_text("no commit\n")
        stack.notify(broken.path, number + 1)
    sound.append(commits=3)
    stack.notify(sound.path, sound.version)

    def followed() -> bool:
        return bool(stack.get("/v1/tables/sound")["state"]["version"] == sound.version)

    is_followed = bool(comes_true(followed, seconds=30))
    yield Limit("an event is followed although nothing can be logged", is_followed, f"version {sound.version}")
    yield alive(world)


ATTACKS = (Attack("a full disk of logs", _run),)
