"""What others do to a table in whose newest files a rewrite has hidden rows: one thing after the other."""

from collections.abc import Callable
from typing import Any

from tests.row_exact.playing import Player
from tests.support.steering import Steering

HIDDEN = ("late", "carried", "masked")


def filled(world: Any) -> Any:
    """Return a world with rows in four commits."""
    world.note()
    for _ in range(4):
        world.append()
        world.note()
    return world


def play_afterwards(world: Any, how: str, way: str) -> Player:
    """Hide rows in one of the ways of `HIDDEN` in an output that is written in this way; then let others go on."""

    def acts(act: Callable[[], object]) -> Callable[[], object]:
        return lambda: (act(), world.note())

    filled(world)
    control = Steering()
    if how == "carried":
        acts(world.delete)()
    elif how == "late":
        control = Steering(at={"files_written": acts(world.delete)}, before_commit=[acts(world.update)])
    else:
        control = Steering(at={"files_written": acts(world.copy_on_write)})
    player = Player(world)
    player.afterwards(control, way, 90)
    return player
