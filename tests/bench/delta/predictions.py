"""Predicted and measured cost of runs: by what the queue learned of earlier runs, and as they report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FIRST_RUNS = 10
"""Runs of a kind that the queue learns from before its prediction counts here."""

_RUNS, _BASE, _CORE_MS, _WEIGHED = 0, 1, 2, 7
"""Places in a rate: number of runs, sums of what predictions go by and of core milliseconds; how many are halved."""

Rates = Mapping[str, tuple[float, ...]]
"""What the queue has learned, by kind and extent of a job (`budget.lua`)."""


def decode_rates(stored: Mapping[Any, Any]) -> Rates:
    """Decode the hash of one table."""
    numbers = {kind.decode(): tuple(map(float, text.decode().split(","))) for kind, text in stored.items()}
    return {kind: rate for kind, rate in numbers.items() if "|" in kind}


@dataclass(slots=True)
class Predictions:
    """Sums of core milliseconds over runs."""

    runs: int = 0
    predicted_ms: float = 0.0
    measured_ms: float = 0.0

    def learn(self, before: Rates, after: Rates) -> None:
        """Count the runs between two states of what the queue has learned."""
        for kind, found in after.items():
            known = before.get(kind, (0.0,) * len(found))
            is_halved = found[_RUNS] < known[_RUNS]  # So that the newest runs weigh most.
            rate = [2 * one if is_halved else one for one in found[:_WEIGHED]]
            runs, base = rate[_RUNS] - known[_RUNS], rate[_BASE] - known[_BASE]
            if runs > 0 and known[_RUNS] >= FIRST_RUNS:
                self.runs += round(runs)
                self.predicted_ms += known[_CORE_MS] / known[_BASE] * base
                self.measured_ms += rate[_CORE_MS] - known[_CORE_MS]

    @property
    def error(self) -> float | None:
        """The share by which the mean prediction is off; None without a run that counts."""
        return abs(self.predicted_ms / self.measured_ms - 1) if self.measured_ms else None

    def __str__(self) -> str:
        """The sums as a line."""
        told = f"  cost of {self.runs} runs after {FIRST_RUNS} of their kind: "
        return f"{told}predicted {self.predicted_ms / 1e3:.2f} core-seconds, measured {self.measured_ms / 1e3:.2f}"
