"""Figures that a benchmark has to show, and what is printed of them."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that has to be shown."""

    what: str
    found: float
    at_most: float

    @property
    def is_met(self) -> bool:
        return self.found <= self.at_most

    def __str__(self) -> str:
        return f"{'met ' if self.is_met else 'MISS'} {self.what}: {self.found:.4g} (at most {self.at_most:g})"


def exit_code(limits: Iterable[Limit]) -> int:
    """Return 1 if a figure is not met."""
    return int(not all(limit.is_met for limit in limits))
