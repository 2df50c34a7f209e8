"""What others do to a table in whose newest files a rewrite has hidden rows: one thing after the other."""

from collections.abc import Callable

from tests.row_exact.playing import Player
from tests.support.steering import Steering

HIDDEN = ("late", "carried", "masked")
"""Rows that others delete meanwhile; that were hidden before; and all rows of an input that others replace."""

BELOW_PERCENT = 90
"""Share of hidden rows below which an output is committed with them."""


def play_afterwards(player: Player, how: str, way: str) -> None:
    """Hide rows in one of the ways of `HIDDEN`, in outputs that are written in this way; then let others go on."""
    world = player.world

    def acts(act: Callable[[], object]) -> Callable[[], object]:
        return lambda: (act(), world.note())

    world.note()
    for _ in range(4):
        acts(world.others["append"])()
    control = Steering()
    if how == "carried":
        acts(world.others["delete"])()
    elif how == "late":
        late = acts(world.others["update"])
        control = Steering(at={"files_written": acts(world.others["delete"])}, before_commit=[late])
    else:
        control = Steering(at={"files_written": acts(world.others["delete by deltalake"])})
    player.afterwards(control, way, BELOW_PERCENT)
