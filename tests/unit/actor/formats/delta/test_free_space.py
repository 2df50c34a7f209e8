"""How much room a rewrite requests."""

import pytest

from actor.formats.delta.free_space import MIB, require_free_space
from shared.errors import RetryableError


class Disk:
    """A table's log that knows only the room on its disk."""

    location = "file:///t"

    def __init__(self, free: int | None) -> None:
        self._free = free

    def free_bytes(self) -> int | None:
        return self._free


def refusal(free: int | None) -> RetryableError | None:
    try:
        require_free_space(Disk(free), 100 * MIB, reserved_bytes=10 * MIB)  # type: ignore[arg-type]
    except RetryableError as refused:
        return refused
    return None


@pytest.mark.parametrize("free", [None, 135 * MIB, 1 << 40])
def test_outputs_that_fit_beside_the_reserve_may_be_written(free: int | None) -> None:
    assert refusal(free) is None


@pytest.mark.parametrize("free", [0, 135 * MIB - 1])
def test_others_are_refused_for_now(free: int) -> None:
    assert "rewriting 100 MiB takes up to 135 MiB with the 10 MiB" in str(refusal(free))
