"""What a run has shown, and whether that is good: every promise kept, and every fault really met."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tests.chaos.checker import Findings
from tests.chaos.worker import LABELS, PAUSED_AT
from tests.chaos.world import World

WHOLE_RUN_S = 600
"""A run as long as this must have stopped a worker at every label; a shorter one says which it has not."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All figures of a run; `findings` are the checker's, `broken` what the faults saw themselves."""

    seconds: float
    events: int
    runs: int
    findings: Findings
    stuck_jobs: int
    broken: tuple[str, ...]
    not_shown: tuple[str, ...]
    hits: Mapping[str, int]
    kills: int
    taken_back: Mapping[str, int]
    recovered_s: Mapping[str, tuple[float, ...]]

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is not as it must be, in words."""
        found = [*self.findings.broken, *self.broken]
        if self.stuck_jobs:
            found.append(f"stuck_jobs: {self.stuck_jobs}")
        if self.seconds >= WHOLE_RUN_S:
            found += [f"no worker was {label}" for label in self.labels_missed]
        return tuple(found)

    @property
    def labels_missed(self) -> tuple[str, ...]:
        """Labels at which no worker was killed, or none was paused."""
        wanted = [f"killed at {label}" for label in LABELS] + [f"paused at {label}" for label in PAUSED_AT]
        return tuple(label for label in wanted if not self.hits.get(label))

    def figures(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return asdict(self) | {
            "duplicates_per_1000_kills": round(1000 * self.findings.duplicates / max(1, self.kills)),
            "recovered_s": {fault: _spread(times) for fault, times in self.recovered_s.items()},
            "labels_missed": self.labels_missed,
            "problems": self.problems,
            "good": not self.problems,
        }


def verdict_of(world: World, findings: Findings, *, seconds: float, runs: int, stuck_jobs: int) -> Verdict:
    """Put together what the checker, the faults and the drained queue have shown."""
    return Verdict(
        seconds=seconds,
        events=sum(len(table.log) for table in world.tables),
        runs=runs,
        findings=findings,
        stuck_jobs=stuck_jobs,
        broken=tuple(world.broken),
        not_shown=tuple(world.not_shown),
        hits=dict(sorted(world.hits.items())),
        kills=world.kills,
        taken_back=dict(world.taken_back),
        recovered_s={fault: tuple(times) for fault, times in world.recovered_s.items()},
    )


def _spread(times: tuple[float, ...]) -> dict[str, float]:
    ordered = sorted(times)
    spread = {"median": median(ordered), "p95": ordered[int(0.95 * (len(ordered) - 1))], "max": ordered[-1]}
    return {"times": len(ordered)} | {name: round(value, 3) for name, value in spread.items()}
